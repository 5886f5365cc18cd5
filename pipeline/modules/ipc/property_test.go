package ipc_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/sessiontest"
)

// A1, A2, A5, A6, A7, A9, A11, A12, A14, B13, B15, C2, C3: sessions, configs, windows
// down to a fiftieth of the session, byte budgets and places where requests end,
// all at random. -rapid.checks sets how many sessions; each
// gives about ten bodies to check.
func TestAnyPromptIsLegalAndStable(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	bodies := 0
	rapid.Check(t, func(r *rapid.T) {
		options := drawSession(r)
		double := providerdouble.NewHandler(providerdouble.Config{Window: 100_000_000})
		options.Signer = double
		session := sessiontest.Generate(rapid.Uint64().Draw(r, "seed"), options)
		codec := codecs()[options.Format]
		whole := session.Body(session.Steps() - 1)
		size := pipelinetest.NewExchange(t, codec, whole, pipelinetest.Options{Counter: counter}).Size(nil)
		lane := &pipelinetest.Lane{
			Codec: codec, Modules: []pipeline.Module{ipc.New(counter.Message)},
			Options: pipelinetest.Options{
				Counter: counter, Config: drawConfig(r, len(whole)),
				Limit:  int(float64(size) * rapid.Float64Range(0.02, 1.2).Draw(r, "window")),
				Factor: rapid.Float64Range(0.8, 1.6).Draw(r, "factor"),
			},
		}
		var last sent
		for step := rapid.IntRange(0, 3).Draw(r, "first step"); step < session.Steps(); step += rapid.IntRange(1, 4).Draw(r, "stride") {
			last = check(t, r, lane, double, session.Body(step), last)
			bodies++
		}
	})
	checks, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	if err != nil {
		t.Fatal(err)
	}
	if bodies < 5*checks {
		t.Errorf("only %d bodies of %d sessions were checked", bodies, checks)
	}
}

// sent is what the check of one request leaves for the next.
type sent struct {
	elements [][]byte
	epochs   int
}

// check sends one request and checks what would go to the provider.
func check(t *testing.T, r *rapid.T, lane *pipelinetest.Lane, double *providerdouble.Double, body []byte, before sent) sent {
	t.Helper()
	exchange, sealed := lane.Send(t, body)
	if !json.Valid(sealed) {
		r.Fatalf("sent invalid JSON: %.200s", sealed)
	}
	if err := double.Validate(string(lane.Codec.Format()), sealed); err != nil {
		r.Fatalf("refused: %v\nparts %v", err, layout(exchange))
	}
	if err := pipelinetest.CheckProjection(exchange); err != nil {
		r.Fatalf("%v: parts %v", err, layout(exchange))
	}
	for _, event := range exchange.Report.Events {
		if event.Type == "failed" {
			r.Fatalf("failed: %+v", event)
		}
	}
	elements := elementsOf(t, lane.Codec, sealed)
	before.hold(r, lane.Codec, lane.Epochs, elements)
	checkUntouched(r, exchange, elements)
	checkPaired(t, r, lane.Codec, elements)
	checkMonotone(r, exchange)
	if lane.Epochs > before.epochs+1 {
		r.Fatalf("one request made %d epochs", lane.Epochs-before.epochs)
	}
	if lane.Epochs > before.epochs && exchange.Report.After >= exchange.Report.Before {
		r.Fatalf("an epoch made %d of %d tokens", exchange.Report.After, exchange.Report.Before)
	}
	return sent{elements, lane.Epochs}
}

// fataler ends a test or one case of it.
type fataler interface {
	Fatalf(format string, arguments ...any)
}

// hold holds what is sent against what was sent before: between two epochs it only
// grows at its end.
func (s sent) hold(f fataler, codec wire.Codec, epochs int, elements [][]byte) {
	if epochs > s.epochs {
		return
	}
	for i, element := range s.elements {
		if i < len(elements) && bytes.Equal(element, elements[i]) {
			continue
		}
		if i >= len(elements) || !bytes.Equal(withoutMarkers(codec, element), withoutMarkers(codec, elements[i])) {
			f.Fatalf("message %d changed between two epochs", i)
		}
	}
}

// checkUntouched holds the messages that no level touched against the client's.
func checkUntouched(r fataler, exchange *pipeline.Exchange, elements [][]byte) {
	at, covered := 0, 0
	if exchange.Lane.Projection != nil {
		for _, part := range exchange.Lane.Projection.Parts {
			for i := part.From; part.Raw == nil && i < part.To; i++ {
				if !bytes.Equal(elements[at+i-part.From], exchange.Body.Element(i)) {
					r.Fatalf("message %d is not the client's", i)
				}
			}
			at += part.Messages
		}
		covered = exchange.Lane.Projection.Covers
	}
	if len(elements)-at != exchange.Body.Len()-covered {
		r.Fatalf("%d messages behind the projection, sent %d", exchange.Body.Len()-covered, len(elements)-at)
	}
	for i := covered; i < exchange.Body.Len(); i++ {
		if !bytes.Equal(elements[at+i-covered], exchange.Body.Element(i)) {
			r.Fatalf("message %d behind the projection is not the client's", i)
		}
	}
}

// checkPaired counts calls and results, and looks for empty text.
func checkPaired(t *testing.T, r *rapid.T, codec wire.Codec, elements [][]byte) {
	t.Helper()
	open := map[string]bool{}
	for i, element := range elements {
		message, err := codec.Parse(element)
		if err != nil {
			r.Fatalf("message %d: %v", i, err)
		}
		for _, block := range message.Blocks {
			switch block.Kind {
			case conversation.ToolCall:
				if open[block.ID] {
					r.Fatalf("message %d: call %s twice", i, block.ID)
				}
				open[block.ID] = true
			case conversation.ToolResult:
				if !open[block.ID] {
					r.Fatalf("message %d: result %s without its call", i, block.ID)
				}
				delete(open, block.ID)
			case conversation.Text:
				if block.Text == "" {
					r.Fatalf("message %d: empty text", i)
				}
			case conversation.Thinking, conversation.Media, conversation.Opaque:
			}
		}
	}
	if len(open) > 0 {
		r.Fatalf("calls without results: %v", open)
	}
}

// checkMonotone checks that no turn goes back up.
func checkMonotone(r *rapid.T, exchange *pipeline.Exchange) {
	total := 0
	for _, turns := range exchange.Report.Levels {
		total += turns
	}
	if total != len(exchange.Conversation.Turns) {
		r.Fatalf("levels %v of %d turns", exchange.Report.Levels, len(exchange.Conversation.Turns))
	}
}

func drawSession(r *rapid.T) sessiontest.Options {
	formats := []conversation.Format{conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses, conversation.Gemini, conversation.GeminiInteractions}
	flag := func(name string) bool { return rapid.Bool().Draw(r, name) }
	format := rapid.SampledFrom(formats).Draw(r, "format")
	model := ""
	if format == conversation.Anthropic {
		model = rapid.SampledFrom([]string{"claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-5"}).Draw(r, "model")
	}
	return sessiontest.Options{
		Format: format, Model: model,
		Turns: rapid.IntRange(2, 60).Draw(r, "turns"), TargetTokens: rapid.IntRange(2_000, 40_000).Draw(r, "tokens"),
		Parallel: flag("parallel"), Thinking: flag("thinking"), Images: flag("images"), CJK: flag("cjk"),
		ToolErrors: flag("errors"), Reminders: flag("reminders"), CacheMarkers: flag("markers"),
		HugeResults: rapid.IntRange(0, 9).Draw(r, "huge") == 0,
	}
}

func drawConfig(r *rapid.T, bytes int) pipeline.Config {
	config := modules.Catalog().Default()
	settings := pipeline.Change[ipc.Config](&config)
	settings.TargetUtilization = rapid.Float64Range(0.30, 0.95).Draw(r, "target")
	settings.CompressTo = rapid.Float64Range(0.10, 0.60).Draw(r, "goal")
	settings.MinClear = rapid.Float64Range(0.01, 0.20).Draw(r, "clear")
	settings.PreserveLastTurns = rapid.IntRange(1, 8).Draw(r, "turns kept")
	settings.PreserveTokens = rapid.IntRange(0, 20_000).Draw(r, "tokens kept")
	settings.DeepestLevel = rapid.IntRange(0, 3).Draw(r, "deepest")
	settings.BlockTokens = rapid.IntRange(500, 8_000).Draw(r, "blocks")
	settings.ObservationMasking = rapid.Bool().Draw(r, "masking")
	if rapid.IntRange(0, 2).Draw(r, "heavy") == 0 {
		settings.MaxBytes = int(float64(bytes) * rapid.Float64Range(0.1, 1.1).Draw(r, "bytes"))
	}
	return config
}

func elementsOf(t *testing.T, codec wire.Codec, body []byte) [][]byte {
	t.Helper()
	envelope, err := wire.Open(body, codec.List())
	if err != nil {
		t.Fatal(err)
	}
	elements := make([][]byte, envelope.Len())
	for i := range elements {
		elements[i] = envelope.Element(i)
	}
	return elements
}

// withoutMarkers returns a message without cache markers: a client moves its own.
func withoutMarkers(codec wire.Codec, raw []byte) []byte {
	if codec.Format() != conversation.Anthropic {
		return raw
	}
	return codec.Mark(raw, "")
}

func layout(exchange *pipeline.Exchange) string {
	text := fmt.Appendf(nil, "%d messages, %d turns:", len(exchange.Conversation.Digests), len(exchange.Conversation.Turns))
	if exchange.Lane.Projection != nil {
		for _, part := range exchange.Lane.Projection.Parts {
			text = fmt.Appendf(text, " %d-%d:L%d", part.From, part.To, part.Level)
		}
	}
	return string(text)
}
