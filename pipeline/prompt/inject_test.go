package prompt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// notes is a module that puts what it is given into the next prompt.
type notes struct {
	name, placement string
	next            string
	took            bool // the last one went in
}

func (n *notes) Name() string { return n.name }

func (n *notes) Process(_ context.Context, exchange *pipeline.View) (*pipeline.Draft, error) {
	draft := exchange.Draft(n.name)
	if n.next != "" {
		n.took = draft.Inject(n.placement, n.next, []string{"#1", "#2"})
		n.next = ""
	}
	return draft, nil
}

// noting has a bench run a module that injects beside ipc.
func (b *bench) noting(name, placement string) *notes {
	b.t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		b.t.Fatal(err)
	}
	module := &notes{name: name, placement: placement}
	b.writer.Chain = pipeline.NewChain(ipc.New(counter.Message), module)
	return module
}

// script says the same short conversation in a format, request by request.
func script(format conversation.Format, requests int) []byte {
	switch format {
	case conversation.Anthropic:
		c := begun("claude-sonnet-4-5")
		c.head += `,"system":"Be brief."`
		c.messages = []string{`{"content":"Please \u0062egin." ,"role":"user"}`}
		for i := 1; i < requests; i++ {
			id := fmt.Sprintf("toolu_%d", i)
			c.assistant(said("I look."), call(id)).user(result(id, `"done"`), said(fmt.Sprintf("Now step %d.", i)))
		}
		return c.body()
	case conversation.OpenAIChat:
		c := chat().add(`{"role":"developer","content":"Be brief."}`, `{"role":"user","content":"Please begin."}`)
		for i := 1; i < requests; i++ {
			c.add(`{"role":"assistant","content":"Yes."}`, fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"Now step %d."}]}`, i))
		}
		return c.body()
	default:
		c := (&list{head: `"model":"gpt-5.1-codex","instructions":"Be brief.","store":false`, name: "input"}).add(`{"role":"user","content":"Please begin."}`)
		for i := 1; i < requests; i++ {
			c.add(`{"role":"assistant","content":"Yes."}`, fmt.Sprintf(`{"type":"message","role":"user","content":[{"type":"input_text","text":"Now step %d."}]}`, i))
		}
		return c.body()
	}
}

// A message that the provider has seen is sent with the same bytes for ever, with
// what was put into it, by this process and by one that starts again; nothing but
// messages with inserts is written again. A10, W13.
func TestInsertsStayWhereTheyWerePut(t *testing.T) {
	t.Parallel()
	for _, format := range []conversation.Format{conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			store := session.NewMemory()
			b := newBenchWith(t, store, format, 100_000)
			module := b.noting("rehydrator", pipeline.PlacementTurn)
			var before [][]byte
			for request := 1; request <= 4; request++ {
				if request != 3 {
					module.next = fmt.Sprintf("[note %d] <é> \"quoted\"", request)
				}
				sent := b.send(script(format, request))
				list, came := b.elements(sent.Body), b.elements(script(format, request))
				for i := range before {
					if !bytes.Equal(before[i], list[i]) {
						t.Errorf("request %d: message %d changed from\n%s to\n%s", request, i, before[i], list[i])
					}
				}
				if holdsNote := bytes.Contains(list[len(list)-1], fmt.Appendf(nil, "[note %d]", request)); holdsNote != (request != 3) {
					t.Errorf("request %d ends with %s", request, list[len(list)-1])
				}
				if request == 3 && !bytes.Equal(list[len(list)-1], came[len(came)-1]) {
					t.Errorf("a message without insert was written again: %s", list[len(list)-1])
				}
				before = list
				sent.Sent()
			}
			again := newBenchWith(t, store, format, 100_000)
			again.scope = b.scope
			record(t, store, b, script(format, 4))
			sent := again.send(script(format, 5))
			if list := again.elements(sent.Body); !slices.EqualFunc(before, list[:len(before)], bytes.Equal) {
				t.Errorf("after a restart the prompt begins with\n%s, not\n%s", bytes.Join(list, []byte(",\n")), bytes.Join(before, []byte(",\n")))
			}
			if got := sent.Exchange.Injected("rehydrator"); len(got) != 3 || len(got[2].Items) != 2 || got[2].Tokens == 0 {
				t.Errorf("known after a restart: %+v", got)
			}
		})
	}
}

// record has a store know a request's end, as the recorder does after each.
func record(t *testing.T, store session.Store, b *bench, body []byte) {
	t.Helper()
	if err := store.Record(t.Context(), b.scope.Workspace, []session.Update{b.write(body).Update(b.writer.Now())}); err != nil {
		t.Fatal(err)
	}
}

// Behind the system prompt an insert stands from then on, whatever is added later.
func TestInsertsBehindTheSystemPromptStay(t *testing.T) {
	t.Parallel()
	const first, second = "Mind the tests.", "Mind the docs."
	for format, want := range map[conversation.Format][2]string{
		conversation.Anthropic: {
			`"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"Mind the tests."}]`,
			`"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"Mind the tests."},{"type":"text","text":"Mind the docs."}]`,
		},
		conversation.OpenAIChat: {
			`"messages":[{"role":"developer","content":"Be brief."},{"role":"developer","content":"Mind the tests."},{"role":"user","content":"Please begin."}`,
			`"messages":[{"role":"developer","content":"Be brief."},{"role":"developer","content":"Mind the tests."},{"role":"developer","content":"Mind the docs."},{"role":"user","content":"Please begin."}`,
		},
		conversation.OpenAIResponses: {`"instructions":"Be brief.\n\nMind the tests."`, `"instructions":"Be brief.\n\nMind the tests.\n\nMind the docs."`},
	} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, format, 100_000)
			module := b.noting("patterns", pipeline.PlacementSystem)
			for request, text := range []string{"", first, "", second, ""} {
				module.next = text
				sent := b.send(script(format, request+1))
				sent.Sent()
				switch request {
				case 0:
					lacks(t, sent.Body, first, second)
				default:
					holds(t, sent.Body, want[request/3])
				}
			}
		})
	}
}

// The same message gives the same content whether its text comes as a string or as
// an array, and wherever the client's cache marker stands.
func TestInsertsFollowTheContentNotItsForm(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 100_000)
	module := b.noting("rehydrator", pipeline.PlacementTurn)
	module.next = "[note]"
	c := begun("claude-sonnet-4-5")
	c.messages = []string{`{"role":"user","content":"Please begin."}`}
	holds(t, b.send(c.body()).Body, `{"role":"user","content":[{"type":"text","text":"Please begin."},{"type":"text","text":"[note]"}]}`)

	c.messages = []string{`{"role":"user","content":[{"type":"text","text":"Please begin.","cache_control":{"type":"ephemeral"}}]}`}
	c.assistant(said("Yes.")).user(said("Go on."))
	holds(t, b.send(c.body()).Body,
		`{"role":"user","content":[{"type":"text","text":"Please begin.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"[note]"}]}`)
}

// Only a message of the user that the provider has not seen takes text: neither tool
// outputs, nor what is warm, nor a history that must stay as it is, nor a call aside.
func TestThereIsNotAlwaysAPlace(t *testing.T) {
	t.Parallel()
	frozen := func(b *bench, body []byte) []byte {
		if b.scope.Format == conversation.OpenAIResponses {
			return bytes.Replace(body, []byte(`"store":false`), []byte(`"previous_response_id":"resp_1"`), 1)
		}
		return body
	}
	for name, c := range map[string]struct {
		format conversation.Format
		body   func(b *bench) []byte
	}{
		"tool outputs of Chat": {conversation.OpenAIChat, func(b *bench) []byte {
			c := chat().add(`{"role":"user","content":"Begin."}`)
			b.send(c.body()).Sent()
			return c.filledChat(1, 10).body()
		}},
		"tool outputs of Responses": {conversation.OpenAIResponses, func(b *bench) []byte {
			c := (&list{head: `"model":"gpt-5.1-codex"`, name: "input"}).add(`{"role":"user","content":"Begin."}`)
			b.send(c.body()).Sent()
			return c.filledItems(1, 10).body()
		}},
		"a prompt sent again": {conversation.Anthropic, func(b *bench) []byte {
			b.send(script(b.scope.Format, 2)).Sent()
			return script(b.scope.Format, 2)
		}},
		"a history at the provider": {conversation.OpenAIResponses, func(b *bench) []byte { return frozen(b, script(b.scope.Format, 1)) }},
		"a bypass": {conversation.Anthropic, func(b *bench) []byte {
			b.bypass = true
			return script(b.scope.Format, 1)
		}},
		"a title": {conversation.Anthropic, func(*bench) []byte {
			return []byte(`{"model":"claude-haiku-4-5","max_tokens":512,"system":"Generate a concise, sentence-case title (3-7 words)","messages":[{"role":"user","content":"<session>Fix it</session>"}],"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"title":{"type":"string"}}}}}}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.format, 100_000)
			module := b.noting("rehydrator", pipeline.PlacementTurn)
			body := c.body(b)
			module.next, module.took = "[note]", true
			if sent := b.write(body); module.took || !bytes.Equal(sent.Body, body) {
				t.Errorf("injected: %t; %s", module.took, sent.Body)
			}
		})
	}
}

// W45: behind a compaction of the provider's own, of which only the provider knows what
// it says, text goes into what the person typed after it and nowhere else.
func TestInsertsGoBehindASealedCompaction(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.OpenAIResponses, 100_000)
	module := b.noting("rehydrator", pipeline.PlacementTurn)
	items := (&list{head: `"model":"gpt-5.1-codex","store":false`, name: "input"}).add(
		`{"role":"user","content":"Begin."}`, `{"type":"compaction","id":"cmp_1","encrypted_content":`+quoted(b.double.Redact("cmp_1"))+`}`,
	)
	before := string(items.body())
	module.next, module.took = "[note]", true
	if written := b.send([]byte(before)); module.took || string(written.Body) != before {
		t.Errorf("injected: %t; %s", module.took, written.Body)
	}

	module.next = "[note]"
	written := b.send(items.add(`{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}`).body())
	if want := strings.TrimSuffix(before, "]}") + `,{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."},{"type":"input_text","text":"[note]"}]}]}`; string(written.Body) != want {
		t.Errorf("sent %s, want %s", written.Body, want)
	}
}

// A dry run says what would go in, and nothing does.
func TestADryRunInjectsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 100_000)
	b.noting("rehydrator", pipeline.PlacementTurn).next = "[note]"
	body := script(b.scope.Format, 1)
	written, err := b.writer.Write(t.Context(), prompt.Request{
		Scope: b.scope, Codec: b.codec, Config: b.config, Body: body, DryRun: true, Headers: b.headers, Path: paths()[b.scope.Format],
	})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written.Body, body) || written.Trial.Injected["rehydrator"] != 2 || written.Exchange.Report.Injected != nil {
		t.Errorf("trial %+v, body %s", written.Trial, written.Body)
	}
	if sent := b.send(script(b.scope.Format, 2)); len(sent.Exchange.Lane.Inserts) != 0 {
		t.Errorf("%+v", sent.Exchange.Lane.Inserts)
	}
}

// A history that leaves another one keeps the inserts of what it shares alone.
func TestARewoundHistoryKeepsTheInsertsItShares(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 100_000)
	module := b.noting("rehydrator", pipeline.PlacementTurn)
	for request := 1; request <= 3; request++ {
		module.next = fmt.Sprintf("[note %d]", request)
		b.send(script(b.scope.Format, request)).Sent()
	}
	other := bytes.ReplaceAll(script(b.scope.Format, 4), []byte("Now step 2."), []byte("Another way."))
	module.next = "[note other]"
	fork := b.send(other)
	holds(t, fork.Body, "[note 1]", "[note 2]", "[note other]")
	lacks(t, fork.Body, "[note 3]")
	if fork.Lane.Ancestry.Parent == uuid.Nil {
		t.Error("it is no fork")
	}
	fork.Sent()
	back := b.send(script(b.scope.Format, 4))
	holds(t, back.Body, "[note 1]", "[note 2]", "[note 3]")
	lacks(t, back.Body, "[note other]")
}

// refusing is a store that keeps no inserts.
type refusing struct{ *session.Memory }

var errFull = errors.New("disk full")

func (refusing) Inject(context.Context, session.Update, []session.Insert) error { return errFull }

// W25: what cannot be made durable does not go out; its module has failed.
func TestInsertsThatCannotBeStoredAreTakenOut(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, refusing{session.NewMemory()}, 100_000)
	b.noting("patterns", pipeline.PlacementTurn).next = "[note]"
	body := script(b.scope.Format, 1)
	written, err := b.writer.Write(t.Context(), prompt.Request{Scope: b.scope, Codec: b.codec, Config: b.config, Body: body, Headers: b.headers, Path: paths()[b.scope.Format]})
	if err != nil {
		t.Fatal(err)
	}
	report := written.Exchange.Report
	failed := slices.ContainsFunc(report.Events, func(event pipeline.ReportEntry) bool {
		return event.Module == "patterns" && event.Type == "failed" && strings.Contains(event.Reason, errFull.Error()) && event.FellBackTo == "original"
	})
	if !failed || !slices.Contains(report.Modules, pipeline.ModuleReport{Name: "patterns", Outcome: pipeline.Failed}) || report.Injected != nil || report.After != report.Before {
		t.Errorf("report %+v", report)
	}
	if !bytes.Equal(written.Body, body) || len(written.Exchange.Lane.Inserts) != 0 {
		t.Errorf("sent %s", written.Body)
	}
}

// Of two replicas that put something into a lane at once one wins; the other goes
// without, and with the winner's text from the next request on.
func TestOnlyOneReplicaInjects(t *testing.T) {
	t.Parallel()
	store := session.NewMemory()
	one, two := newBenchOn(t, store, 100_000), newBenchOn(t, store, 100_000)
	two.scope = one.scope
	record(t, store, one, script(one.scope.Format, 2))
	two.send(script(one.scope.Format, 2)) // both know the lane
	one.noting("rehydrator", pipeline.PlacementTurn).next = "[note of one]"
	two.noting("rehydrator", pipeline.PlacementTurn).next = "[note of two]"
	holds(t, one.send(script(one.scope.Format, 3)).Body, "[note of one]")

	body := script(one.scope.Format, 3)
	lost, err := two.writer.Write(t.Context(), prompt.Request{Scope: two.scope, Codec: two.codec, Config: two.config, Body: body, Headers: two.headers, Path: paths()[two.scope.Format]})
	if err != nil || !bytes.Equal(lost.Body, body) {
		t.Errorf("%v: %s", err, lost.Body)
	}
	record(t, store, one, script(one.scope.Format, 3))
	holds(t, two.send(script(one.scope.Format, 4)).Body, "[note of one]")
}

// The count of a prompt has what stands in it, and adds nothing.
func TestACountSeesTheInserts(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 100_000)
	module := b.noting("rehydrator", pipeline.PlacementTurn)
	module.next = "[note]"
	sent := b.send(script(b.scope.Format, 2))
	module.next = "[another]"
	count, err := b.writer.Count(t.Context(), prompt.Request{Scope: b.scope, Codec: b.codec, Config: b.config, Body: script(b.scope.Format, 2), Headers: b.headers, Path: "/v1/messages/count_tokens"})
	if err != nil || !bytes.Equal(count.Body, sent.Body) || count.Exchange.Report.After != sent.Exchange.Report.After {
		t.Errorf("%v: counted %s", err, count.Body)
	}
}

// Inserts count in sizes, and a reported size holds those that were in its prompt.
func TestInsertsCount(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 3_000)
	module := b.noting("rehydrator", pipeline.PlacementTurn)
	plain := b.send(script(b.scope.Format, 1)).Exchange.Report
	module.next = words(400)
	sent := b.send(script(b.scope.Format, 2))
	report, tokens := sent.Exchange.Report, sent.Exchange.Lane.Inserts[0].Tokens
	// The whole prompt is rounded, and what was put in.
	if more := report.After - report.Before - int(float64(tokens)*sent.Exchange.Limits.Factor); tokens < 300 || more < 0 || more > 1 || plain.After != plain.Before {
		t.Errorf("%d tokens, report %+v", tokens, report)
	}
	b.writer.Answered(sent.Sent(), wire.Answer{Usage: wire.Usage{Reported: true, Input: 1234}})
	next := b.send(script(b.scope.Format, 2))
	if got := next.Exchange.Report; got.After != 1234 || got.Before != 1234-int(float64(tokens)*next.Exchange.Limits.Factor) {
		t.Errorf("after an answer: %+v", got)
	}
	module.next = words(5_000)
	if full := b.send(script(b.scope.Format, 3)); module.took || len(full.Exchange.Lane.Inserts) != 1 {
		t.Errorf("an insert of 5000 tokens went into a window of 3000: %+v", full.Exchange.Report)
	}
}

// An epoch that folds a message drops what was put into it; what it leaves as it was
// keeps it, and the bridge's turn is left.
func TestAnEpochDropsTheInsertsOfWhatItFolds(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 20_000)
	c := begun("claude-sonnet-4-5")
	b.noting("compaction-bridge", pipeline.PlacementTurn).next = "[bridge note]"
	c.filled(2, 200)
	b.send(c.body()).Sent()
	module := b.noting("rehydrator", pipeline.PlacementTurn)
	for turn := 0; b.epochs == 0; turn++ {
		module.next = fmt.Sprintf("[note %d.] %s", turn, words(100))
		if turn > 60 {
			t.Fatal("no epoch")
		}
		sent := b.send(c.filled(1, 700).body())
		sent.Sent()
		if got, want := len(sent.Exchange.Lane.Inserts), turn+2; got != want {
			t.Fatalf("%d inserts, want %d: %+v", got, want, sent.Exchange.Report)
		}
		if report := sent.Exchange.Report; report.After > report.Limit {
			t.Fatalf("%d of %d tokens", report.After, report.Limit)
		}
	}
	for range 3 {
		sent := b.send(c.filled(1, 100).body())
		sent.Sent()
		holds(t, sent.Body, "[bridge note]")
		lacks(t, sent.Body, "[note 0.]")
		for i := range sent.Exchange.Lane.Inserts {
			insert := &sent.Exchange.Lane.Inserts[i]
			if stands := insert.Stands(sent.Exchange.Lane.Projection); stands != bytes.Contains(sent.Body, []byte(quoted(insert.Text))) {
				t.Errorf("stands: %t: %.40s", stands, insert.Text)
			}
		}
		if got := sent.Exchange.Injected("rehydrator"); !strings.HasPrefix(got[len(got)-1].Text, "[note ") || !bytes.Contains(sent.Body, []byte(quoted(got[len(got)-1].Text))) {
			t.Errorf("the newest insert is gone: %.80s", got[len(got)-1].Text)
		}
	}
}

// A prompt that the provider finds too long goes out without what it was the first
// to hold, where nothing else makes it fit; what stood before stays.
func TestEmergencyMayTakeFreshInsertOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 100_000)
	module := b.noting("rehydrator", pipeline.PlacementTurn)
	module.next = "[old note]"
	b.send(script(b.scope.Format, 1)).Sent()
	module.next = "[new note] " + words(2_000)
	refused := b.send(script(b.scope.Format, 2))
	refused.Archiving = time.Hour
	shrunk, ok := b.writer.Shrink(t.Context(), refused, wire.Overflow{Window: 2_500, Tokens: 2_600})
	if !ok {
		t.Fatal("not shrunk")
	}
	if shrunk.Archiving < time.Hour {
		t.Errorf("the time that the first attempt took is forgotten: %s", shrunk.Archiving)
	}
	holds(t, shrunk.Body, "[old note]")
	lacks(t, shrunk.Body, "[new note]")
	if report := shrunk.Exchange.Report; report.Injected != nil || report.Compression != pipeline.Emergency || !slices.ContainsFunc(report.Events, func(event pipeline.ReportEntry) bool { return event.Type == "withdrawn" && event.Counts["items"] == 2 }) {
		t.Errorf("report %+v", report)
	}
	shrunk.Sent()
	next := b.send(script(b.scope.Format, 3))
	holds(t, next.Body, "[old note]")
	lacks(t, next.Body, "[new note]")
}

// Two inserts of one request have two numbers, and the messages of the request are durable with them.
func TestInsertsOfOneRequestAreNumbered(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 100_000)
	one, two := &notes{name: "rehydrator", placement: pipeline.PlacementTurn}, &notes{name: "patterns", placement: pipeline.PlacementTurn}
	b.writer.Chain = pipeline.NewChain(one, two)
	for request := range 2 {
		one.next, two.next = "[one]", "[two]"
		sent := b.send(script(b.scope.Format, request+1))
		inserts := sent.Lane.Inserts(sent.Exchange.Conversation.Chain)
		for i := range inserts {
			if inserts[i].Number != i+1 {
				t.Errorf("request %d: insert %d has the number %d", request, i, inserts[i].Number)
			}
		}
		if messages := len(sent.Exchange.Conversation.Digests); len(inserts) != 2*(request+1) || sent.Lane.Archived() != messages {
			t.Errorf("request %d: %d inserts, %d of %d messages are archived", request, len(inserts), sent.Lane.Archived(), messages)
		}
		sent.Sent()
	}
}
