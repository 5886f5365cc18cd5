package ipc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// noon is when tests begin.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func sonnet() tokens.Price {
	return tokens.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75, CacheWrite1h: 6}
}

// used is a lane in use: it has a clock, a provider with a cache, and remembers
// attempts as a session does.
type used struct {
	*pipelinetest.Lane

	now      time.Time
	heat     session.CacheState
	attempts session.Attempts
	plan     *session.Plan
	codec    *countingCodec
}

// countingCodec counts the messages that are read: planning reads them, nothing
// else does.
type countingCodec struct {
	wire.Codec

	parsed atomic.Int64 // turns are read on all cores
}

// Parse implements wire.Codec.
func (c *countingCodec) Parse(raw json.RawMessage) (conversation.Message, error) {
	c.parsed.Add(1)
	return c.Codec.Parse(raw)
}

func newUsed(t testing.TB, limit int, change ...func(*ipc.Config)) *used {
	t.Helper()
	u := &used{Lane: newLane(t, limit, change...), now: noon()}
	u.codec = &countingCodec{Codec: u.Codec}
	u.Codec = u.codec
	u.Prepare = func(exchange *pipeline.Exchange) {
		exchange.Lane.Now, exchange.Lane.Heat, exchange.Lane.Attempts, exchange.Lane.Plan = u.now, u.heat, u.attempts, u.plan
		exchange.Model.Price = sonnet()
		keeper := exchange.Committer.(pipelinetest.Committer)
		keeper.OnTried = func(attempts session.Attempts) { u.attempts = attempts }
		exchange.Committer = keeper
		u.codec.parsed.Store(0)
	}
	return u
}

// send sends the next request after so long and notes it as the lane's last.
func (u *used) send(t testing.TB, after time.Duration, c *talk) *pipeline.Exchange {
	t.Helper()
	u.now = u.now.Add(after)
	exchange, _ := u.Send(t, c.body())
	number := 0
	if exchange.Lane.Projection != nil {
		number = exchange.Lane.Projection.Number
	}
	u.heat = session.CacheState{At: u.now, TTL: session.ShortTTL, Projection: number, Position: len(exchange.Conversation.Digests), Model: exchange.Request.Model}
	u.plan = nil
	return exchange
}

// C7: between idleUtilization and the target there is an epoch on a cache that has
// gone cold, and none on a warm one.
func TestAColdCacheIsTheMomentForAnEpoch(t *testing.T) {
	t.Parallel()

	u := newUsed(t, 40_000)
	c := longTalk(26) // about 0.65 of the window
	if exchange := u.send(t, 0, c); exchange.Report.Compression != pipeline.None {
		t.Fatalf("a lane without a past: %+v", exchange.Report)
	}
	if exchange := u.send(t, 4*time.Minute+59*time.Second, c.run("ls", "ok")); exchange.Report.Compression != pipeline.None {
		t.Fatalf("warm: %+v", exchange.Report)
	}

	exchange := u.send(t, 5*time.Minute, c.run("ls", "ok"))

	report := exchange.Report
	if report.Compression != pipeline.Epoch || report.After > 16_000 {
		t.Fatalf("cold: %+v", report)
	}
	wants(t, exchange, "completed", session.ReasonIdle)
	if exchange.Lane.Projection.Reason != session.ReasonIdle {
		t.Errorf("reason %q", exchange.Lane.Projection.Reason)
	}
	if net := event(t, exchange, "completed").Counts["predicted_net_microusd"]; net <= 0 {
		t.Errorf("an epoch on a cold cache is to cost %d", -net)
	}
}

// C7, C8: no coldness where there was no cache, where the last prompt went to
// another model, below idleUtilization, or in a side call.
func TestWithoutACacheThatWentColdTheTargetDecides(t *testing.T) {
	t.Parallel()

	for name, set := range map[string]func(*used){
		"nothing caches": func(u *used) { u.heat.TTL = 0 },
		"no past":        func(u *used) { u.heat = session.CacheState{} },
		"no clock":       func(u *used) { u.now = time.Time{} },
		"an hour's cache": func(u *used) {
			u.heat.TTL = session.LongTTL
		},
		"small prompt":   func(u *used) { u.Options.Limit = 60_000 },
		"no archive":     func(u *used) { pipeline.Change[ipc.Config](&u.Options.Config).ArchiveToBlob = false },
		"turned off":     func(u *used) { pipeline.Change[ipc.Config](&u.Options.Config).DeepestLevel = 0 },
		"other settings": func(u *used) { pipeline.Change[ipc.Config](&u.Options.Config).IdleUtilization = 0.7 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUsed(t, 40_000)
			c := longTalk(26)
			u.send(t, 0, c)
			u.now = u.now.Add(10 * time.Minute)
			set(u)
			exchange := u.send(t, 0, c.run("ls", "ok"))
			if exchange.Report.Compression != pipeline.None || len(exchange.Report.Events) != 0 {
				t.Errorf("report: %+v", exchange.Report)
			}
		})
	}
}

// C7, B10: at the default settings and the growth of the cost model, an epoch is
// made at the target of a warm lane.
func TestOrdinaryGrowthIsWorthAnEpochAtTheTarget(t *testing.T) {
	t.Parallel()

	u := newUsed(t, 200_000, byDefault)
	c := &talk{system: words(20_000)}
	for i := range 100 {
		c.user(fmt.Sprintf("Next, change handler%d.go.", i)).run(fmt.Sprintf("cat handler%d.go", i), fmt.Sprintf("handler%d %s", i, words(1_900)))
		if exchange := u.send(t, 10*time.Second, c); u.Epochs > 0 {
			completed := event(t, exchange, "completed")
			if before := completed.Counts["before"]; before < 160_000 || before > 163_000 {
				t.Errorf("at %d of 200000", before)
			}
			if completed.Counts["predicted_net_microusd"] <= 0 {
				t.Errorf("counts: %v", completed.Counts)
			}
			return
		}
	}
	t.Error("no epoch")
}

// dear is a conversation of which an epoch frees a sixth and rewrites nearly all:
// its second turn is large, and most of the rest is what a person typed last or
// newest.
func dear() *talk {
	c := (&talk{}).user("Begin.").run("cat log", words(7_000))
	return c.user("Read this: "+words(21_000)).run("true", "ok")
}

// C7: a warm cache is not rewritten for little: the epoch waits until the limit is
// near, the cache cold, or the prompt larger.
func TestAnEpochThatCostsMoreThanItBringsWaits(t *testing.T) {
	t.Parallel()

	u := newUsed(t, 36_000)
	c := dear()
	u.heat = session.CacheState{At: u.now, TTL: session.ShortTTL, Position: len(c.messages), Model: "claude-sonnet-4-5"}

	exchange := u.send(t, time.Minute, c.run("true", "ok"))

	skipped := event(t, exchange, "skipped")
	if skipped.Reason != "cost_gate" || exchange.Lane.Projection != nil {
		t.Fatalf("report: %+v", exchange.Report)
	}
	for _, name := range []string{"freed", "rewritten", "requests"} {
		if skipped.Counts[name] <= 0 {
			t.Errorf("counts: %v", skipped.Counts)
		}
	}
	if skipped.Counts["predicted_net_microusd"] >= 0 {
		t.Errorf("counts: %v", skipped.Counts)
	}

	t.Run("without planning again", func(t *testing.T) {
		exchange := u.send(t, time.Minute, c.run("true", "ok"))
		wants(t, exchange, "skipped", "cost_gate")
		if u.codec.parsed.Load() != 0 || exchange.Report.Compression != pipeline.None {
			t.Errorf("%d messages were read: %+v", u.codec.parsed.Load(), exchange.Report)
		}
	})
	t.Run("until the cache is cold", func(t *testing.T) {
		exchange := u.send(t, 6*time.Minute, c.run("true", "ok"))
		wants(t, exchange, "completed", "target")
	})
}

// C7
func TestNearTheLimitThePriceDoesNotMatter(t *testing.T) {
	t.Parallel()

	u := newUsed(t, 36_000)
	c := dear()
	u.heat = session.CacheState{At: u.now, TTL: session.ShortTTL, Position: len(c.messages), Model: "claude-sonnet-4-5"}
	wants(t, u.send(t, time.Minute, c.run("true", "ok")), "skipped", "cost_gate")

	exchange := u.send(t, time.Minute, c.run("cat more", words(7_400)))

	wants(t, exchange, "completed", "target")
	if before := event(t, exchange, "completed").Counts["before"]; before <= 35_280 || before > 36_000 {
		t.Errorf("at %d of 36000", before)
	}
}

// C7: where nothing caches, what is not sent is saved and nothing is lost.
func TestWithoutACacheAnEpochAlwaysPays(t *testing.T) {
	t.Parallel()

	u := newUsed(t, 36_000)
	c := dear()
	u.heat = session.CacheState{At: u.now, Position: len(c.messages), Model: "claude-sonnet-4-5"}
	wants(t, u.send(t, time.Minute, c.run("true", "ok")), "completed", "target")
}

// stuck is a conversation of which nothing can be freed: all of it is its system
// prompt.
func stuck(size int) *talk {
	return (&talk{system: words(size)}).user("Begin.").run("true", "ok")
}

// B9: the notice stays on each request, at no planning cost, until the prompt has
// grown by what an epoch must free or the window has changed.
func TestATargetOutOfReachIsNotPlannedAgain(t *testing.T) {
	t.Parallel()

	u := newUsed(t, 50_000)
	c := stuck(39_000)
	for i := range 20 {
		exchange := u.send(t, time.Second, c.run("true", fmt.Sprint("ok ", i)))
		wants(t, exchange, "target_unreachable", "")
		if exchange.Report.Compression != pipeline.Unreachable {
			t.Fatalf("request %d: %+v", i, exchange.Report)
		}
		if u.attempts.Fruitless != 1 {
			t.Fatalf("request %d: %d attempts", i, u.attempts.Fruitless)
		}
		if i > 0 && u.codec.parsed.Load() > 0 {
			t.Fatalf("request %d: %d messages were read", i, u.codec.parsed.Load())
		}
	}

	c.system = words(45_000)
	u.send(t, time.Second, c)
	if u.attempts.Fruitless != 2 {
		t.Errorf("grown by more than minClear: %d attempts", u.attempts.Fruitless)
	}
	u.Options.Limit = 57_000
	u.send(t, time.Second, c.run("true", "ok"))
	if u.attempts.Fruitless != 3 {
		t.Errorf("with another window: %d attempts", u.attempts.Fruitless)
	}
}

// B12: three attempts in a row that come to nothing end them until a reset; it can
// be seen, and a prompt that does not fit is tried all the same.
func TestTheBreakerOpensAfterThreeAttemptsInVain(t *testing.T) {
	t.Parallel()

	u := newUsed(t, 100_000, func(config *ipc.Config) { config.MinClear = 0.05 })
	c := stuck(76_000)
	for i := range 3 {
		c.system = words(76_000 + 5_500*i)
		exchange := u.send(t, time.Second, c)
		if opened := u.attempts.IsOpen(); opened != (i == 2) {
			t.Fatalf("attempt %d: open %t, %+v", i+1, opened, u.attempts)
		}
		if i == 2 {
			if got := event(t, exchange, "breaker_open"); got.Counts["fruitless"] != 3 || got.Reason != "nothing_to_free" {
				t.Errorf("event: %+v", got)
			}
		}
	}
	// Now there would be much to free.
	c.system = words(70_000)
	for i := range 18 {
		c.run(fmt.Sprintf("cat %d", i), words(1_000))
	}
	exchange := u.send(t, time.Second, c)
	event(t, exchange, "breaker_open")
	if exchange.Report.Compression != pipeline.Unreachable || u.Epochs > 0 || u.codec.parsed.Load() > 0 {
		t.Fatalf("with an open breaker: %d epochs, %+v", u.Epochs, exchange.Report)
	}

	t.Run("what does not fit is tried", func(t *testing.T) {
		for i := range 14 {
			c.run(fmt.Sprintf("cat more %d", i), words(1_000))
		}
		exchange := u.send(t, time.Second, c)
		if exchange.Report.Before <= 100_000 || u.Epochs != 1 || !u.attempts.IsOpen() {
			t.Errorf("%d epochs, %+v, %+v", u.Epochs, u.attempts, exchange.Report)
		}
	})
	t.Run("a reset closes it", func(t *testing.T) {
		u.attempts = session.Attempts{At: u.now}
		for i := range 12 {
			c.run(fmt.Sprintf("cat again %d", i), words(900))
		}
		epochs := u.Epochs
		exchange := u.send(t, 6*time.Minute, c)
		if u.Epochs != epochs+1 {
			t.Errorf("%d epochs: %+v", u.Epochs, exchange.Report)
		}
	})
}

// B12: claude-code#94481 compacted 106 times. A prompt that never fits is tried
// once for each growth by minClear.
func TestAPromptThatNeverFitsIsNotTriedEachTime(t *testing.T) {
	t.Parallel()

	u := newUsed(t, 30_000)
	c := stuck(40_000)
	planned := 0
	for i := range 60 {
		u.send(t, time.Second, c.run("true", fmt.Sprintf("ok %d %s", i, words(100))))
		if u.codec.parsed.Load() > 0 {
			planned++
		}
	}
	if planned < 2 || planned > 4 { // 6,000 tokens in steps of 3,000
		t.Errorf("planned %d times in 60 requests", planned)
	}
}

// B12, E1: archive writes that fail count too, and are not tried again at once.
func TestAFailingArchiveIsNotAskedWithEachRequest(t *testing.T) {
	t.Parallel()

	u := newUsed(t, 40_000)
	asked := 0
	u.Options.Commit = func(context.Context, session.Projection) error {
		asked++
		return errors.New("connection refused")
	}
	c := longTalk(33)
	for range 20 {
		u.send(t, 10*time.Second, c.run("true", "ok"))
	}
	if asked != 3 || !u.attempts.IsOpen() { // after 0, 30 and 60 seconds
		t.Errorf("asked %d times, %+v", asked, u.attempts)
	}

	t.Run("but for a prompt that does not fit", func(t *testing.T) {
		c.run("cat", words(9_000))
		u.send(t, time.Second, c)
		u.send(t, time.Second, c.run("true", "ok"))
		if asked != 5 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// E10, E11: that another replica was first, or the client has left, says nothing of
// the lane.
func TestFailuresOutsideTheLaneAreNotCounted(t *testing.T) {
	t.Parallel()

	u := newUsed(t, 40_000)
	u.Options.Commit = func(context.Context, session.Projection) error { return fmt.Errorf("commit: %w", session.ErrOvertaken) }
	exchange := u.send(t, 0, longTalk(33))
	wants(t, exchange, "failed", "")
	if u.attempts != (session.Attempts{}) {
		t.Errorf("attempts: %+v", u.attempts)
	}

	u.Options.Commit = func(context.Context, session.Projection) error { return fmt.Errorf("commit: %w", session.ErrWarm) }
	exchange = u.send(t, 6*time.Minute, longTalk(26))
	wants(t, exchange, "skipped", "warm_elsewhere")
	if u.attempts != (session.Attempts{}) || exchange.Lane.Projection != nil {
		t.Errorf("attempts: %+v", u.attempts)
	}

	u.Options.Commit = func(context.Context, session.Projection) error { return fmt.Errorf("commit: %w", session.ErrPinned) }
	exchange = u.send(t, 0, longTalk(33))
	wants(t, exchange, "skipped", "session_pinned")
	if u.attempts != (session.Attempts{}) || exchange.Lane.Projection != nil {
		t.Errorf("attempts: %+v", u.attempts)
	}
}

// B10: an epoch is followed by room, also where it was made on a cold cache.
func TestIdleEpochsDoNotFollowEachOther(t *testing.T) {
	t.Parallel()

	u := newUsed(t, 40_000)
	c := longTalk(26)
	u.send(t, 0, c)
	for range 8 {
		u.send(t, time.Hour, c.run("ls", words(400)))
	}
	if u.Epochs != 1 {
		t.Errorf("%d epochs", u.Epochs)
	}
}

// A first message that fills most of the window stays for as long as nothing newer was typed.
// As soon as something is, it may go, and is not waited with until the prompt has grown.
func TestWhatWasTypedBeforeIsCompactedOnceSomethingNewerIs(t *testing.T) {
	t.Parallel()

	u := newUsed(t, 50_000)
	c := (&talk{}).user(words(39_000))
	u.send(t, time.Second, c.run("true", "ok"))
	for i := range 8 {
		exchange := u.send(t, time.Second, c.run("true", fmt.Sprint("ok ", i)))
		wants(t, exchange, "target_unreachable", "typed_message")
	}
	exchange := u.send(t, time.Second, c.say("Done.").user("Go on."))
	if exchange.Report.Compression != pipeline.Epoch || exchange.Report.After > 12_500 {
		t.Errorf("after something newer was typed: %+v", exchange.Report)
	}

	u = newUsed(t, 50_000)
	c = stuck(39_000)
	for i := range 4 {
		u.send(t, time.Second, c.run("true", "ok").say("Done.").user(fmt.Sprint("Go on, ", i)))
	}
	if u.attempts.Fruitless != 1 {
		t.Errorf("small messages were typed, and it was tried %d times", u.attempts.Fruitless)
	}
}

// Behind a large system prompt, a compaction at the target would free little and be followed by the
// next one soon, so a warm prompt may grow further.
func TestAWarmPromptBehindALargeFixedPartMayGrow(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		turns  int
		pause  time.Duration
		reason string
	}{
		"warm":            {185, time.Minute, ""},
		"below the bound": {235, time.Minute, ""},
		"cold":            {190, 6 * time.Minute, "target"},
		"little to free":  {185, 6 * time.Minute, ""},
		"above the bound": {255, time.Minute, "target"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUsed(t, 60_000, byDefault)
			talk := (&talk{system: words(24_000)}).user("Please tidy the repository.")
			for i := range c.turns {
				talk.run(fmt.Sprintf("cat file%d.go", i), words(100))
			}
			u.heat = session.CacheState{At: u.now, TTL: session.ShortTTL, Position: len(talk.messages), Model: "claude-sonnet-4-5"}

			exchange := u.send(t, c.pause, talk.run("ls", "ok"))

			if c.reason != "" {
				wants(t, exchange, "completed", c.reason)
				return
			}
			wants(t, exchange, "skipped", "cost_gate")
			if u.codec.parsed.Load() != 0 || exchange.Report.Before <= exchange.Report.Target {
				t.Errorf("%d messages were read: %+v", u.codec.parsed.Load(), exchange.Report)
			}
		})
	}
}
