package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// C7
func TestACacheIsColdWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	warm := session.CacheState{At: noon(), TTL: session.ShortTTL, Model: "m"}
	for name, c := range map[string]struct {
		heat         session.CacheState
		after        time.Duration
		model        string
		cold, cooled bool
	}{
		"just sent":                {heat: warm, model: "m"},
		"in time":                  {heat: warm, after: 5*time.Minute - 1, model: "m"},
		"too late":                 {heat: warm, after: 5 * time.Minute, model: "m", cold: true, cooled: true},
		"for another model":        {heat: warm, model: "other", cold: true},
		"for another, too late":    {heat: warm, after: time.Hour, model: "other", cold: true, cooled: true},
		"nothing caches":           {heat: session.CacheState{At: noon(), Model: "m"}, model: "m", cold: true},
		"nothing caches, too late": {heat: session.CacheState{At: noon(), Model: "m"}, after: time.Hour, model: "m", cold: true},
		"nothing known":            {model: "m", cold: true},
	} {
		now := noon().Add(c.after)
		if got := c.heat.Cold(now, c.model); got != c.cold {
			t.Errorf("%s: cold %t", name, got)
		}
		if got := c.heat.Cooled(now); got != c.cooled {
			t.Errorf("%s: cooled %t", name, got)
		}
	}
	if got := warm.Until(0.8); !got.Equal(noon().Add(4 * time.Minute)) {
		t.Errorf("0.8 of five minutes are over at %v", got)
	}
	if got := (session.CacheState{At: noon()}).Until(0.8); !got.IsZero() {
		t.Errorf("a cache that is not there lives until %v", got)
	}
}

// caller sends prompts of a lane, one a minute.
type caller struct {
	lane *session.Lane
	now  time.Time
	ttl  time.Duration
}

// answer has the provider report a usage for the next prompt.
func (c *caller) answer(usage wire.Usage) session.CacheState {
	c.now = c.now.Add(time.Minute)
	heat := session.CacheState{At: c.now, TTL: c.ttl, Position: 3, Model: "m"}
	c.lane.Went(heat)
	heat.Tokens = usage.Prompt()
	c.lane.Metered(heat, usage, true)
	return c.lane.Heat()
}

// C8: one answer without a read, or two, say nothing; a cache once met is there.
func TestColdnessIsNotInferredFromAnAnswer(t *testing.T) {
	t.Parallel()
	none, hit := wire.Usage{Reported: true, Input: 9_000}, wire.Usage{Reported: true, Input: 100, CacheRead: 8_900}

	c := caller{lane: &session.Lane{}, now: noon(), ttl: session.ShortTTL}
	for i := range 2 {
		if heat := c.answer(none); heat.TTL != session.ShortTTL || heat.Tokens != 9_000 {
			t.Fatalf("after %d answers without a cache: %+v", i+1, heat)
		}
	}
	c.answer(hit)
	for range 10 { // the load is spread over machines
		if heat := c.answer(none); heat.TTL != session.ShortTTL {
			t.Fatalf("a cache that was met is taken to be gone: %+v", heat)
		}
	}

	c = caller{lane: &session.Lane{}, now: noon(), ttl: session.ShortTTL}
	c.answer(none)
	c.answer(none)
	if heat := c.answer(none); heat.TTL != 0 {
		t.Errorf("three answers never met a cache: %+v", heat)
	}
	if heat := c.answer(none); heat.TTL != 0 {
		t.Errorf("the fourth neither: %+v", heat)
	}
	if heat := c.answer(hit); heat.TTL == 0 {
		t.Errorf("now one did: %+v", heat)
	}
	if heat := c.answer(none); heat.TTL != session.ShortTTL {
		t.Errorf("and it is there: %+v", heat)
	}
}

func TestAPromptTooShortForACacheSaysNothing(t *testing.T) {
	t.Parallel()
	lane := &session.Lane{}
	for i := range 5 {
		heat := session.CacheState{At: noon().Add(time.Duration(i) * time.Minute), TTL: session.ShortTTL, Model: "m"}
		lane.Went(heat)
		lane.Metered(heat, wire.Usage{Reported: true, Input: 300}, false)
	}
	if lane.Heat().TTL != session.ShortTTL {
		t.Errorf("%+v", lane.Heat())
	}
}

func TestACacheThatNobodyAskedForIsFound(t *testing.T) {
	t.Parallel()
	c := caller{lane: &session.Lane{}, now: noon()}
	if heat := c.answer(wire.Usage{Reported: true, CacheWrite: 4_000, CacheWrite1h: 4_000}); heat.TTL != session.LongTTL {
		t.Errorf("written for an hour: %+v", heat)
	}
	if heat := c.answer(wire.Usage{Reported: true, Input: 4_100}); heat.TTL != session.LongTTL {
		t.Errorf("then without a word: %+v", heat)
	}
	c = caller{lane: &session.Lane{}, now: noon()}
	if heat := c.answer(wire.Usage{Reported: true, Input: 10, CacheRead: 4_000}); heat.TTL != session.ShortTTL {
		t.Errorf("read: %+v", heat)
	}
}

// An answer that comes after the next prompt has gone out does not set the clock back.
func TestALateAnswerDoesNotSetTheClockBack(t *testing.T) {
	t.Parallel()
	lane := &session.Lane{}
	first := session.CacheState{At: noon(), TTL: session.ShortTTL, Model: "m"}
	second := session.CacheState{At: noon().Add(time.Minute), TTL: session.ShortTTL, Position: 5, Model: "m"}
	lane.Went(first)
	lane.Went(second)
	lane.Metered(first, wire.Usage{Reported: true, CacheRead: 10}, true)
	lane.Went(first)
	if lane.Heat() != second {
		t.Errorf("%+v, want %+v", lane.Heat(), second)
	}
}

// C7, E6: a side call with the conversation's own prefix keeps its cache alive.
func TestASideCallKeepsTheConversationWarm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*session.CacheState)
		warms  bool
	}{
		"the same":        {func(*session.CacheState) {}, true},
		"another model":   {func(heat *session.CacheState) { heat.Model = "other" }, false},
		"another prefix":  {func(heat *session.CacheState) { heat.Projection = 1 }, false},
		"another account": {func(heat *session.CacheState) { heat.Key = uuid.UUID{1} }, false},
		"an earlier one":  {func(heat *session.CacheState) { heat.At = noon().Add(-time.Minute) }, false},
	} {
		b := setup(t)
		hint := session.Hint{Name: "run", Source: "header"}
		main := b.send(t, hint, "a B c")
		main.Went(session.CacheState{At: noon(), TTL: session.ShortTTL, Position: 3, Model: "m"})
		aside := hint
		aside.Kind = session.Side
		side := b.send(t, aside, "a B c D summarise")
		if side.ID == main.ID {
			t.Fatal("the side call is in the conversation's lane")
		}
		heat := session.CacheState{At: noon().Add(3 * time.Minute), TTL: session.ShortTTL, Position: 5, Model: "m"}
		c.change(&heat)
		side.Went(heat)
		want := noon()
		if c.warms {
			want = heat.At
		}
		if got := main.Heat(); !got.At.Equal(want) || got.Position != 3 {
			t.Errorf("%s: the conversation was last sent at %v with %d messages, want %v", name, got.At, got.Position, want)
		}
	}
}

// C5: a fork shares its parent's cache as far as it shares its prompt.
func TestAForkIsAsWarmAsWhatItShares(t *testing.T) {
	t.Parallel()
	b := setup(t)
	words := "a B c D e F g"
	b.send(t, session.Hint{}, "a B c D e")
	trunk := b.send(t, session.Hint{}, words)
	trunk.Went(session.CacheState{At: noon(), TTL: session.LongTTL, Position: 7, Tokens: 70, Model: "m"})
	fork := b.send(t, session.Hint{}, "a B c D other")
	if want := (session.CacheState{At: noon(), TTL: session.LongTTL, Position: 4, Model: "m"}); fork.Heat() != want {
		t.Errorf("%+v, want %+v", fork.Heat(), want)
	}

	b.epoch(t, words+" H i", 6)
	trunk.Went(session.CacheState{At: noon(), TTL: session.LongTTL, Projection: 1, Position: 9, Model: "m"})
	if fork := b.send(t, session.Hint{}, "a B c D e THIRD g"); !fork.Heat().At.IsZero() {
		t.Errorf("a fork before the projection is as warm as its parent: %+v", fork.Heat())
	}
}

// C1, B12: what is known of a lane survives a restart.
func TestHeatAndAttemptsAreFoundAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lane, chain := b.hold(t, session.Hint{}, "a B c")
	lane.Unlock()
	heat := session.CacheState{At: noon(), TTL: session.LongTTL, Projection: 2, Position: 3, Tokens: 50, Model: "m"}
	attempts := session.Attempts{At: noon(), Fruitless: 3, Reason: "nothing", Size: 40, Limit: 50}
	lane.Went(heat)
	lane.Tried(attempts)
	update := lane.Update(b.scope, "m", noon())
	update.Messages.Position, update.Messages.Head = 3, chain[3]
	if err := b.store.Record(t.Context(), b.scope.Workspace, []session.Update{update}); err != nil {
		t.Fatal(err)
	}
	b.restart(t)

	found, _ := b.hold(t, session.Hint{}, "a B c D e")
	defer found.Unlock()
	if found.ID != lane.ID || found.Heat() != heat || found.Attempts() != attempts || !found.Attempts().IsOpen() {
		t.Errorf("heat %+v, attempts %+v", found.Heat(), found.Attempts())
	}
}

// C8: a lane that was found to have no cache need not find it out again.
func TestLaneKnownAsUncachedStaysUncachedAfterRestart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lane, chain := b.hold(t, session.Hint{}, "a B c")
	lane.Unlock()
	lane.Went(session.CacheState{At: noon(), Model: "m"})
	update := lane.Update(b.scope, "m", noon())
	update.Messages.Position, update.Messages.Head = 3, chain[3]
	if err := b.store.Record(t.Context(), b.scope.Workspace, []session.Update{update}); err != nil {
		t.Fatal(err)
	}
	b.restart(t)
	found, _ := b.hold(t, session.Hint{}, "a B c D e")
	defer found.Unlock()
	c := caller{lane: found, now: noon(), ttl: session.ShortTTL}
	if heat := c.answer(wire.Usage{Reported: true, Input: 5_000}); heat.TTL != 0 {
		t.Errorf("%+v", heat)
	}
}

// B12
func TestAResetIsNotUndoneByAnOlderAttempt(t *testing.T) {
	t.Parallel()
	lane := &session.Lane{}
	lane.Tried(session.Attempts{At: noon(), Fruitless: 3})
	lane.Tried(session.Attempts{At: noon().Add(time.Minute)})
	lane.Tried(session.Attempts{At: noon().Add(time.Second), Fruitless: 4})
	if got := lane.Attempts(); got.IsOpen() || got.Fruitless != 0 {
		t.Errorf("%+v", got)
	}
}

func TestAPlanIsForTheNextEpochOfTheLane(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lane, _ := b.hold(t, session.Hint{}, "a B c D e")
	plan := &session.Plan{Projection: session.Projection{Number: 1}}
	if lane.TryLock() {
		t.Fatal("the lane is held twice")
	}
	b.resolver.Planned(lane, plan)
	if b.resolver.Known(lane.ID).Plan() != plan {
		t.Error("the plan is not there")
	}
	lane.Went(session.CacheState{At: noon()})
	if lane.Plan() != nil {
		t.Error("the plan outlived the prompt it was for")
	}
	b.resolver.Planned(lane, plan)
	lane.Adopt(plan.Projection)
	if lane.Plan() != nil {
		t.Error("the plan outlived its epoch")
	}
	lane.Unlock()

	b.resolver.Forget(lane.ID)
	b.resolver.Planned(lane, plan)
	if b.resolver.Known(lane.ID) != nil || b.resolver.Known(uuid.New()) != nil {
		t.Error("a plan brought a dropped lane back")
	}
}

// Each further failure of a store that is away lengthens the pause, up to eight seconds. An answer ends it.
func TestStoreThatIsAwayIsAskedLessOften(t *testing.T) {
	t.Parallel()
	now := noon()
	outage := session.NewOutage(func() time.Time { return now })
	for range 2 { // an answer forgets the earlier pauses
		for _, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second} {
			outage.Note(session.ErrAway)
			outage.Note(session.ErrAway) // of another request in the same moment
			if now = now.Add(pause - 1); !outage.Lasts() {
				t.Errorf("asked again after less than %s", pause)
			}
			if now = now.Add(1); outage.Lasts() {
				t.Errorf("not asked again after %s", pause)
			}
		}
		outage.Note(context.Canceled) // says nothing of the store
		if outage.Lasts() {
			t.Error("a request that was canceled begins an outage")
		}
		outage.Note(nil)
	}
}
