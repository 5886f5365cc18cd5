package prompt_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/tokens"
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
		Scope: b.scope, Codec: b.codec, Config: b.config, Body: body, Headers: b.headers, Path: "/v1/messages", Overrides: tokens.Overrides{Windows: windows},
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
	if report.Compression != pipeline.Epoch || report.Limit != 32_000 || report.After > 32_000*3/4 {
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

// W56: a number that a person sets is the ceiling of the prompt. Only the provider's own window leaves
// room for the answer.
func TestAPersonsWindowLeavesNoRoomForTheAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		model                  string
		own, provided, answers int
		limit, takes           int
	}{
		"a number":                       {"claude-sonnet-4-5", 60_000, 0, 32_000, 60_000, 168_000},
		"none":                           {"claude-sonnet-4-5", 0, 0, 32_000, 168_000, 168_000},
		"the model's room is less":       {"claude-sonnet-4-5", 60_000, 64_000, 32_000, 32_000, 32_000},
		"the model's window is less":     {"claude-sonnet-4-5", 60_000, 50_000, 1_000, 49_000, 49_000},
		"a model that nobody knows":      {"house-model", 60_000, 0, 32_000, 60_000, 0},
		"a number and a learned window":  {"house-model", 60_000, 128_000, 32_000, 60_000, 96_000},
		"nobody knows, and none was set": {"house-model", 0, 0, 32_000, 0, 0},
	} {
		b := newBench(t, conversation.Anthropic, 0)
		pipeline.Change[ipc.Config](&b.config).ContextWindow = ipc.Window(test.own)
		windows := map[string]int{}
		if test.provided > 0 {
			windows[test.model] = test.provided
		}
		body := strings.Replace(string(begun(test.model).body()), `"max_tokens":1000`, fmt.Sprintf(`"max_tokens":%d`, test.answers), 1)
		report := b.within([]byte(body), windows).Exchange.Report
		if report.Limit != test.limit || report.Takes != test.takes {
			t.Errorf("%s: a limit of %d of %d, want %d of %d", name, report.Limit, report.Takes, test.limit, test.takes)
		}
	}
}

// W56: where a prompt has too little room because the client reserves much of the window for the
// answer, that is the reason.
func TestUnreachableTargetNamesTheAnswersReserve(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 0)
	c := begun("claude-sonnet-4-5")
	c.head += `,"system":"` + strings.Repeat("many words ", 18_000) + `"`
	body := strings.Replace(string(c.body()), `"max_tokens":1000`, `"max_tokens":50000`, 1)
	report := b.within([]byte(body), map[string]int{"claude-sonnet-4-5": 80_000}).Exchange.Report
	if len(report.Events) == 0 || report.Events[0].Reason != "answer_reserve" {
		t.Errorf("%+v", report)
	}
}
