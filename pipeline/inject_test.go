package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/openaichat"
)

// injecting is a module that puts a text into every prompt and then ends as told.
type injecting struct {
	name, placement string
	end             error
}

func (i injecting) Name() string { return i.name }

func (i injecting) Process(_ context.Context, exchange *pipeline.View) (*pipeline.Draft, error) {
	draft := exchange.Draft(i.name)
	draft.Inject(i.placement, "["+i.name+"]", []string{"#1"})
	return draft, i.end
}

// A module that fails after it has put something in leaves nothing of it; those
// before and after it keep theirs.
func TestWhatAFailedModuleInjectedIsUndone(t *testing.T) {
	t.Parallel()
	exchange := newExchange(t, "one", "two", "three")
	chain := pipeline.NewChain(injecting{name: "one"}, injecting{name: "two", end: errors.New("late")}, injecting{name: "three", placement: pipeline.PlacementSystem})
	chain.Process(t.Context(), exchange)

	want := []pipeline.ModuleReport{{Name: "one", Outcome: pipeline.Applied}, {Name: "two", Outcome: pipeline.Failed}, {Name: "three", Outcome: pipeline.Applied}}
	if !slices.Equal(exchange.Report.Modules, want) || exchange.Report.Injected["one"] != 1 || exchange.Report.Injected["two"] != 0 {
		t.Errorf("report %+v", exchange.Report)
	}
	const body = `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":[{"type":"text","text":"three"},{"type":"text","text":"[one]"}]}],"system":[{"type":"text","text":"[three]"}]}`
	if sealed := pipelinetest.Seal(exchange); string(sealed) != body {
		t.Errorf("sealed %s", sealed)
	}
	if got := exchange.Injected("one"); len(got) != 1 || got[0].Message != 2 || got[0].Chain != exchange.Conversation.Chain[3] || got[0].Tokens == 0 {
		t.Errorf("injected %+v", got)
	}
	if size := exchange.Size(nil); exchange.Report.After != size || exchange.Report.Before >= size {
		t.Errorf("size %d, report %+v", size, exchange.Report)
	}
}

// What one exchange injects never shows in another that began from the same lane.
func TestExchangesOfALaneShareNoInserts(t *testing.T) {
	t.Parallel()
	standing := make([]session.Insert, 0, 8)
	standing = append(standing, session.Insert{Number: 1, Message: 0, Text: "[old]"})
	first, second := newExchange(t), newExchange(t)
	for _, exchange := range []*pipeline.Exchange{first, second} {
		exchange.Lane.Inserts = standing
		standing[0].Chain = exchange.Conversation.Chain[1]
	}
	inject(first, "one", pipeline.PlacementTurn, "first")
	inject(second, "one", pipeline.PlacementTurn, "second")
	if first.Lane.Inserts[1].Text != "first" || second.Lane.Inserts[1].Text != "second" || len(first.Fresh()) != 1 {
		t.Errorf("%+v, %+v", first.Lane.Inserts, second.Lane.Inserts)
	}
}

// inject has an exchange take a draft into which a module injects.
func inject(exchange *pipeline.Exchange, module, placement, text string, items ...string) bool {
	draft := exchange.Draft(module)
	injected := draft.Inject(placement, text, items)
	exchange.Take(draft)
	return injected
}

func TestInjectRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*pipeline.Exchange){
		"a frozen history":       func(e *pipeline.Exchange) { e.Request.ReadOnly = "thread" },
		"a settled prompt":       func(e *pipeline.Exchange) { e.Lane.Finalized = true },
		"a title":                func(e *pipeline.Exchange) { e.Class.Kind = client.Title },
		"too little room":        func(e *pipeline.Exchange) { e.Limits.Limit = e.Size(nil) + 1 },
		"what was seen":          func(e *pipeline.Exchange) { e.Lane.Heat = session.CacheState{At: time.Now(), Position: 3} },
		"what a projection says": func(e *pipeline.Exchange) { e.Lane.Projection = rendered(e, 0, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exchange := newExchange(t)
			change(exchange)
			if inject(exchange, "one", pipeline.PlacementTurn, "text") || len(exchange.Lane.Inserts) > 0 || exchange.Report.Injected != nil {
				t.Errorf("injected %+v", exchange.Lane.Inserts)
			}
		})
	}
	if exchange := newExchange(t); inject(exchange, "one", pipeline.PlacementTurn, " \x00\n") {
		t.Error("a blank text went in")
	}
	exchange := newExchange(t)
	exchange.Lane.Heat = session.CacheState{At: time.Now(), Position: 3}
	if !inject(exchange, "one", pipeline.PlacementSystem, "a\x00b\xff", "c\x00") || exchange.Lane.Inserts[0].Text != "ab\uFFFD" || exchange.Lane.Inserts[0].Items[0] != "c" {
		t.Errorf("behind the system prompt: %+v", exchange.Lane.Inserts)
	}
}

// rendered returns a projection that renders messages from from to to (excluded) and
// leaves those before them.
func rendered(exchange *pipeline.Exchange, from, to int) *session.Projection {
	projection := &session.Projection{Number: 1, Covers: to, Chain: exchange.Conversation.Chain[to]}
	if from > 0 {
		projection.Parts = append(projection.Parts, session.Part{From: 0, To: from, Messages: from})
	}
	projection.Parts = append(projection.Parts,
		session.Part{From: from, To: to - 1, Level: 2, Raw: json.RawMessage{}},
		session.Part{From: to - 1, To: to, Level: 3, Raw: json.RawMessage(`{"role":"user","content":"record"}`), Tokens: 3, Messages: 1})
	return projection
}

// Inserts stand behind what a projection leaves as it was, in front of it and
// behind it, and not in what it renders.
func TestInsertsStandBesideAProjection(t *testing.T) {
	t.Parallel()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"model":"m","messages":[{"role":"system","content":"s"}, {"role":"user","content":"one"}, {"role":"assistant","content":"two"}, {"role":"user","content":"three"}, {"role":"assistant","content":"four"}, {"role":"user","content":"five"}]}`
	exchange := pipelinetest.NewExchange(t, openaichat.New(), []byte(body), pipelinetest.Options{Counter: counter, Config: modules.Catalog().Default(), Limit: 1000})
	for i, message := range []int{session.InSystem, 1, 3, 5, 5} {
		exchange.Lane.Inserts = append(exchange.Lane.Inserts, session.Insert{
			Number: i + 1, Message: message, Chain: exchange.Conversation.Chain[message+1], Text: strings.Repeat("x", i+1), Tokens: 1 << i,
		})
	}
	exchange.Lane.Projection = rendered(exchange, 2, 5)
	const want = `{"model":"m","messages":[{"role":"system","content":"s"}, {"role":"system","content":"x"},{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"xx"}]}, {"role":"user","content":"record"}, {"role":"user","content":[{"type":"text","text":"five"},{"type":"text","text":"xxxx"},{"type":"text","text":"xxxxx"}]}]}`
	if sealed := string(pipelinetest.Seal(exchange)); strings.ReplaceAll(sealed, "}, {", "},{") != strings.ReplaceAll(want, "}, {", "},{") {
		t.Errorf("sealed\n%s\nwant\n%s", sealed, want)
	}
	if with, all := exchange.Inserted(exchange.Lane.Projection), exchange.Inserted(nil); with != 1+2+8+16 || all != with+4 {
		t.Errorf("%d tokens of %d", with, all)
	}
	if added := exchange.Added(2, 6); added != 4+8+16 {
		t.Errorf("%d tokens at messages", added)
	}
	exchange.Lane.Projection = rendered(exchange, 1, 5)
	if sealed := string(pipelinetest.Seal(exchange)); !strings.HasPrefix(sealed, `{"model":"m","messages":[{"role":"system","content":"s"}`) || strings.Index(sealed, `"content":"x"`) > strings.Index(sealed, "record") {
		t.Errorf("sealed %s", sealed)
	}
	if exchange.Conversation.Digests[0].Role != conversation.System {
		t.Errorf("role %s", exchange.Conversation.Digests[0].Role)
	}
}

// Inserts of an exchange whose message an epoch renders right after are no inserts.
func TestInsertsThatAreFoldedAtOnceAreDropped(t *testing.T) {
	t.Parallel()
	exchange := newExchange(t)
	inject(exchange, "one", pipeline.PlacementTurn, "text")
	inject(exchange, "two", pipeline.PlacementSystem, "text")
	exchange.Lane.Projection = rendered(exchange, 0, 3)
	if fresh := exchange.Fresh(); len(fresh) != 1 || fresh[0].Module != "two" || len(exchange.Lane.Inserts) != 1 || exchange.Report.Injected["one"] != 0 {
		t.Errorf("%+v, report %+v", fresh, exchange.Report)
	}
}
