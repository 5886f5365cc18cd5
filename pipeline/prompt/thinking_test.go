package prompt_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
)

// bound generates a session of a model that binds its thinking.
func (b *bench) bound(model, setting string) *sessiontest.Session {
	return sessiontest.Generate(4, sessiontest.Options{
		Model: model, Turns: 50, Parallel: true, Thinking: true, TargetTokens: 40_000, Signer: b.double, ThinkingSetting: setting,
		Bind: func(head []byte) (sessiontest.Binder, error) { return b.double.Bind(head) },
	})
}

// hasThinking reports whether a body holds a block of thinking.
func hasThinking(body []byte) bool {
	return bytes.Contains(body, []byte(`{"type":"thinking"`)) || bytes.Contains(body, []byte(`{"type":"redacted_thinking"`))
}

// W29, W30: from the first epoch on the provider is asked to drop thinking that no
// longer fits; the beta value comes with the setting and never without it.
func TestBoundThinkingIsDroppedFromTheFirstEpochOn(t *testing.T) {
	t.Parallel()
	const binding = `"block_binding":{"prefix_mismatch_behavior":"drop_block"}`
	for name, test := range map[string]struct{ model, setting, want string }{
		"adaptive":         {"claude-opus-5-5", `{"type":"adaptive","display":"omitted"}`, `{"type":"adaptive","display":"omitted",` + binding + `}`},
		"absent":           {"claude-opus-5-5", "none", `{"type":"adaptive",` + binding + `}`}, // W30
		"null":             {"claude-opus-5-5", "null", `{"type":"adaptive",` + binding + `}`},
		"enabled":          {"claude-haiku-5-5", `{"type":"enabled","budget_tokens":2048}`, `{"type":"enabled","budget_tokens":2048,` + binding + `}`},
		"an empty binding": {"claude-fable-5-2", `{"type":"adaptive","block_binding":{}}`, `{"type":"adaptive",` + binding + `}`},
		"asked already":    {"claude-opus-5-5", `{"type":"adaptive", "block_binding":{"x":1,"prefix_mismatch_behavior":"drop_block"}}`, `{"type":"adaptive", "block_binding":{"x":1,"prefix_mismatch_behavior":"drop_block"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, conversation.Anthropic, 32_000)
			if strings.Contains(test.setting, "block_binding") {
				b.betas = "thinking-binding-controls-2026-08-01"
			}
			for step, body := range b.bound(test.model, test.setting).Bodies() {
				written := b.send(body)
				sent := b.member(written.Body, "thinking")
				switch {
				case b.epochs == 0 && (written.Beta != "" || !bytes.Equal(written.Body, body)):
					t.Fatalf("step %d: nothing was edited, but beta %q, thinking %s", step, written.Beta, sent)
				case b.epochs > 0 && (written.Beta != "thinking-binding-controls-2026-08-01" || sent != test.want):
					t.Fatalf("step %d: beta %q, thinking %s, want %s", step, written.Beta, sent, test.want)
				}
				if !hasThinking(written.Body) && hasThinking(body) {
					t.Fatalf("step %d: no thinking is left", step)
				}
			}
			if b.epochs == 0 {
				t.Error("there was no epoch")
			}
		})
	}
}

// W30: where the setting does not exist, all thinking goes, also that of later
// answers, and what was sent without it once is sent without it again.
func TestAllThinkingGoesWhereItCannotBeReleased(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ model, setting string }{
		"between tools":           {"claude-sonnet-5-5", `{"type":"between_tools"}`},
		"off":                     {"claude-haiku-5-5", `{"type":"disabled"}`},
		"absent, and off thereby": {"claude-haiku-5-5", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, conversation.Anthropic, 25_000)
			var before [][]byte
			epochs := 0
			session := b.bound(test.model, test.setting)
			for step, body := range session.Bodies() {
				written := b.send(body)
				if written.Beta != "" || b.member(written.Body, "thinking") != b.member(body, "thinking") {
					t.Fatalf("step %d: beta %q, thinking %s", step, written.Beta, b.member(written.Body, "thinking"))
				}
				if b.epochs == 0 && !bytes.Equal(written.Body, body) {
					t.Fatalf("step %d: another body before the first epoch", step)
				}
				if b.epochs > 0 && hasThinking(written.Body) {
					t.Fatalf("step %d: thinking is left: %.3000s", step, written.Body)
				}
				now := b.elements(written.Body)
				for i, element := range before {
					if b.epochs == epochs && !bytes.Equal(element, now[i]) {
						t.Fatalf("step %d: message %d changed between two epochs:\n%s\n%s", step, i, element, now[i])
					}
				}
				before, epochs = now, b.epochs
			}
			if b.epochs == 0 || !hasThinking(session.Body(session.Steps()-1)) {
				t.Errorf("%d epochs", b.epochs)
			}
		})
	}
}

// W29: a model to fall back to that has a thinking setting of its own is asked too.
func TestFallbacksDropBoundThinkingToo(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 12_000)
	c := begun("claude-opus-5-5")
	c.head += `,"fallbacks":[{"model":"claude-fable-5-2","thinking":{"type":"adaptive"} },{"model":"claude-opus-5"},{"model":"claude-sonnet-5-5","thinking":{"type":"between_tools"}}]`

	written := b.epoch(c.filled(12, 1_000).body())

	holds(t, written.Body, `,"fallbacks":[{"model":"claude-fable-5-2","thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}} },{"model":"claude-opus-5"},{"model":"claude-sonnet-5-5","thinking":{"type":"between_tools"}}]`)
}

// W36: an answer that was nothing but thinking leaves a message that says so.
func TestAnAnswerOfThinkingAloneIsNotLeftEmpty(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 12_000)
	thought := `{"type":"thinking","thinking":"hm","signature":"` + b.double.Sign("hm") + `"}`
	hidden := `{"type":"redacted_thinking","data":"` + b.double.Redact("x") + `"}`
	c := begun("claude-sonnet-5-5")
	c.head += `,"thinking":{"type":"between_tools"}`
	c.filled(12, 1_000).assistant(thought, hidden).user(said("Go on.")).assistant(thought, said("Done."), hidden).user(said("And now?"))

	written := b.epoch(c.body())

	holds(t, written.Body, `{"role":"assistant","content":[{"type":"text","text":"[thinking left out]"}]}`, `{"role":"assistant","content":[{"type":"text","text":"Done."}]}`)
	if hasThinking(written.Body) {
		t.Errorf("thinking is left: %s", written.Body)
	}
}

// W31: models that do not bind thinking get no setting, and the thinking of the
// running tool loop as it came.
func TestThinkingOfTheLoopStaysWhereItIsNotBound(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"claude-opus-5", "claude-sonnet-4-6", "claude-sonnet-4-5"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, conversation.Anthropic, 25_000)
			session := sessiontest.Generate(4, sessiontest.Options{Model: model, Turns: 50, Parallel: true, Thinking: true, TargetTokens: 40_000, Signer: b.double})
			for step, body := range session.Bodies() {
				written := b.send(body)
				if written.Beta != "" || b.member(written.Body, "thinking") != b.member(body, "thinking") {
					t.Fatalf("step %d: beta %q, thinking %s", step, written.Beta, b.member(written.Body, "thinking"))
				}
				checkLoop(t, step, b.elements(written.Body), b.elements(body))
			}
			if b.epochs == 0 {
				t.Error("there was no epoch")
			}
		})
	}
}

// checkLoop holds the newest answer of a running tool loop against the client's.
func checkLoop(t *testing.T, step int, sent, client [][]byte) {
	t.Helper()
	last := client[len(client)-1]
	if !bytes.Contains(last, []byte(`"tool_result"`)) {
		return
	}
	if answer := client[len(client)-2]; !bytes.Equal(sent[len(sent)-2], answer) {
		t.Fatalf("step %d: the answer of the loop was changed:\n%s\n%s", step, answer, sent[len(sent)-2])
	}
}

// W31: a client that wants to be told of thinking that does not fit is not edited.
func TestAStrictBindingMeansNoEdit(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 25_000)
	b.betas = "thinking-binding-controls-2026-08-01"
	for step, body := range b.bound("claude-opus-5-5", `{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"error"}}`).Bodies() {
		if written := b.send(body); !bytes.Equal(written.Body, body) || written.Beta != "" {
			t.Fatalf("step %d: the body was edited", step)
		}
	}
}

// W29, W43: a client's own compaction after an epoch shows the history as it came,
// which thinking made since then does not fit.
func TestACompactionAfterAnEpochStillReleasesThinking(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 25_000)
	session := b.bound("claude-opus-5-5", "")
	for _, body := range session.Bodies() {
		b.send(body)
	}
	b.writer.Window = 100_000 // the history fits
	b.headers.Set("X-Claude-Code-Compaction", "auto")
	b.headers.Set("X-Claude-Code-Request-Class", "compaction")
	last := session.Body(session.Steps() - 1)
	written := b.send(last)
	if b.epochs == 0 || written.Exchange.Lane.Projection != nil || written.Beta == "" || len(b.elements(written.Body)) != len(b.elements(last)) {
		t.Errorf("%d epochs, beta %q, %d messages of %d", b.epochs, written.Beta, len(b.elements(written.Body)), len(b.elements(last)))
	}
}

// W29: thinking that was made behind an edited history does not fit the original
// one either: a client that wants its prompt left alone after an epoch gets the
// setting all the same.
func TestBypassAfterAnEpochStillReleasesThinking(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 25_000)
	session := b.bound("claude-opus-5-5", "")
	first := session.Body(0)
	b.bypass = true
	if written := b.send(first); !bytes.Equal(written.Body, first) {
		t.Fatal("a bypassed body was edited")
	}
	b.bypass = false
	for _, body := range session.Bodies() {
		b.send(body)
	}
	b.bypass = true
	last := session.Body(session.Steps() - 1)
	written := b.send(last)
	if b.epochs == 0 || written.Beta == "" || len(b.elements(written.Body)) != len(b.elements(last)) {
		t.Errorf("%d epochs, beta %q, %d messages of %d", b.epochs, written.Beta, len(b.elements(written.Body)), len(b.elements(last)))
	}
}

// lost is a store that cannot say what there was before.
type lost struct{ *session.Memory }

// Find implements session.Store.
func (lost) Find(context.Context, tenants.WorkspaceID, []conversation.Hash) (session.Found, error) {
	return session.Found{}, errFull
}

// W25, W29: where nobody can say whether there was an epoch before, the messages go out
// as they came, and the provider is asked to drop what no longer fits; what fits stays.
func TestALostLaneReleasesItsThinking(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		model, setting string
		released       bool
	}{
		"adaptive":          {"claude-opus-5-5", "", true},
		"absent":            {"claude-opus-5-5", "none", true},
		"between tools":     {"claude-sonnet-5-5", `{"type":"between_tools"}`, false},
		"thinks when asked": {"claude-haiku-5-5", "none", false},
		"asked to be told":  {"claude-opus-5-5", `{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"error"}}`, false},
		"not bound":         {"claude-opus-5", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBenchOn(t, lost{session.NewMemory()}, 25_000)
			b.betas = "thinking-binding-controls-2026-08-01"
			steps := b.bound(test.model, test.setting)
			for _, step := range []int{steps.Steps() - 1, 0} {
				body := steps.Body(step)
				asked := prompt.Request{Scope: b.scope, Codec: b.codec, Config: b.config, Body: body, Headers: b.headers, Path: "/v1/messages"}
				for what, write := range map[string]func(context.Context, prompt.Request) (*prompt.Prompt, error){"written": b.writer.Write, "counted": b.writer.Count} {
					written, err := write(t.Context(), asked)
					if err != nil {
						t.Fatal(err)
					}
					if err := b.judge(written.Body, written.Beta); err != nil {
						t.Errorf("step %d, %s: refused: %v", step, what, err)
					}
					released := test.released && hasThinking(body)
					if released != (written.Beta != "") || released == bytes.Equal(written.Body, body) {
						t.Errorf("step %d, %s: beta %q, thinking %s", step, what, written.Beta, b.member(written.Body, "thinking"))
					}
					if !slices.EqualFunc(b.elements(written.Body), b.elements(body), bytes.Equal) {
						t.Errorf("step %d, %s: the messages are not as they came", step, what)
					}
				}
			}
		})
	}
}
