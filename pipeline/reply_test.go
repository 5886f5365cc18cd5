package pipeline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// replying is a module that may answer in the provider's place.
type replying struct {
	name  string
	reply func(ctx context.Context, draft *Draft) (*Reply, error)
	ran   int
}

func (r *replying) Name() string { return r.name }

func (r *replying) Process(context.Context, *View) (*Draft, error) {
	r.ran++
	return nil, nil
}

func (r *replying) Answer(ctx context.Context, exchange *View) (draft *Draft, err error) {
	draft = exchange.Draft(r.name)
	draft.Reply, err = r.reply(ctx, draft)
	return draft, err
}

// An exchange that a module answers goes through no module; one whose answer fails in whatever
// way goes on to the provider, with the reason in its report. The clock is the bubble's, so that only a module
// that waits for its deadline reaches it.
func TestFailedReplyGoesOnToTheProvider(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reply    func(ctx context.Context, draft *Draft) (*Reply, error)
		answered bool
		events   int
	}{
		"answer":    {func(context.Context, *Draft) (*Reply, error) { return &Reply{Text: "a"}, nil }, true, 0},
		"no answer": {func(context.Context, *Draft) (*Reply, error) { return nil, nil }, false, 0},
		"error": {func(_ context.Context, draft *Draft) (*Reply, error) {
			draft.Event("answered", "", nil)
			return &Reply{Text: "a"}, errors.New("broken")
		}, false, 1},
		"panic": {func(context.Context, *Draft) (*Reply, error) { panic("broken") }, false, 1},
		"overrun": {func(ctx context.Context, _ *Draft) (*Reply, error) {
			<-ctx.Done()
			return &Reply{Text: "a"}, nil
		}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				module := &replying{name: "one", reply: test.reply}
				exchange := &Exchange{View: View{Config: Config{Modules: []string{"unknown", "one"}}}}
				NewChain(module).WithDeadline(time.Millisecond).Process(t.Context(), exchange)
				report := exchange.Report
				if (exchange.Reply != nil) != test.answered || (report.Answered != "") != test.answered || (module.ran == 0) != test.answered {
					t.Errorf("reply %v, module ran %d times, report %+v", exchange.Reply, module.ran, report)
				}
				if len(report.Events) != test.events || test.events > 0 && (report.Events[0].Type != "failed" || report.Events[0].FellBackTo != "provider") {
					t.Errorf("events %+v", report.Events)
				}
			})
		})
	}
}
