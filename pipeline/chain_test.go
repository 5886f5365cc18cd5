package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/anthropic"
)

const chainBody = `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":"three"}]}`

// faulty is a module that spoils its view and its draft and then ends as it is told.
type faulty struct {
	name string
	end  func(context.Context) error
}

func (f faulty) Name() string { return f.name }

func (f faulty) Process(ctx context.Context, exchange *pipeline.View) (*pipeline.Draft, error) {
	exchange.Limits.Limit, exchange.Conversation.Turns, exchange.Lane.Projection = -1, nil, &session.Projection{Number: 8}
	draft := exchange.Draft(f.name)
	draft.Lane.Projection = &session.Projection{
		Number: 9, Covers: 1, Chain: exchange.Conversation.Chain[1],
		Parts: []session.Part{{From: 0, To: 1, Level: 2, Raw: json.RawMessage(`{"role":"user","content":"spoilt"}`), Messages: 1}},
	}
	draft.Report.Compression = pipeline.Epoch
	draft.Event("completed", "", nil)
	if f.end == nil {
		draft.Limits.Limit = 1000
		return draft, nil
	}
	return draft, f.end(ctx)
}

func newExchange(t *testing.T, names ...string) *pipeline.Exchange {
	t.Helper()

	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	config := modules.Catalog().Default()
	config.Modules = names
	return pipelinetest.NewExchange(t, anthropic.New(), []byte(chainBody), pipelinetest.Options{Counter: counter, Config: config, Limit: 1000})
}

// E3, S25: whatever a module does, the client's bytes go out.
func TestTheDraftOfAModuleThatFailsIsDropped(t *testing.T) {
	t.Parallel()

	for name, end := range map[string]func(context.Context) error{
		"error": func(context.Context) error { return errors.New("database is down") },
		"panic": func(context.Context) error { panic("index out of range") },
		"nil pointer": func(context.Context) error {
			var exchange *pipeline.Exchange
			return errors.New(exchange.Scope.APIKey.String())
		},
		"deadline watched":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"deadline unwatched": func(ctx context.Context) error { <-ctx.Done(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			exchange := newExchange(t, "faulty")
			before := exchange.Standing()

			pipeline.NewChain(faulty{"faulty", end}).WithDeadline(time.Millisecond).Process(t.Context(), exchange)

			if sealed := pipelinetest.Seal(exchange); !bytes.Equal(sealed, []byte(chainBody)) {
				t.Errorf("sent %s", sealed)
			}
			report := exchange.Report
			if exchange.Lane.Projection != nil || exchange.Limits.Limit != 1000 || len(exchange.Conversation.Turns) != 2 || report.Compression != before.Compression || report.After != before.After {
				t.Errorf("the exchange is not as it was: %+v", exchange)
			}
			if len(report.Modules) != 1 || report.Modules[0] != (pipeline.ModuleReport{Name: "faulty", Outcome: pipeline.Failed}) {
				t.Errorf("modules: %v", report.Modules)
			}
			if len(report.Events) != 1 || report.Events[0].Type != "failed" || report.Events[0].Reason == "" || report.Events[0].FellBackTo != "original" {
				t.Errorf("events: %+v", report.Events)
			}
			if strings.HasPrefix(name, "deadline") && !strings.Contains(report.Events[0].Reason, pipeline.ErrDeadline.Error()) {
				t.Errorf("reason: %s", report.Events[0].Reason)
			}
		})
	}
}

// E3: what an earlier module did stays when a later one fails.
func TestAFailureFallsBackToTheLastGoodState(t *testing.T) {
	t.Parallel()

	exchange := newExchange(t, "good", "bad")
	bad := faulty{"bad", func(context.Context) error { return errors.New("no") }}

	pipeline.NewChain(bad, faulty{name: "good"}).Process(t.Context(), exchange)

	if sealed := pipelinetest.Seal(exchange); !bytes.Contains(sealed, []byte("spoilt")) {
		t.Errorf("the good module's work is gone: %s", sealed)
	}
	want := []pipeline.ModuleReport{{Name: "good", Outcome: pipeline.Applied}, {Name: "bad", Outcome: pipeline.Failed}}
	if !slices.Equal(exchange.Report.Modules, want) {
		t.Errorf("modules: %v", exchange.Report.Modules)
	}
	last := exchange.Report.Events[len(exchange.Report.Events)-1]
	if len(exchange.Report.Events) != 2 || last.FellBackTo != "projection 9" {
		t.Errorf("events: %+v", exchange.Report.Events)
	}
}

// named is a module that notes that it ran.
type named struct {
	name string
	ran  *[]string
}

func (n named) Name() string { return n.name }

func (n named) Process(context.Context, *pipeline.View) (*pipeline.Draft, error) {
	*n.ran = append(*n.ran, n.name)
	return nil, nil
}

func TestModulesRunInTheConfigsOrderAndMissingOnesAreSkipped(t *testing.T) {
	t.Parallel()

	var ran []string
	exchange := newExchange(t, "c", "missing", "a")

	pipeline.NewChain(named{"a", &ran}, named{"b", &ran}, named{"c", &ran}).Process(t.Context(), exchange)

	if !slices.Equal(ran, []string{"c", "a"}) {
		t.Errorf("ran %v", ran)
	}
	if got := fmt.Sprint(exchange.Report.Modules); got != "[{c noop} {missing skipped} {a noop}]" {
		t.Errorf("modules: %s", got)
	}
}

func TestAnUntouchedExchangeReportsHowItStands(t *testing.T) {
	t.Parallel()

	exchange := newExchange(t)
	pipeline.NewChain().Process(t.Context(), exchange)
	report := exchange.Report
	if report.Compression != pipeline.None || report.Before != report.After || report.Before == 0 || report.Limit != 1000 || report.Levels != [4]int{2} {
		t.Errorf("untouched: %+v", report)
	}

	exchange.Lane.Projection = &session.Projection{Number: 1, Covers: 2, Parts: []session.Part{
		{From: 0, To: 1, Messages: 1, Tokens: 5},
		{From: 1, To: 2, Level: 3, Raw: json.RawMessage{}},
	}}
	pipeline.NewChain().Process(t.Context(), exchange)
	report = exchange.Report
	if report.Compression != pipeline.Replayed || report.After >= report.Before || report.Levels != [4]int{1, 0, 0, 1} {
		t.Errorf("frozen: %+v", report)
	}

	exchange.Request.ReadOnly = "thread"
	pipeline.NewChain().Process(t.Context(), exchange)
	if exchange.Report.Compression != pipeline.Bypassed {
		t.Errorf("bypassed: %+v", exchange.Report)
	}
}
