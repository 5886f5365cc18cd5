package tokens_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
)

// B4.
func TestBase64OfMediaNeverCountsAsText(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	content := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	data := base64.StdEncoding.EncodeToString(content)
	asText := counter.Count(data)

	for kind, test := range map[string]struct {
		mediaType, raw string
		most           int
	}{
		"image of Anthropic":       {"image/png", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}}`, 1600},
		"image of Chat":            {"image/png", `{"type":"image_url","image_url":{"detail":"high","url":"data:image/png;base64,` + data + `"}}`, 1600},
		"image of Responses":       {"image/webp", `{"type":"input_image","image_url":"data:image/webp;base64,` + data + `"}`, 1600},
		"image with escapes":       {"image/png", `{"type":"image_url","image_url":{"url":"data:image\/png;base64,` + strings.ReplaceAll(data, "/", `\/`) + `"}}`, 1600},
		"image in lines":           {"image/png", `{"type":"image","source":{"media_type":"image/png","data":"` + inLines(data) + `"}}`, 1600},
		"screenshot":               {"computer_screenshot", `{"type":"computer_screenshot","image_url":"data:image/png;base64,` + data + `"}`, 1600},
		"PDF of Anthropic":         {"application/pdf", `{"type":"document","title":"Report","source":{"type":"base64","media_type":"application/pdf","data":"` + data + `"}}`, 12_000},
		"file of Chat":             {"application/pdf", `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + data + `"}}`, 12_000},
		"sound":                    {"audio/wav", `{"type":"input_audio","input_audio":{"format":"wav","data":"` + data + `"}}`, 200},
		"text file of Responses":   {"text/plain", `{"type":"input_file","file_data":"data:text/plain;base64,` + data + `"}`, 76_000},
		"a type that nobody knows": {"hologram", `{"type":"hologram","hologram":"` + data + `"}`, 50},
	} {
		media := conversation.Attachment{Type: test.mediaType, Size: len(content), Raw: json.RawMessage(test.raw)}
		for name, block := range map[string]conversation.Block{
			"block":       {Kind: conversation.Media, Media: []conversation.Attachment{media}, Raw: media.Raw},
			"tool result": {Kind: conversation.ToolResult, Text: "taken", Media: []conversation.Attachment{media}},
			"opaque":      {Kind: conversation.Opaque, Name: "mcp_tool_result", Raw: media.Raw},
		} {
			got := counter.Message(conversation.Message{Blocks: []conversation.Block{block}})
			if got > test.most+framing+20 || got > asText/2 {
				t.Errorf("%s as %s: %d tokens, want %d at most", kind, name, got, test.most)
			}
		}
	}
}

func TestImagesCountByTheirPixels(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)

	for _, test := range []struct{ width, height, want int }{
		{1, 1, 1}, {64, 64, 4}, {200, 200, 40}, {1000, 1000, 1002}, {4000, 4000, 1203}, {3136, 100, 78},
	} {
		for kind, file := range pictures(t, test.width, test.height) {
			raw := fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/%s","data":"%s"}}`, kind, base64.StdEncoding.EncodeToString(file))
			media := conversation.Attachment{Type: "image/" + kind, Size: len(file), Raw: json.RawMessage(raw)}
			empty := counter.Message(conversation.Message{})
			got := counter.Message(conversation.Message{Blocks: []conversation.Block{{Kind: conversation.Media, Media: []conversation.Attachment{media}}}}) - empty
			if got != test.want {
				t.Errorf("%s of %d×%d: %d tokens, want %d", kind, test.width, test.height, got, test.want)
			}
		}
	}
}

// A result may hold several files. Each one counts.
func TestEveryFileOfAnAttachmentCounts(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	count := func(files ...string) int {
		raw, err := json.Marshal(map[string]any{"type": "image", "parts": files})
		if err != nil {
			t.Fatal(err)
		}
		media := conversation.Attachment{Type: "image/png", Raw: raw}
		return counter.Message(conversation.Message{Blocks: []conversation.Block{{Kind: conversation.Media, Media: []conversation.Attachment{media}}}})
	}
	file := "data:image/png;base64," + strings.Repeat("AAAA", 10_000)
	empty := counter.Message(conversation.Message{})
	if one, two := count(file)-empty, count(file, file)-empty; one < 200 || two != 2*one {
		t.Errorf("one file counts %d tokens, and two count %d", one, two)
	}
}

func TestMediaWithoutBytesCountByTheirType(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)

	for raw, bounds := range map[string][2]int{
		`{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`:                                                                       {1203, 1203},
		`{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`:                                                                             {1203, 1203},
		`{"type":"document","source":{"type":"file","file_id":"file_1"}}`:                                                                                  {1203, 1203},
		`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"Twelve words are in this document, and every one of them counts."}}`: {10, 20},
		`{"type":"document","source":{"type":"content","content":[{"type":"text","text":"Ten words are in here, and each of them counts."}]}}`:             {8, 16},
		`{"type":"search_result","source":"https://example.com","title":"On lanes","content":[{"type":"text","text":"A lane is one line of history."}]}`:   {8, 20},
		`{"type":"tool_reference","tool_name":"read_file"}`:                                                                                                {5, 20},
	} {
		var typed struct {
			Type   string `json:"type"`
			Source any    `json:"source"`
		}
		if err := json.Unmarshal([]byte(raw), &typed); err != nil {
			t.Fatal(err)
		}
		if source, is := typed.Source.(map[string]any); is && source["media_type"] != nil {
			typed.Type = source["media_type"].(string)
		}
		media := conversation.Attachment{Type: typed.Type, Raw: json.RawMessage(raw)}
		empty := counter.Message(conversation.Message{})
		got := counter.Message(conversation.Message{Blocks: []conversation.Block{{Kind: conversation.Media, Media: []conversation.Attachment{media}}}}) - empty
		if got < bounds[0] || got > bounds[1] {
			t.Errorf("%s: %d tokens, want %d to %d", raw, got, bounds[0], bounds[1])
		}
	}
}

func pictures(t *testing.T, width, height int) map[string][]byte {
	t.Helper()
	picture := image.NewGray(image.Rect(0, 0, width, height))
	var asPNG, asJPEG, asGIF bytes.Buffer
	for _, err := range []error{png.Encode(&asPNG, picture), jpeg.Encode(&asJPEG, picture, nil), gif.Encode(&asGIF, picture, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string][]byte{"png": asPNG.Bytes(), "jpeg": asJPEG.Bytes(), "gif": asGIF.Bytes()}
}

// inLines breaks base64 into lines, as JSON.
func inLines(data string) string {
	var lines strings.Builder
	for len(data) > 76 {
		lines.WriteString(data[:76] + `\n`)
		data = data[76:]
	}
	return lines.String() + data
}
