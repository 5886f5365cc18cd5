package summary

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/sessiontest"
)

// prompts are the last prompts of a lane in each format; model is Anthropic's.
func prompts(t *testing.T, d *double, model string) map[conversation.Format][]byte {
	t.Helper()
	all := map[conversation.Format][]byte{}
	for _, codec := range codecs() {
		options := sessiontest.Options{
			Format: codec.Format(), Turns: 20, Parallel: true, Thinking: true, CacheMarkers: true, TargetTokens: 20_000, Signer: d.Double,
		}
		if codec.Format() == conversation.Anthropic {
			options.Model = model
		}
		session := sessiontest.Generate(3, options)
		all[codec.Format()] = session.Body(session.Steps() - 1)
	}
	return all
}

// C9: the body that goes on from a prompt begins with the very bytes of it, tools
// included, is legal, and is read from the provider's cache.
func TestASummaryRidesTheCachedPrompt(t *testing.T) {
	t.Parallel()
	d := newDouble(t, providerdouble.Config{})
	bodies := prompts(t, d, "claude-opus-5-5")
	for _, codec := range codecs() {
		prompt := bodies[codec.Format()]
		call := Call{Codec: codec, Body: prompt}
		if reply, err := d.Ask(t.Context(), call); err != nil || reply.Status != http.StatusOK {
			t.Fatalf("%s: the prompt itself: %v, %s", codec.Format(), err, reply.Body)
		}

		body, ok := basedBody(codec, CachedPrompt{Body: prompt}, appended(Settings{}, true, 1000))

		if !ok {
			t.Fatalf("%s: no body", codec.Format())
		}
		before, err := wire.Open(prompt, codec.List())
		if err != nil {
			t.Fatal(err)
		}
		list := bytes.TrimRight(before.ListBytes(), "] \n")
		if !bytes.Contains(body, list) {
			t.Errorf("%s: the prompt's bytes changed", codec.Format())
		}
		call.Body = body
		reply, err := d.Ask(t.Context(), call)
		if err != nil || reply.Status != http.StatusOK {
			t.Fatalf("%s: %v, %s", codec.Format(), err, reply.Body)
		}
		text, usage, err := reply.read(codec)
		if err != nil || text != providerdouble.Notes {
			t.Errorf("%s: %q, %v", codec.Format(), text, err)
		}
		if usage.CacheRead < usage.Prompt()*8/10 {
			t.Errorf("%s: %+v: the prompt is not read from the cache", codec.Format(), usage)
		}
	}
}

// C9: models that drop the thinking of a loop that has ended would read the loop
// again.
func TestAPromptWhoseThinkingWouldBeDroppedIsNotGoneOnFrom(t *testing.T) {
	t.Parallel()
	body := prompts(t, newDouble(t, providerdouble.Config{}), "claude-sonnet-4-5")[conversation.Anthropic]
	if _, ok := basedBody(codecs()[0], CachedPrompt{Body: body}, "x"); ok {
		t.Error("it rides")
	}
}

// C9: where the answer would be bound to another form, or no message of the user
// may follow, nothing rides.
func TestNotEveryPromptCanBeGoneOnFrom(t *testing.T) {
	t.Parallel()
	for format, members := range map[conversation.Format][]string{
		conversation.Anthropic:       {`"tool_choice":{"type":"any"}`, `"tool_choice":{"type":"tool","name":"a"}`, `"output_config":{"format":{"type":"json_schema"}}`},
		conversation.OpenAIChat:      {`"tool_choice":"required"`, `"response_format":{"type":"json_object"}`, `"n":2`},
		conversation.OpenAIResponses: {`"tool_choice":"required"`, `"text":{"format":{"type":"json_schema"}}`, `"background":true`},
	} {
		for _, codec := range codecs() {
			if codec.Format() != format {
				continue
			}
			build := func(member, last string) []byte {
				return fmt.Appendf(nil, `{"model":"m",%s,%q:[{"role":"user","content":"a"}%s]}`, member, codec.List(), last)
			}
			for _, member := range members {
				if _, ok := basedBody(codec, CachedPrompt{Body: build(member, "")}, "x"); ok {
					t.Errorf("%s rides with %s", format, member)
				}
			}
			if _, ok := basedBody(codec, CachedPrompt{Body: build(`"tool_choice":"auto"`, `,{"role":"assistant","content":"b"}`)}, "x"); ok {
				t.Errorf("%s rides behind an answer that is to be gone on with", format)
			}
			if _, ok := basedBody(codec, CachedPrompt{Body: build(`"n":1,"tool_choice":"auto"`, "")}, "x"); !ok {
				t.Errorf("%s does not base at all", format)
			}
		}
	}
}

// C9, W32: Claude Code ends the prompts of its newest models with a system message, which
// no message of the user may follow: the summary is asked for in its place.
func TestPromptThatEndsWithASystemMessageIsGoneOnFromBeforeIt(t *testing.T) {
	t.Parallel()
	left := `{"role":"system","content":"<system-reminder>1 tokens left</system-reminder>"}`
	prompt := func(messages string) []byte {
		return []byte(`{"model":"claude-sonnet-5","messages":[` + messages + `]}`)
	}

	body, ok := basedBody(codecs()[0], CachedPrompt{Body: prompt(`{"role":"user","content":"a"},` + left)}, "x")

	if !ok || bytes.Contains(body, []byte("system-reminder")) || !bytes.Contains(body, []byte(`{"role":"user","content":"a"},{"role":"user"`)) {
		t.Errorf("%v: %s", ok, body)
	}
	if _, ok := basedBody(codecs()[0], CachedPrompt{Body: prompt(left)}, "x"); ok {
		t.Error("a prompt of system messages alone is gone on from")
	}
}

// C9, D10: a request of its own is legal in every format, without tools and
// without thinking, also for models that do not let themselves be told.
func TestARequestOfItsOwnIsLegal(t *testing.T) {
	t.Parallel()
	models, err := tokens.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	d := newDouble(t, providerdouble.Config{})
	for _, test := range []struct {
		codec int
		model string
	}{
		{0, "claude-haiku-4-5"}, {0, "claude-sonnet-5"}, {0, "claude-opus-5-5"}, {0, "claude-haiku-5-5"}, {0, "claude-fable-5"},
		{1, "gpt-4o"}, {1, "gpt-5.4-mini"}, {1, "o3"}, {2, "gpt-5.5"}, {2, "gpt-4.1"},
	} {
		l := newLane().user("Go.").work(20)
		codec := codecs()[test.codec]
		m := &maker{job: l.job(), provider: d.Ask, models: models, count: newCounter(t).Count, budget: 2_000}
		m.job.Codec = codec
		own, _ := m.own(test.model)
		own.user = asked("", []string{"[#0 user]\n| Go.\n"}, 2)

		text, err := m.askOwn(t.Context(), test.model, own)

		if err != nil || text != providerdouble.Notes {
			t.Errorf("%s: %q, %v", test.model, text, err)
		}
		calls := d.asked()
		last := calls[len(calls)-1]
		if bytes.Contains(last.Body, []byte(`"tools"`)) || !bytes.Contains(last.Body, []byte("2 earlier turns left out")) {
			t.Errorf("%s: %s", test.model, last.Body)
		}
	}
}

// C9: the form that costs less is chosen: a small model for a small price, the
// lane's own where its cache makes it cheaper.
func TestTheCheaperFormIsChosen(t *testing.T) {
	t.Parallel()
	models, err := tokens.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	sonnet, haiku, unknown := models.Lookup("claude-sonnet-4-5"), models.Lookup("claude-haiku-4-5"), models.Lookup("house-model")
	for name, test := range map[string]struct {
		base, own offer
		want      bool
	}{
		"same model, all cached":        {offer{sonnet, 150_000, 148_000, 2_000}, offer{sonnet, 60_000, 0, 2_000}, true},
		"same model, cold":              {offer{sonnet, 150_000, 0, 2_000}, offer{sonnet, 60_000, 0, 2_000}, false},
		"same model, few turns to tell": {offer{sonnet, 150_000, 148_000, 2_000}, offer{sonnet, 9_000, 0, 2_000}, false},
		"a small model":                 {offer{sonnet, 150_000, 148_000, 2_000}, offer{haiku, 30_000, 0, 2_000}, false},
		"a small model, much to tell":   {offer{sonnet, 150_000, 150_000, 1_000}, offer{haiku, 140_000, 0, 1_000}, true},
		"no price known":                {offer{unknown, 150_000, 148_000, 2_000}, offer{unknown, 60_000, 0, 2_000}, true},
		"one price unknown":             {offer{unknown, 150_000, 148_000, 2_000}, offer{haiku, 60_000, 0, 2_000}, false},
	} {
		if got := ridesCheaper(test.base, test.own); got != test.want {
			t.Errorf("%s: rides %v, at %.0f against %.0f", name, got, test.base.microUSD(), test.own.microUSD())
		}
	}
}

// moved is a provider at which the workspace has another account by now.
type moved struct{ *double }

// Ask implements Provider.
func (m moved) Ask(ctx context.Context, call Call) (Reply, error) {
	reply, err := m.double.Ask(ctx, call)
	if call.Account != uuid.Nil {
		return Reply{}, ErrOtherAccount
	}
	return reply, err
}

// A8: what only one account can read goes to no other: the turns are told in words.
func TestAtAnotherAccountTheTurnsAreTold(t *testing.T) {
	t.Parallel()
	l := newLane().user("Go.").work(10).add(
		`{"role":"assistant","content":[{"type":"thinking","thinking":"SECRET","signature":"SEALED-1"},{"type":"redacted_thinking","data":"SEALED-2"},` +
			`{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","encrypted_content":"SEALED-3"}]},` +
			`{"type":"text","text":"Found."}]}`,
	).user("Go on.").work(10)
	d := newDouble(t, providerdouble.Config{})
	job := l.job()
	job.Settings.Model = sameModel
	job.Base = &CachedPrompt{
		Body:   fmt.Appendf(nil, `{"model":"claude-opus-5","max_tokens":2000,"messages":[%s]}`, strings.Join(l.messages, ",")),
		Tokens: 20_000, Cached: 20_000, Account: uuid.New(),
	}

	attempt := newBench(t, l, moved{d}).do(t, job)

	calls := d.asked()
	if len(calls) != 2 || calls[0].Account != job.Base.Account || calls[1].Account != uuid.Nil {
		t.Fatalf("%d calls: %+v", len(calls), attempt)
	}
	if attempt.Form != FormOwn || attempt.Reason != "" || bytes.Contains(calls[1].Body, []byte("SEALED")) || bytes.Contains(calls[1].Body, []byte("SECRET")) {
		t.Errorf("%+v: %s", attempt, calls[1].Body)
	}
}

// C9: the worker rides where that is cheaper; a prompt that would no longer fit
// goes the other way.
func TestTheWorkerRidesWhereThatIsCheaper(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		window int
		want   string
	}{{200_000, FormCached}, {4_000, FormOwn}} {
		l := newLane().user("Go.").work(30)
		d := newDouble(t, providerdouble.Config{})
		job := l.job()
		job.Settings.Model, job.Window = sameModel, test.window
		job.Base = &CachedPrompt{
			Body:   fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","max_tokens":2000,"messages":[%s]}`, strings.Join(l.messages, ",")),
			Tokens: 20_000, Cached: 20_000,
		}
		attempt := newBench(t, l, d).do(t, job)
		if attempt.Form != test.want || attempt.Model != "claude-sonnet-4-5" {
			t.Errorf("window %d: %+v", test.window, attempt)
		}
	}
}
