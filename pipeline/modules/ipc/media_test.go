package ipc_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
)

// payload returns so many bytes in base64, different ones for each seed.
func payload(seed uint64, size int) string {
	content := make([]byte, size)
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = source.Read(content)
	return base64.StdEncoding.EncodeToString(content)
}

// image returns a block with a picture of so many bytes.
func image(seed uint64, size int) string {
	return fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}`, payload(seed, size))
}

// shot adds an answer that asks for a picture, and the picture.
func (c *talk) shot(text, picture string) *talk {
	c.run("screenshot", "")
	last := len(c.messages) - 1
	c.messages[last] = strings.Replace(c.messages[last], `"content":""`, `"content":[{"type":"text","text":`+quoted(text)+`},`+picture+`]`, 1)
	return c
}

// attach adds what a person typed, with attachments.
func (c *talk) attach(text string, blocks ...string) *talk {
	return c.add(`{"role":"user","content":[` + strings.Join(append(blocks, `{"type":"text","text":`+quoted(text)+`}`), ",") + `]}`)
}

func budget(bytes int) func(*ipc.Config) {
	return func(c *ipc.Config) { c.MaxBytes = bytes }
}

// A13, A14: media above the byte budget go, the oldest first, though they are few
// tokens; their placeholders say what and where they are. What a person attached
// last stays, and so does every text.
func TestMediaAboveTheByteBudgetGoOldestFirst(t *testing.T) {
	t.Parallel()

	c := (&talk{}).attach("Here is the design.", image(1, 90_000)).say("I see.")
	for i := range 8 {
		c.shot(fmt.Sprintf("shot %d %s", i, words(300)), image(uint64(10+i), 60_000))
	}
	pinned := image(99, 90_000)
	c.attach("And the new one.", pinned).shot("last shot", image(50, 60_000))
	body := c.body()
	lane := newLane(t, 1_000_000, budget(800_000))
	exchange, sealed := send(t, lane, body)

	if len(sealed) > 400_000 || exchange.Report.Compression != pipeline.Epoch {
		t.Fatalf("%d of %d bytes: %+v", len(sealed), len(body), exchange.Report)
	}
	if got := exchange.Bytes(exchange.Lane.Projection); got != len(sealed) {
		t.Errorf("sized %d bytes, sent %d", got, len(sealed))
	}
	wants(t, exchange, "completed", "bytes")
	holds(t, sealed, "[image/png, 90,000 bytes, archived as #0]", "Here is the design.", `shot 0 item`, "[image/png, 60,000 bytes, archived as #3]", pinned, image(50, 60_000))
	for i := range 8 {
		holds(t, sealed, quoted(fmt.Sprintf("shot %d %s", i, words(300)))[1:200]) // no text is cut for bytes' sake
	}
	if bytes.Contains(sealed, []byte(payload(10, 60_000))) || !bytes.Contains(sealed, []byte(payload(17, 60_000))) {
		t.Error("not the oldest pictures are out")
	}

	// There is room for a while, and what is out stays out.
	for i := range 3 {
		next, again := send(t, lane, c.shot("more", image(uint64(60+i), 50_000)).body())
		if next.Report.Compression != pipeline.Replayed || !bytes.HasPrefix(again, bytes.TrimSuffix(sealed, []byte("]}"))) {
			t.Fatalf("request %d: %+v", i, next.Report)
		}
	}
}

// A13, A14: what an epoch for the bytes took out stays out of every later one, with
// no other text cut for it.
func TestRemovedMediaStayOut(t *testing.T) {
	t.Parallel()

	lane := newLane(t, 1_000_000, budget(100_000))
	c := (&talk{}).user("Look at the pages.")
	epochs, before := 0, 0
	for i := range 40 {
		exchange, sealed := send(t, lane, c.shot(fmt.Sprintf("page %d %s", i, words(50)), image(uint64(i), 10_000)).body())
		if len(sealed) > 100_000 {
			t.Fatalf("request %d has %d bytes", i, len(sealed))
		}
		holds(t, sealed, payload(uint64(i), 10_000))
		out := bytes.Count(sealed, []byte("[image/png, 10,000 bytes"))
		if out < before || out > before && lane.Epochs == epochs {
			t.Fatalf("request %d: %d pictures are out, %d were", i, out, before)
		}
		if bytes.Contains(sealed, []byte("characters archived")) || exchange.Report.Levels[2]+exchange.Report.Levels[3] > 0 {
			t.Fatalf("request %d: text was cut: %v", i, exchange.Report.Levels)
		}
		epochs, before = lane.Epochs, out
	}
	if epochs < 3 || epochs > 10 {
		t.Errorf("%d epochs", epochs)
	}

	// An epoch for the tokens keeps them out too.
	lane.Options.Limit = 4_000
	exchange, sealed := send(t, lane, c.user("Go on.").body())
	if exchange.Report.Compression != pipeline.Epoch || bytes.Count(sealed, []byte(`"type":"base64"`)) > 40-before {
		t.Errorf("%d pictures in, %d were out: %+v", bytes.Count(sealed, []byte(`"type":"base64"`)), before, exchange.Report)
	}
}

// A14: of the bytes that the setting allows and those that the provider says, the fewer count.
func TestFewerOfTwoByteBudgetsCount(t *testing.T) {
	t.Parallel()
	c := (&talk{}).user("Look at the pages.")
	for i := range 12 {
		c.shot(fmt.Sprint("page ", i), image(uint64(i), 10_000))
	}
	for _, test := range []struct {
		setting, said int
		want          bool
	}{{0, 0, false}, {100_000, 0, true}, {0, 100_000, true}, {500_000, 100_000, true}, {100_000, 500_000, true}, {500_000, 500_000, false}} {
		u := newUsed(t, 1_000_000, budget(test.setting))
		prepare := u.Prepare
		u.Prepare = func(exchange *pipeline.Exchange) {
			prepare(exchange)
			exchange.Limits.MaxBytes = test.said
		}
		exchange := u.send(t, 0, c)
		if (u.Epochs == 1) != test.want {
			t.Errorf("with %d bytes set and %d said: %d epochs, %+v", test.setting, test.said, u.Epochs, exchange.Report)
		}
	}
}

// A14: with all of it in what a person attached last, nothing helps: it goes out as
// it is, at no cost.
func TestNewestAttachmentIsNeverRemoved(t *testing.T) {
	t.Parallel()

	c := (&talk{}).user("Hello.").say("Hi.").attach("All of them.", image(1, 200_000), image(2, 200_000))
	lane := newLane(t, 1_000_000, budget(300_000))
	exchange, sealed := send(t, lane, c.body())

	if !bytes.Equal(sealed, c.body()) || lane.Epochs != 0 || exchange.Report.Compression != pipeline.Unreachable {
		t.Errorf("%d epochs: %+v", lane.Epochs, exchange.Report)
	}
	wants(t, exchange, "target_unreachable", "")
}

// A14: bytes are bytes, of a model that nobody knows as well; the archive decides
// there too.
func TestTheByteBudgetHoldsForAnUnknownModel(t *testing.T) {
	t.Parallel()

	c := (&talk{}).attach("First.", image(1, 200_000)).say("Yes.").user("Second.").say("Yes.").user("Third.")
	exchange, sealed := epoch(t, c.body(), 0, budget(150_000))
	if holds(t, sealed, "archived as #0 of archive ", "First."); len(sealed) > 150_000 || exchange.Report.Compression != pipeline.Epoch {
		t.Errorf("%d bytes: %+v", len(sealed), exchange.Report)
	}
	exchange, sealed = epoch(t, c.body(), 0, budget(150_000), func(c *ipc.Config) { c.ArchiveToBlob = false })
	if !bytes.Equal(sealed, c.body()) {
		t.Error("media were taken out without an archive")
	}
	wants(t, exchange, "skipped", "archive_off")
	if exchange, _ = epoch(t, c.body(), 0, budget(0)); exchange.Lane.Projection != nil {
		t.Error("there is a budget though it is off")
	}
}

// A14: where text is what weighs, the oldest turns are compressed for it.
func TestTextAboveTheByteBudgetIsCompressed(t *testing.T) {
	t.Parallel()

	exchange, sealed := epoch(t, longTalk(60).body(), 1_000_000, budget(150_000))

	if len(sealed) > 150_000 || exchange.Report.Levels[0] == 60 {
		t.Errorf("%d bytes: %+v", len(sealed), exchange.Report)
	}
	wants(t, exchange, "completed", "bytes")
}

// A3, A13, A14: in every format, also beside results and typed text: pictures, PDFs and
// sound go whole, and what stands for each names its type, its size and its place.
func TestMediaGoInEveryFormat(t *testing.T) {
	t.Parallel()

	data := payload(1, 120_000)
	url, pdf := `"data:image/png;base64,`+data+`"`, `"data:application/pdf;base64,`+data+`"`
	for format, messages := range map[conversation.Format]string{
		conversation.OpenAIChat: `{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image_url","image_url":{"url":` + url + `}},` +
			`{"type":"file","file":{"filename":"a.pdf","file_data":` + pdf + `}},{"type":"input_audio","input_audio":{"format":"wav","data":"` + data + `"}}]},` +
			`{"role":"assistant","content":"I see."},{"role":"user","content":"Go on."},{"role":"assistant","content":"Yes."},{"role":"user","content":"And?"}`,
		conversation.OpenAIResponses: `{"type":"message","role":"user","content":[{"type":"input_text","text":"Look."},{"type":"input_image","image_url":` + url + `},{"type":"input_file","filename":"a.pdf","file_data":` + pdf + `}]},` +
			`{"type":"function_call","call_id":"c","name":"view","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":` + url + `}]},` +
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]},{"type":"message","role":"user","content":"And?"}`,
		conversation.Anthropic: `{"role":"user","content":"Look."},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"view","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[` + image(1, 120_000) + `]},` + image(1, 120_000) + `,` +
			`{"type":"document","title":"Report","source":{"type":"base64","media_type":"application/pdf","data":"` + data + `"}},{"type":"text","text":"Look."}]},` +
			`{"role":"assistant","content":"Yes."},{"role":"user","content":"And?"}`,
	} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			codec := codecs()[format]
			lane := newLane(t, 1_000_000, budget(100_000))
			lane.Codec = codec
			exchange, sealed := lane.Send(t, fmt.Appendf(nil, `{"model":"m","max_tokens":9,%q:[%s]}`, codec.List(), messages))
			if err := pipelinetest.CheckProjection(exchange); err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(sealed, []byte(data[:200])) || bytes.Contains(sealed, []byte(data[100_000:100_200])) || exchange.Report.Compression != pipeline.Epoch {
				t.Errorf("%d bytes: %+v", len(sealed), exchange.Report)
			}
			holds(t, sealed, "[image/png, 120,000 bytes, archived as #", "[application/pdf, 120,000 bytes, archived as #", " of archive ", "Look.")
			if format == conversation.OpenAIChat {
				holds(t, sealed, "[audio/wav, 120,000 bytes, archived as #")
			}
		})
	}
}

// A13: a notice that an epoch left out does not pass for a picture that was taken out.
func TestPictureStaysWhereOnlyANoticeWasLeftOut(t *testing.T) {
	t.Parallel()

	lane := newLane(t, 6_000, small, func(c *ipc.Config) { c.DeepestLevel = 1 })
	c := (&talk{}).user("Hello.").say("Hi.").attach("Here is the design.", image(1, 3_000)).add(left(900)).run("ls", words(3_000)).add(left(800)).say("Seen.")
	c.user("Go on.").run("make", words(3_000)).add(left(700)).run("make", words(500))
	for range 2 {
		exchange, sealed := send(t, lane, newestModel(c))
		if exchange.Report.Compression != pipeline.Epoch {
			t.Fatalf("%+v", exchange.Report)
		}
		lacks(t, sealed, "900 tokens left")
		holds(t, sealed, image(1, 3_000))
		c.run("go test", words(5_000)).add(left(600)).run("go vet", words(500))
	}
}
