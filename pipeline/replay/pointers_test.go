package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
	"palimpsest/pipeline/wire/sessiontest"
)

// Generated sessions whose results repeat each other, through epochs: every replay sends
// the same bytes, and so does another process at any time; what was sent stays until the
// next epoch; and every pointer comes with what it points at, of which the original can be
// put together again byte for byte.
func TestPointersAreTheSameOnEveryReplay(t *testing.T) {
	t.Parallel()
	formats := []wire.Codec{anthropic.New(), openaichat.New(), openairesponses.New()}
	windows := []int{1_000_000, 30_000}
	for i := range fulltest.Part(len(formats) * len(windows) * 3) {
		codec, window, seed := formats[i%3], windows[i/3%2], uint64(i/6) //nolint:gosec // not negative
		t.Run(fmt.Sprintf("%s-%d-%d", codec.Format(), window, seed), func(t *testing.T) {
			t.Parallel()
			replayRepeating(t, codec, window, seed)
		})
	}
}

func replayRepeating(t *testing.T, codec wire.Codec, window int, seed uint64) {
	t.Helper()
	double := providerdouble.NewHandler(providerdouble.Config{Window: 10_000_000})
	talk := sessiontest.Generate(seed, sessiontest.Options{
		Format: codec.Format(), Turns: 60, TargetTokens: 30_000, CacheMarkers: true, Parallel: seed%2 == 0, Thinking: true, Signer: double,
	})
	first, second := newRepeating(t, codec, window), newRepeating(t, codec, window)
	writer, always := first.process(t), second.process(t)
	var before []byte
	epochs, met, gone, isSmall := 0, 0, 0, window < 1_000_000
	for step := range talk.Steps() {
		body := withRepeats(t, codec, talk.Body(step))
		if step%7 == 6 {
			writer = first.process(t) // a restart
			if isSmall {              // what a process has learned of sizes decides when there is an epoch
				always = second.process(t)
			}
		}
		sent := first.send(t, writer, body)
		if again := second.send(t, always, body); !bytes.Equal(sent.Body, again.Body) {
			t.Fatalf("step %d: another replay sends\n%s, not\n%s", step, again.Body, sent.Body)
		}
		if replica := first.process(t); step%5 == 4 && !isSmall {
			if again := first.send(t, replica, body); !bytes.Equal(sent.Body, again.Body) {
				t.Fatalf("step %d: another process sends\n%s, not\n%s", step, again.Body, sent.Body)
			}
		}
		if err := double.Validate(string(codec.Format()), sent.Body); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if marked := []byte(`"cache_control"`); bytes.Count(sent.Body, marked) < bytes.Count(body, marked) {
			t.Errorf("step %d: a cache marker is gone", step)
		}
		list := listOf(t, codec, sent.Body)
		if made := sent.Exchange.Report.Archived > 0; made {
			epochs++
		} else if !bytes.HasPrefix(list, before) {
			t.Fatalf("step %d changes what was sent before", step)
		}
		before = list
		standing, lost := holdPointers(t, codec, sent)
		met, gone = max(met, standing), max(gone, lost)
	}
	if met == 0 {
		t.Error("there was no pointer")
	}
	if (epochs > 0) != isSmall || (gone > 0) != isSmall {
		t.Errorf("%d epochs, after which %d pointers were gone", epochs, gone)
	}
}

// holdPointers checks the pointers of a prompt against its originals. It returns how many
// stand, and how many an epoch has put the original back for or compressed.
func holdPointers(t *testing.T, codec wire.Codec, sent *prompt.Prompt) (standing, gone int) {
	t.Helper()
	exchange, texts := sent.Exchange, resultsOf(t, codec, sent.Body)
	for i := range exchange.Inserts {
		pointer := &exchange.Inserts[i]
		original, err := exchange.Message(pointer.Message)
		if err != nil {
			t.Fatal(err)
		}
		block := original.Blocks[pointer.Block-1]
		if !pointer.Stands(exchange.Projection) {
			gone++
			if texts[block.ID] == pointer.Text {
				t.Errorf("message %d points at message %d, which is no longer in the prompt", pointer.Message, pointer.Source)
			}
			if exchange.Projection.Keeps(pointer.Message) && texts[block.ID] != block.Text {
				t.Errorf("message %d is not as it came", pointer.Message)
			}
			continue
		}
		standing++
		if texts[block.ID] != pointer.Text {
			t.Errorf("message %d has %.80q, not its pointer", pointer.Message, texts[block.ID])
		}
		source, err := exchange.Message(pointer.Source)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(source.Blocks, func(said conversation.Block) bool {
			return texts[said.ID] == said.Text && expanded(pointer.Text, said.Text) == block.Text
		}) {
			t.Errorf("message %d cannot be put together of message %d: %s", pointer.Message, pointer.Source, pointer.Text)
		}
	}
	return standing, gone
}

// expanded puts a result together again of a pointer and what it points at.
func expanded(pointer, source string) string {
	_, body, _ := strings.Cut(pointer, "\n")
	said, lines := strings.Split(source, "\n"), []string(nil)
	for line := range strings.SplitSeq(body, "\n") {
		place, is := strings.CutPrefix(line, "[= line")
		if !is {
			lines = append(lines, line)
			continue
		}
		from, to, _ := strings.Cut(strings.Trim(place, "s ]"), "–")
		first, err := strconv.Atoi(from)
		last, wrong := strconv.Atoi(to)
		if wrong != nil {
			last = first
		}
		if err != nil || first < 1 || last > len(said) {
			return "no place: " + line
		}
		lines = append(lines, said[first-1:last]...)
	}
	return strings.Join(lines, "\n")
}

// resultsOf returns the tool results in a body by the ids of their calls.
func resultsOf(t *testing.T, codec wire.Codec, body []byte) map[string]string {
	t.Helper()
	envelope, err := wire.Open(body, codec.List())
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for i := range envelope.Len() {
		message, err := codec.Parse(envelope.Element(i))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range message.Blocks {
			if block.Kind == conversation.ToolResult {
				texts[block.ID] = block.Text
			}
		}
	}
	return texts
}

// withRepeats returns a body in which every call runs a command, and every result is one
// of three long logs, with a few lines of its own.
func withRepeats(t *testing.T, codec wire.Codec, body []byte) []byte {
	t.Helper()
	envelope, err := wire.Open(body, codec.List())
	if err != nil {
		t.Fatal(err)
	}
	var list []json.RawMessage
	results := 0
	for i := range envelope.Len() {
		message, err := codec.Parse(envelope.Element(i))
		if err != nil {
			t.Fatal(err)
		}
		for j := range message.Blocks {
			block := &message.Blocks[j]
			switch {
			case block.Kind == conversation.ToolCall && !block.IsUnread && strings.HasPrefix(block.Text, "{"):
				message.Replace(j, `{"command":"make test"}`)
			case block.Kind == conversation.ToolResult && !block.IsUnread && len(block.Media) == 0 && len(block.Tools) == 0 && block.Text != "":
				results++
				message.Replace(j, logOf(results))
			}
		}
		raw, err := codec.Encode(message)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(message.Markers); n > 0 {
			raw = codec.Mark(raw, message.Markers[n-1])
		}
		list = append(list, raw)
	}
	return envelope.Seal([]wire.Piece{{From: 0, To: envelope.Len(), Raw: bytes.Join(rawOf(list), []byte(","))}})
}

func rawOf(list []json.RawMessage) [][]byte {
	raw := make([][]byte, len(list))
	for i := range list {
		raw[i] = list[i]
	}
	return raw
}

// logOf returns what the nth command prints.
func logOf(n int) string {
	lines := make([]string, 120)
	for i := range lines {
		lines[i] = fmt.Sprintf("log %d: step %d of the build has come to its end without a warning", n%3, i)
		if (i+n)%40 == 0 {
			lines[i] = fmt.Sprintf("run %d differs at step %d", n, i)
		}
	}
	return strings.Join(lines, "\n")
}

// In place of a result a pointer stays while the provider takes nothing out of the prompt
// by itself: a request that asks it to gets the original.
func TestNoPointerStandsWhereTheProviderTakesResultsOut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		codec  wire.Codec
		member string
	}{
		{anthropic.New(), `"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},`},
		{openairesponses.New(), `"truncation":"auto",`},
	} {
		r := newRepeating(t, test.codec, 1_000_000)
		writer := r.process(t)
		talk := sessiontest.Generate(1, sessiontest.Options{Format: test.codec.Format(), Turns: 20, TargetTokens: 10_000})
		var sent *prompt.Prompt
		for step := range talk.Steps() {
			sent = r.send(t, writer, withRepeats(t, test.codec, talk.Body(step)))
		}
		if sent.Exchange.Inserted(nil) >= 0 {
			t.Fatalf("%s: no pointers", test.codec.Format())
		}
		body := withRepeats(t, test.codec, talk.Body(talk.Steps()-1))
		asked := append([]byte("{"+test.member), body[1:]...)
		if taken := r.send(t, writer, asked); !bytes.Equal(taken.Body, asked) {
			t.Errorf("%s: %d tokens of pointers stand", test.codec.Format(), taken.Exchange.Inserted(nil))
		}
		if again := r.send(t, writer, body); !bytes.Equal(again.Body, sent.Body) {
			t.Errorf("%s: the pointers did not come back", test.codec.Format())
		}
	}
}

// A prompt that the provider refuses keeps its pointers: without them it were longer.
func TestAnEmergencyKeepsPointers(t *testing.T) {
	t.Parallel()
	codec := anthropic.New()
	r := newRepeating(t, codec, 1_000_000)
	writer := r.process(t)
	talk := sessiontest.Generate(1, sessiontest.Options{Format: codec.Format(), Turns: 20, TargetTokens: 10_000})
	for step := range talk.Steps() {
		sent := r.send(t, writer, withRepeats(t, codec, talk.Body(step)))
		fresh := slices.ContainsFunc(sent.Exchange.Report.Events, func(event pipeline.ReportEntry) bool { return event.Type == pipeline.PointedType })
		if !fresh {
			continue
		}
		size := sent.Exchange.Report.After
		shrunk, ok := writer.Shrink(t.Context(), sent, wire.Overflow{Window: 3_000, Tokens: size})
		if ok && slices.ContainsFunc(shrunk.Exchange.Report.Events, func(event pipeline.ReportEntry) bool { return event.Type == "withdrawn" }) {
			t.Fatalf("%+v", shrunk.Exchange.Report.Events)
		}
		if again := r.send(t, writer, withRepeats(t, codec, talk.Body(step))); len(again.Exchange.Inserts) == 0 {
			t.Fatal("the pointers were withdrawn")
		}
		return
	}
	t.Fatal("no pointer")
}

// What pointers save is told in the report of every request that has them, and their event
// says what this request was the first to save.
func TestWhatPointersSaveIsReported(t *testing.T) {
	t.Parallel()
	codec := openaichat.New()
	r := newRepeating(t, codec, 1_000_000)
	writer := r.process(t)
	talk := sessiontest.Generate(1, sessiontest.Options{Format: codec.Format(), Turns: 20, TargetTokens: 10_000})
	told, stand := 0, 0
	for step := range talk.Steps() {
		report := r.send(t, writer, withRepeats(t, codec, talk.Body(step))).Exchange.Report
		for _, event := range report.Events {
			if event.Type == pipeline.PointedType {
				told += event.Counts["tokens"]
				stand += event.Counts["results"]
			}
		}
		if saved := report.Before - report.After; saved < told*9/10 || saved > told*11/10 {
			t.Fatalf("step %d: %d tokens less, told of %d", step, saved, told)
		}
	}
	if stand == 0 {
		t.Error("no event told of a pointer")
	}
}
