package prompt_test

import (
	"bytes"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/wire"
)

// as returns a request of a conversation for another model.
func (c *talk) as(model string) []byte {
	before := c.head
	defer func() { c.head = before }()
	c.head = `"model":"` + model + `"`
	return c.body()
}

// within sends a body to models of which one has a smaller window here.
func (b *bench) within(body []byte, windows map[string]int) *prompt.Prompt {
	b.t.Helper()
	written, err := b.writer.Write(b.t.Context(), prompt.Request{
		Scope: b.scope, Codec: b.codec, Config: b.config, Body: body, Headers: b.headers, Path: "/v1/messages", Windows: windows,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.judge(written.Body, written.Beta); err != nil {
		b.t.Fatalf("refused: %v", err)
	}
	return written
}

// B8: a switch to a model with a smaller window makes one epoch before anything is
// sent, and the prompt fits; the switch back makes none and sends the same bytes.
func TestASwitchToASmallerModelMakesOneEpoch(t *testing.T) {
	t.Parallel()

	windows := map[string]int{"claude-haiku-4-5": 64_000}
	b := newBench(t, conversation.Anthropic, 0)
	c := begun("claude-sonnet-4-5").filled(95, 1_000)
	large := b.within(c.body(), windows).Exchange.Report
	if large.Compression != pipeline.None || large.After < 100_000 || large.Limit < 190_000 {
		t.Fatalf("on the larger model: %+v", large)
	}

	small := b.within(c.as("claude-haiku-4-5"), windows)
	if report := small.Exchange.Report; report.Compression != pipeline.Epoch || report.Limit != 63_000 || report.After > report.Limit*3/4 {
		t.Fatalf("on the smaller one: %+v", report)
	}
	again := b.within(c.as("claude-haiku-4-5"), windows)
	if again.Exchange.Report.Compression != pipeline.Replayed || !bytes.Equal(again.Body, small.Body) {
		t.Errorf("once more: %+v", again.Exchange.Report)
	}

	back := b.within(c.body(), windows)
	if report := back.Exchange.Report; report.Compression != pipeline.Replayed || report.Archived > 0 {
		t.Errorf("back on the larger one: %+v", report)
	}
	if want := strings.Replace(string(small.Body), "claude-haiku-4-5", "claude-sonnet-4-5", 1); string(back.Body) != want {
		t.Error("back on the larger model other bytes are sent")
	}
}

// B8: a client that takes its window to be another one than the model's has it set.
func TestTheWindowThatAClientAssumesHolds(t *testing.T) {
	t.Parallel()

	b := newBench(t, conversation.Anthropic, 0)
	c := begun("claude-sonnet-4-5").filled(60, 1_000)
	if report := b.send(c.body()).Exchange.Report; report.Compression != pipeline.None {
		t.Fatalf("in the model's own: %+v", report)
	}
	pipeline.Change[ipc.Config](&b.config).ContextWindow = 32_000
	report := b.send(c.filled(1, 10).body()).Exchange.Report
	if report.Compression != pipeline.Epoch || report.Limit != 31_000 || report.After > 31_000*3/4 {
		t.Errorf("in 32,000: %+v", report)
	}
}

// B1, B6: a provider that takes more than the window without a word tells of it in its
// usage; the next prompt is smaller.
func TestASilentOverflowMakesTheNextPromptSmaller(t *testing.T) {
	t.Parallel()

	b := newBench(t, conversation.Anthropic, 64_000)
	c := begun("claude-sonnet-4-5").filled(25, 1_000)
	written := b.send(c.body())
	if written.Exchange.Report.Compression != pipeline.None {
		t.Fatalf("before: %+v", written.Exchange.Report)
	}
	b.writer.Answered(written.Sent(), wire.Answer{Usage: wire.Usage{Reported: true, Input: 10_000, CacheRead: 40_000, CacheWrite: 20_000}})

	next := b.send(c.filled(1, 10).body()).Exchange.Report
	if next.Compression != pipeline.Epoch || next.Before < 70_000 || next.Before > 71_000 || next.After > next.Limit*3/4 {
		t.Errorf("after: %+v", next)
	}
}
