package tokens_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
)

// framing is the most that a message of a few blocks has beside their contents.
const framing = 30

func TestMessageCountsEveryText(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 20)
	arguments := `{"path":"internal/server/handler.go","limit":200,"offset":40}`

	for kind, test := range map[string]struct {
		blocks []conversation.Block
		want   int
	}{
		"text":        {[]conversation.Block{{Kind: conversation.Text, Text: text}}, counter.Count(text)},
		"thinking":    {[]conversation.Block{{Kind: conversation.Thinking, Text: text}}, counter.Count(text)},
		"tool call":   {[]conversation.Block{{Kind: conversation.ToolCall, ID: "toolu_01", Name: "read_file", Text: arguments}}, counter.Count("read_file") + counter.Count(arguments)},
		"tool result": {[]conversation.Block{{Kind: conversation.ToolResult, ID: "toolu_01", Text: text}}, counter.Count(text)},
		"several":     {[]conversation.Block{{Kind: conversation.Text, Text: text}, {Kind: conversation.Text, Text: text}}, 2 * counter.Count(text)},
		"nothing":     {nil, 0},
	} {
		got := counter.Message(conversation.Message{Role: conversation.User, Blocks: test.blocks})
		if got <= test.want || got > test.want+framing {
			t.Errorf("%s: %d tokens, want %d and its framing", kind, got, test.want)
		}
	}
}

func TestSealedThinkingCountsAsWhatItSeals(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	thought := strings.Repeat("I should look at the handler first, then at the tests that fail. ", 40)
	seal := base64.StdEncoding.EncodeToString(make([]byte, len(thought)+175))
	whole := counter.Count(thought)

	for kind, block := range map[string]conversation.Block{
		"text beside its signature":  {Text: thought, Raw: object("thinking", "thinking", thought, "signature", seal)},
		"a summary":                  {Text: "Looking.", Raw: object("thinking", "thinking", "Looking.", "signature", seal)},
		"text left out":              {Raw: object("thinking", "thinking", "", "signature", seal)},
		"redacted":                   {Raw: object("redacted_thinking", "data", seal)},
		"reasoning of Responses":     {Raw: object("reasoning", "encrypted_content", seal)},
		"a signature without a text": {Raw: object("thinking", "signature", seal)},
	} {
		block.Kind = conversation.Thinking
		got := counter.Message(conversation.Message{Role: conversation.Assistant, Blocks: []conversation.Block{block}})
		if got < whole*8/10 || got > whole*13/10 {
			t.Errorf("%s: %d tokens, want about %d", kind, got, whole)
		}
	}
}

func TestOpaqueBlocksCountWithoutTheirPayloads(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	sealed := strings.Repeat("Zm9vYmFyYmF6cXV4QUJD", 2000)
	raw := json.RawMessage(fmt.Sprintf(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[
		{"type":"web_search_result","title":"A title","url":"https://example.com/page","encrypted_content":%q},
		{"type":"container","blob":%q}]}`, sealed, sealed))

	got := counter.Message(conversation.Message{Blocks: []conversation.Block{{Kind: conversation.Opaque, Name: "web_search_tool_result", Raw: raw}}})

	asText, encrypted := counter.Count(string(raw)), len(sealed)*3/4/4
	if got < encrypted*8/10 || got > encrypted+200 || got > asText/2 {
		t.Errorf("%d tokens, want about %d, far from the %d of its bytes", got, encrypted, asText)
	}
}

// B2.
func TestSystemPromptsAndToolsCountAsTheModelReadsThem(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	prompt := strings.Repeat("You are a careful engineer.\n\n\t- Say \"why\", not what.\n", 30)
	quoted, err := json.Marshal(prompt)
	if err != nil {
		t.Fatal(err)
	}
	plain := counter.Count(prompt)

	for kind, raw := range map[string]string{
		"a string":          string(quoted),
		"a block":           `[{"type":"text","text":` + string(quoted) + `}]`,
		"a marked block":    `[{"cache_control":{"type":"ephemeral","ttl":"1h"},"type":"text","text":` + string(quoted) + `}]`,
		"escaped as \\u":    `"` + strings.ReplaceAll(strings.Trim(string(quoted), `"`), "a", `\u0061`) + `"`,
		"a tool":            `[{"name":"f","description":` + string(quoted) + `}]`,
		"a marked tool":     `[ {"name" : "f" , "description" : ` + string(quoted) + ` , "cache_control" : {"type":"ephemeral","x":[{}]} } ]`,
		"a response format": `{"type":"json_schema","json_schema":{"description":` + string(quoted) + `}}`,
	} {
		if got := counter.Fixed(json.RawMessage(raw)); got < plain || got > plain+framing {
			t.Errorf("%s: %d tokens, want the text's %d and its framing", kind, got, plain)
		}
	}
}

func TestWhiteSpaceInSchemasCostsNothing(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	compact := `[{"name":"read","input_schema":{"type":"object","properties":{"path":{"type":"string","maxLength":1e3},"all":{"type":"boolean","default":false}},"required":["path"]}}]`
	var tools []tokensTool
	if err := json.Unmarshal([]byte(compact), &tools); err != nil {
		t.Fatal(err)
	}
	indented, err := json.MarshalIndent(json.RawMessage(compact), "", "        ")
	if err != nil {
		t.Fatal(err)
	}

	if got, want := counter.Fixed(indented), counter.Fixed(json.RawMessage(compact)); got != want || want < 30 {
		t.Errorf("indented schemas have %d tokens, compact ones %d", got, want)
	}
}

type tokensTool struct {
	Name string `json:"name"`
}

func TestBrokenJSONIsCountedWithoutHarm(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)

	for _, raw := range []string{"", " ", "{", `{"`, `{"a`, `"`, `"\`, `{"a":"\"}`, `{"cache_control"`, `{"cache_control":`, `{"cache_control":[{`, `nul`, `[1,`, "\xff", `{"signature":"`, `"\ud800"`} {
		if got := counter.Fixed(json.RawMessage(raw)); got < 0 || got > 10 {
			t.Errorf("%q: %d tokens", raw, got)
		}
	}
}

// The elements of a list are those that encoding/json finds.
func TestFixedCountsEachElementOfAListByItself(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	for _, elements := range [][]string{
		{`{"type":"text","text":"one, two ] three"}`, ` {"type":"text","text":"a \" [ quote"} `, `"plain, text"`, `12`, `null`, `[]`, `{}`},
		{`{"name":"n","input_schema":{"type":"object","properties":{"a":{"type":"text","text":["x",{"y":[1,2]}]}}}}`},
		{`[[1,2],{"a":"}"}]`, `{"text":"\\","type":"text"}`},
		{},
	} {
		sum := 0
		for _, element := range elements {
			sum += counter.Fixed(json.RawMessage("[" + element + "]"))
		}
		list := "[\n" + strings.Join(elements, " ,\t") + "]"
		if !json.Valid([]byte(list)) {
			t.Fatalf("%s is no JSON", list)
		}
		if got := counter.Fixed(json.RawMessage(list)); got != sum {
			t.Errorf("%s has %d tokens, its elements %d", list, got, sum)
		}
	}
}

// A block is text if its own members say so, in whatever order and spelling.
func TestFixedReadsTextBlocksByTheirOwnMembers(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	const long = "The quick brown fox jumps over the lazy dog."
	block := counter.Fixed(json.RawMessage(`[{"type":"text","text":"` + long + `"}]`))
	if plain := counter.Count(long); block != plain+1 {
		t.Fatalf("a block has %d tokens, its text %d", block, plain)
	}
	for _, same := range []string{
		`[{"text":"` + long + `","type":"text"}]`, `[{"ty\u0070e":"text","te\u0078t":"` + long + `"}]`, `[{"type":"text","text":"The quick\u0020brown fox jumps over the lazy dog."}]`,
		`[ { "type" : "text" , "cache_control" : {"type":"ephemeral","text":"x"} , "text" : "` + long + `" } ]`,
	} {
		if got := counter.Fixed(json.RawMessage(same)); got != block {
			t.Errorf("%s has %d tokens, want %d", same, got, block)
		}
	}
	for _, other := range []string{`[{"type":"tool","text":"` + long + `"}]`, `[{"x":{"type":"text"},"text":"` + long + `"}]`, `[{"type":"text","x":{"text":"` + long + `"}}]`} {
		if got := counter.Fixed(json.RawMessage(other)); got <= block {
			t.Errorf("%s has %d tokens as if it were a text", other, got)
		}
	}
}

func FuzzFixed(f *testing.F) {
	counter := newCounter(f)
	f.Add([]byte(`[{"type":"text","text":"a\nb"},{"cache_control":{"type":"ephemeral"}}]`))
	f.Add([]byte(`{"signature":"abc","data":"data:image/png;base64,iVBORw0KGgo="}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		block := conversation.Block{Kind: conversation.Opaque, Raw: raw, Media: []conversation.Attachment{{Type: "image/png", Raw: raw}, {Type: "search_result", Raw: raw}}}
		if counter.Fixed(raw) < 0 || counter.Message(conversation.Message{Blocks: []conversation.Block{block}}) < 0 {
			t.Errorf("%q has less than no tokens", raw)
		}
	})
}

func BenchmarkMessage(b *testing.B) {
	counter := newCounter(b)
	code, _ := sourceCode(b)
	message := conversation.Message{Role: conversation.User, Blocks: []conversation.Block{{Kind: conversation.ToolResult, Text: code[:8000]}}}
	b.SetBytes(8000)
	b.ReportAllocs()
	for b.Loop() {
		counter.Message(message)
	}
}

// object returns a JSON object with a type and members, given as names and values.
func object(kind string, members ...string) json.RawMessage {
	values := map[string]string{"type": kind}
	for pair := range slices.Chunk(members, 2) {
		values[pair[0]] = pair[1]
	}
	raw, err := json.Marshal(values)
	if err != nil {
		panic(err)
	}
	return raw
}
