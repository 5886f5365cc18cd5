package pipeline

import (
	"context"
	"errors"
	"testing"
	"time"
)

// replying is a module that may answer in the provider's place.
type replying struct {
	name  string
	reply func(ctx context.Context, exchange *Exchange) (*Reply, error)
	ran   int
}

func (r *replying) Name() string { return r.name }

func (r *replying) Process(context.Context, *Exchange) error {
	r.ran++
	return nil
}

func (r *replying) Reply(ctx context.Context, exchange *Exchange) (*Reply, error) {
	return r.reply(ctx, exchange)
}

// An exchange that a module answers goes through no module; one whose answer fails in whatever
// way goes on to the provider, with the reason in its report.
func TestFailedReplyGoesOnToTheProvider(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reply    func(ctx context.Context, exchange *Exchange) (*Reply, error)
		answered bool
		events   int
	}{
		"answer":    {func(context.Context, *Exchange) (*Reply, error) { return &Reply{Text: "a"}, nil }, true, 0},
		"no answer": {func(context.Context, *Exchange) (*Reply, error) { return nil, nil }, false, 0}, //nolint:nilnil // as modules do
		"error": {func(_ context.Context, exchange *Exchange) (*Reply, error) {
			exchange.Report.Events = append(exchange.Report.Events, Event{Type: "answered"})
			return &Reply{Text: "a"}, errors.New("broken")
		}, false, 1},
		"panic": {func(context.Context, *Exchange) (*Reply, error) { panic("broken") }, false, 1},
		"overrun": {func(ctx context.Context, _ *Exchange) (*Reply, error) {
			<-ctx.Done()
			return &Reply{Text: "a"}, nil
		}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			module := &replying{name: "one", reply: test.reply}
			exchange := &Exchange{Config: Config{Modules: []string{"unknown", "one"}}}
			NewChain(module).WithDeadline(time.Millisecond).Process(t.Context(), exchange)
			report := exchange.Report
			if (exchange.Reply != nil) != test.answered || (report.Answered != "") != test.answered || (module.ran == 0) != test.answered {
				t.Errorf("reply %v, module ran %d times, report %+v", exchange.Reply, module.ran, report)
			}
			if len(report.Events) != test.events || test.events > 0 && (report.Events[0].Type != "failed" || report.Events[0].FellBackTo != "provider") {
				t.Errorf("events %+v", report.Events)
			}
		})
	}
}
