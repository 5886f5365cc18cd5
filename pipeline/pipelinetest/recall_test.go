package pipelinetest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fidelity"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/openaichat"
)

// D5: what is wanted, what is kept and what first sentences would keep are counted as
// the description says.
func TestRecallCountsWhatLaterTurnsUse(t *testing.T) {
	t.Parallel()

	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	codec := openaichat.New()
	const later = `{"role":"user","content":"And oldCookie?"},{"role":"assistant","content":"In web/jar.go it is 4711."}`
	head := []string{
		`{"role":"user","content":"Fix it. ` + strings.Repeat("It is a long story. ", 20) + `"}`,
		`{"role":"assistant","content":"Well. The cause is handleLogin in api/login.go, with oldCookie and 4711, not neverUsed."}`,
		`{"role":"user","content":"Edit api/login.go then, oldCookie is known."}`,
	}
	body := `{"model":"gpt-4.1","messages":[` + strings.Join(head, ",") + `]}`
	exchange := pipelinetest.NewExchange(t, codec, []byte(body), pipelinetest.Options{Counter: counter, Config: modules.Catalog().Default(), Limit: 1000})
	var all []conversation.Message
	for _, raw := range append(head, strings.SplitAfter(later, `"},`)...) {
		message, err := codec.Parse(json.RawMessage(strings.TrimSuffix(raw, ",")))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, message)
	}

	of := pipelinetest.Shortened{Codec: codec, Session: fidelity.NamesOf(all), Sent: len(exchange.Conversation.Digests), Turns: exchange.Conversation.Turns}
	if none, err := pipelinetest.RecallOf(of, counter.Count); err != nil || none != (pipelinetest.Recall{}) {
		t.Errorf("without a projection: %+v, %v", none, err)
	}
	of.Projection = &session.Projection{Covers: 2, Parts: []session.Part{
		{From: 0, To: 2, Level: 2, Raw: json.RawMessage(`{"role":"user","content":"Fix it: 4711 in api/login.go"}`), Messages: 1},
	}}
	known, err := pipelinetest.RecallOf(of, counter.Count)
	if err != nil || known.Wanted != 3 || known.Kept != 2 || known.First != 0 || known.FirstTokens < known.Tokens {
		t.Errorf("got %+v, %v", known, err)
	}
	of.Since = of.Sent
	unforeseen, err := pipelinetest.RecallOf(of, counter.Count)
	if err != nil || unforeseen.Wanted != 1 || unforeseen.Kept != 1 {
		t.Errorf("got %+v, %v", unforeseen, err)
	}
	sum := known.Add(unforeseen)
	if kept, first := sum.Share(); sum.Wanted != 4 || kept != 0.75 || first != 0 {
		t.Errorf("got %+v: %v, %v", sum, kept, first)
	}
	if kept, first := (pipelinetest.Recall{}).Share(); kept != 1 || first != 1 {
		t.Errorf("of nothing %v and %v are left", kept, first)
	}
}
