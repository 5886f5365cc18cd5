package ipc_test

import (
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
)

// B9: where no projection reaches the target, the event says what most of the prompt is
// that cannot be compressed.
func TestUnreachableTargetSaysWhatHoldsThePrompt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		talk   *talk
		pins   []int
	}{
		{"newest_turn", (&talk{}).user("Hello.").run("ls", words(200)).user(words(2_500)), nil},
		{"system_prompt_and_tools", &talk{system: words(2_500), messages: (&talk{}).user("Hello.").run("ls", words(200)).filled(100).messages}, nil},
		{"pinned_turns", (&talk{}).user("Hello.").run("ls", words(2_500)).run("make", words(100)).run("make", words(100)), []int{1}},
		{"unanswered_calls", (&talk{}).user("Hello.").add(`{"role":"assistant","content":[{"type":"tool_use","id":"p","name":"Bash","input":{"command":`+quoted(words(2_500))+`}}]}`).user("Go on.").run("make", words(100)), nil},
		{"typed_message", (&talk{}).user(words(2_500)).run("ls", words(100)).run("make", words(100)).run("make", words(100)), nil},
	} {
		lane := newLane(t, 3_000, small)
		lane.Options.Pins = test.pins

		exchange, _ := lane.Send(t, test.talk.body())

		if exchange.Report.Compression != pipeline.Unreachable {
			t.Errorf("%s: %+v", test.reason, exchange.Report)
		}
		wants(t, exchange, "target_unreachable", test.reason)
	}
}

// W56: where a person's own number is what a prompt does not fit into, that is the reason.
func TestUnreachableTargetNamesAPersonsOwnWindow(t *testing.T) {
	t.Parallel()
	lane := newLane(t, 3_000, small, func(c *ipc.Config) { c.ContextWindow = 3_000 })
	exchange, _ := lane.Send(t, (&talk{}).user("Hello.").run("ls", words(200)).user(words(2_500)).body())
	wants(t, exchange, "target_unreachable", "context_window")
}

// A16, B13: a prompt that no rule lets fit lifts the rules for cost and form, and says so,
// where the newest turn itself fits.
func TestPromptThatWouldNotFitLiftsProtections(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		talk   *talk
		pins   []int
	}{
		{"pinned_turns", (&talk{}).user("Hello.").run("ls", words(3_500)).run("make", words(100)).run("make", words(100)), []int{1}},
		{"held_messages", (&talk{}).user("Hello.").run("ls", words(100)).add(narrator(3_500)).run("make", words(100)).run("make", words(100)), nil},
		{"typed_message", (&talk{}).user(words(3_500)).run("ls", words(100)).run("make", words(100)).run("make", words(100)), nil},
	} {
		lane := newLane(t, 3_000, small)
		lane.Options.Pins = test.pins

		exchange, sealed := lane.Send(t, test.talk.body())

		wants(t, exchange, "protection_lifted", test.reason)
		if exchange.Report.After > exchange.Limits.Limit {
			t.Errorf("%s: %d of %d tokens: %s", test.reason, exchange.Report.After, exchange.Limits.Limit, abridged(sealed))
		}
	}
}

// narrator is a message of a role that nobody knows.
func narrator(tokens int) string {
	return fmt.Sprintf(`{"role":"narrator","content":%s}`, quoted(strings.TrimSpace(words(tokens))))
}
