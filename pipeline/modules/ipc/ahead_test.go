package ipc_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
)

// C1, C4: a plan made ahead is used without reading a message. Where no turn has
// left the tail since, it is what the request itself would have come to.
func TestAPlanMadeAheadIsTheSameEpoch(t *testing.T) {
	t.Parallel()

	inline, ahead := newUsed(t, 40_000), newUsed(t, 40_000)
	c := longTalk(26)
	inline.send(t, 0, c)
	exchange := ahead.send(t, 0, c)
	exchange.Lane.NextProjection = 1
	plan, err := ipc.New(newCounter(t).Message).Plan(t.Context(), &exchange.View)
	if err != nil {
		t.Fatal(err)
	}
	if exchange.Lane.Projection != nil {
		t.Fatal("planning changed the exchange")
	}
	ahead.plan = plan

	want, got := inline.send(t, 6*time.Minute, c), ahead.send(t, 6*time.Minute, c)

	if inline.codec.parsed.Load() == 0 || ahead.codec.parsed.Load() != 0 {
		t.Errorf("read %d messages without a plan, %d with one", inline.codec.parsed.Load(), ahead.codec.parsed.Load())
	}
	if !bytes.Equal(pipelinetest.Seal(want), pipelinetest.Seal(got)) {
		t.Error("the prompt is another")
	}
	if want.Report.After != got.Report.After || want.Report.Levels != got.Report.Levels || want.Report.Archived != got.Report.Archived {
		t.Errorf("report %+v, want %+v", got.Report, want.Report)
	}
	if err := pipelinetest.CheckProjection(got); err != nil {
		t.Error(err)
	}
}

// C1: a plan made ahead is used as long as it leaves the prompt closer to the goal than to the target. Here
// these are 16,000 and 30,000 tokens, and the plan leaves about 16,000.
func TestAPlanMadeAheadIsUsedWhileItMakesRoom(t *testing.T) {
	t.Parallel()
	for turns, isUsed := range map[int]bool{5: true, 12: false} { // that came since, of 1,000 tokens
		u := newUsed(t, 40_000)
		exchange := u.send(t, 0, longTalk(26))
		exchange.Lane.NextProjection = 1
		plan, err := ipc.New(newCounter(t).Message).Plan(t.Context(), &exchange.View)
		if err != nil {
			t.Fatal(err)
		}
		u.plan = plan
		exchange = u.send(t, 6*time.Minute, longTalk(26+turns))
		if exchange.Report.Compression != pipeline.Epoch || (u.codec.parsed.Load() == 0) != isUsed {
			t.Errorf("%d turns later %d messages were read: %+v", turns, u.codec.parsed.Load(), exchange.Report)
		}
	}
}

// C1, B8: a plan for another history, window, calibration or setting is not used.
func TestAPlanForSomethingElseIsNotUsed(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(u *used, plan *session.Plan){
		"window":      func(u *used, _ *session.Plan) { u.Options.Limit = 42_000 },
		"settings":    func(u *used, _ *session.Plan) { pipeline.Change[ipc.Config](&u.Options.Config).CompressTo = 0.3 },
		"calibration": func(u *used, _ *session.Plan) { u.Options.Factor = 1.06 },
		"history":     func(_ *used, plan *session.Plan) { plan.Projection.Chain[0]++ },
		"number":      func(_ *used, plan *session.Plan) { plan.Projection.Number++ },
		"length":      func(_ *used, plan *session.Plan) { plan.Projection.Covers = 10_000 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUsed(t, 40_000)
			c := longTalk(26)
			exchange := u.send(t, 0, c)
			exchange.Lane.NextProjection = 1
			plan, err := ipc.New(newCounter(t).Message).Plan(t.Context(), &exchange.View)
			if err != nil {
				t.Fatal(err)
			}
			u.plan = plan
			change(u, plan)
			exchange = u.send(t, 6*time.Minute, c.run("ls", "ok"))
			if exchange.Report.Compression != pipeline.Epoch || u.codec.parsed.Load() == 0 {
				t.Errorf("%d messages were read: %+v", u.codec.parsed.Load(), exchange.Report)
			}
		})
	}
}

func TestNothingIsPlannedThatIsNotWorthIt(t *testing.T) {
	t.Parallel()

	module := ipc.New(newCounter(t).Message)
	for name, set := range map[string]func(*pipeline.Exchange){
		"small":      func(e *pipeline.Exchange) { e.Limits.Limit = 80_000 },
		"unknown":    func(e *pipeline.Exchange) { e.Limits.Limit = 0 },
		"frozen":     func(e *pipeline.Exchange) { e.Request.ReadOnly = "thread" },
		"turned off": func(e *pipeline.Exchange) { pipeline.Change[ipc.Config](&e.Config).DeepestLevel = 0 },
		"no archive": func(e *pipeline.Exchange) { pipeline.Change[ipc.Config](&e.Config).ArchiveToBlob = false },
		"breaker":    func(e *pipeline.Exchange) { e.Lane.Attempts.Fruitless = session.Patience },
		"nothing":    func(e *pipeline.Exchange) { pipeline.Change[ipc.Config](&e.Config).MinClear = 0.9 },
	} {
		exchange := newUsed(t, 40_000).send(t, 0, longTalk(26))
		set(exchange)
		if _, err := module.Plan(t.Context(), &exchange.View); !errors.Is(err, pipeline.ErrNoPlan) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
