package prompt_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/wire/sessiontest"
)

// W31, W37: histories that only the provider knows whole, that it has signed, or
// that it compares with an earlier request go out as they came, however long.
func TestHistoriesThatMustNotBeEditedAreNot(t *testing.T) {
	t.Parallel()
	compaction := `{"type":"compaction","content":"What was.","encrypted_content":"eA==","signature":"c2ln","tool_changes":[]}`
	for name, test := range map[string]struct{ member, first string }{
		"an unknown kind of thread": {`"thread":{"type":"branch"}`, ""},
		"a compaction to be made":   {`"compaction":{"type":"summarize"}`, ""},
		"a strict binding":          {`"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"error"}}`, ""},
		"a compaction block first":  {`"metadata":{}`, `{"role":"user","content":[` + compaction + `]}`},
		"of the assistant's":        {`"metadata":{}`, `{"role":"assistant","content":[` + compaction + `]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, conversation.Anthropic, 8_000)
			b.betas = "thinking-binding-controls-2026-08-01"
			c := begun("claude-opus-5-5")
			c.head += "," + test.member
			if test.first != "" {
				c.messages = append([]string{test.first}, c.messages...)
			}
			checkUnedited(t, b, c.filled(12, 1_000).body())
		})
	}
}

// A thread's first request has the whole history, so it is shortened like any other, and the
// provider is not asked to hold it. One that goes on with a thread has a part: it is refused, for its client
// has the rest and sends it, unless it asks to be left alone.
func TestThreadsAreSentWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 8_000)
	c := begun("claude-opus-5-5").filled(12, 1_000)
	plain := c.body()
	c.head += `,"thread":{"type":"create"}`
	first := b.write(c.body())
	if first.Exchange.Report.Compression != pipeline.Epoch || !bytes.Contains(first.Body, []byte(`"thread":null`)) {
		t.Errorf("%s: %.300s", first.Exchange.Report.Compression, first.Body)
	}
	if again := b.write(plain); again.Lane.ID != first.Lane.ID || again.Exchange.Report.Compression != pipeline.Replayed {
		t.Errorf("the same history without a thread: lane %s for %s, %s", again.Lane.ID, first.Lane.ID, again.Exchange.Report.Compression)
	}

	next := []byte(`{"model":"claude-opus-5-5","max_tokens":100,"thread":{"type":"continue","previous_message_id":"msg_1"},"messages":[{"role":"user","content":"more"}]}`)
	request := b.request(next)
	if _, err := b.writer.Write(t.Context(), request); !errors.Is(err, prompt.ErrResumes) {
		t.Errorf("a part of a conversation: %v", err)
	}
	for _, leave := range []func(*prompt.Request){
		func(r *prompt.Request) { r.Bypass = true },
		func(r *prompt.Request) { r.NoStore = true },
	} {
		for _, body := range []string{string(next), `{"model":"claude-opus-5-5","max_tokens":100,"thread":{"type":"create"},"messages":[{"role":"user","content":"hi"}]}`} {
			request := b.request([]byte(body))
			leave(&request)
			if left, err := b.writer.Write(t.Context(), request); err != nil || string(left.Body) != body {
				t.Errorf("left alone: %v, %s", err, left.Body)
			}
		}
	}
}

// The provider compares a retry with the prompt that it refused or did not finish, which is the shortened
// one where that was sent: it goes out again as it stands, with no new compaction.
func TestRetriesThatAreComparedRepeatThePrompt(t *testing.T) {
	t.Parallel()
	for name, member := range map[string]string{
		"on credit":            `"fallback_credit_token":"fct_1"`,
		"on credit, if it may": `"fallback_credit_token":{"token":"fct_1","mode":"best_effort"}`,
		"taken up again":       `"resumption":{"type":"enabled","token":"rt_1"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, conversation.Anthropic, 8_000)
			b.betas = "thinking-binding-controls-2026-08-01"
			untouched := begun("claude-opus-5-5").filled(12, 1_000)
			untouched.head += "," + member
			if written := b.write(untouched.body()); !bytes.Equal(written.Body, untouched.body()) || b.epochs > 0 {
				t.Errorf("nothing was shortened before: %.400s", written.Body)
			}

			c := (&talk{head: `"model":"claude-opus-5-5"`}).user(said("Begin something else.")).filled(12, 1_000)
			refused := b.epoch(c.body())
			c.head += "," + member
			retried := b.write(c.body())
			want := bytes.Replace(refused.Body, []byte(`,"max_tokens"`), []byte(","+member+`,"max_tokens"`), 1)
			if !bytes.Equal(retried.Body, want) || retried.Beta != refused.Beta {
				t.Errorf("refused %.400s\nretried %.400s", refused.Body, retried.Body)
			}
			grown := b.write(c.filled(12, 1_000).body())
			report := grown.Exchange.Report
			if report.Compression != pipeline.Replayed || grown.Exchange.Lane.Projection.Number != refused.Exchange.Lane.Projection.Number {
				t.Errorf("%s by projection %d after %d", report.Compression, grown.Exchange.Lane.Projection.Number, refused.Exchange.Lane.Projection.Number)
			}
			if float64(report.After) < pipeline.SettingsOf[ipc.Config](b.config).TargetUtilization*float64(report.Limit) {
				t.Errorf("%d tokens of %d need no compaction", report.After, report.Limit)
			}
		})
	}
}

// checkUnedited sends a body over its target that must go out as it came, again
// and again.
func checkUnedited(t *testing.T, b *bench, body []byte) {
	t.Helper()
	for range 2 {
		written := b.write(body)
		report := written.Exchange.Report
		if !bytes.Equal(written.Body, body) || written.Beta != "" || report.Compression != pipeline.Bypassed {
			t.Fatalf("%s, beta %q: %.2000s", report.Compression, written.Beta, written.Body)
		}
		if float64(report.Before) < pipeline.SettingsOf[ipc.Config](b.config).TargetUtilization*float64(report.Limit) || b.epochs > 0 {
			t.Fatalf("%d tokens of %d, %d epochs", report.Before, report.Limit, b.epochs)
		}
	}
}

// W40, W41: the provider holds the rest of these histories.
func TestHistoriesThatOpenAIKeepsAreNotEdited(t *testing.T) {
	t.Parallel()
	session := sessiontest.Generate(2, sessiontest.Options{Format: conversation.OpenAIResponses, Turns: 20, TargetTokens: 20_000})
	whole := string(session.Body(session.Steps() - 1))
	for name, change := range map[string]func(string) string{
		"a chain":                   func(body string) string { return `{"previous_response_id":"resp_1",` + body[1:] },
		"a chain of stored answers": func(body string) string { return `{"store":true,"previous_response_id":"resp_1",` + body[1:] },
		"a conversation":            func(body string) string { return `{"conversation":"conv_1",` + body[1:] },
		"a conversation by its id":  func(body string) string { return `{"conversation":{"id":"conv_1"},` + body[1:] },
		"a reference first": func(body string) string {
			return strings.Replace(body, `"input":[`, `"input":[{"type":"item_reference","id":"fc_1"},`, 1)
		},
		"a reference in the middle": func(body string) string {
			return strings.Replace(body, `,{"type":"message","role":"user"`, `,{"id":"ws_1","type":"item_reference"},{"type":"message","role":"user"`, 1)
		},
		"a reference at the very end": func(body string) string {
			return strings.TrimSuffix(body, "]}") + `,{"type":"item_reference","id":"x"}]}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, conversation.OpenAIResponses, 12_000)
			checkUnedited(t, b, []byte(change(whole)))
		})
	}
}

// W13, W26: a body below its target goes out as it came, whatever it holds.
func TestABodyBelowItsTargetIsNotTouched(t *testing.T) {
	t.Parallel()
	for format, body := range map[conversation.Format]string{
		conversation.Anthropic:       "{ \"model\" : \"claude-opus-5-5\",\r\n\t\"max_tokens\":1e3,\"x\":1e400,\"x\":{\"b\":1,\"a\":[ 12345678901234567890 ]}, \"messages\":[ {\"role\":\"user\",\"content\":[{\"type\":\"future\",\"n\":1.0}],\"y\":null} ] }\n",
		conversation.OpenAIChat:      `{"model":"gpt-4.1","messages":[{"role":"narrator","content":"\ud83d\ude00","n":1.0},{"role":"user","content":"hi"}],"future":{"z":1,"a":1E+2}}`,
		conversation.OpenAIResponses: `{"input":"h\u00e9","model":"gpt-6-sol","future":[1e400],"store":null}`,
	} {
		b := newBench(t, format, 100_000)
		if written := b.write([]byte(body)); string(written.Body) != body || written.Beta != "" {
			t.Errorf("%s: beta %q, %s", format, written.Beta, written.Body)
		}
	}
}
