package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
)

// sizedTalk has turns of about 1,000 tokens and a prompt whose size is a multiple of three.
func sizedTalk(t *testing.T, turns int) (c *talk, size int) {
	t.Helper()
	for more := range 40 {
		c = longTalk(turns).run("true", words(4*more))
		exchange := pipelinetest.NewExchange(t, codecs()[conversation.Anthropic], c.body(), pipelinetest.Options{Counter: newCounter(t)})
		if size = exchange.Size(nil); size%3 == 0 {
			return c, size
		}
	}
	t.Fatal("no prompt has such a size")
	return nil, 0
}

// A prompt that takes just as much as a limit allows is within it, and a token more is not.
func TestPromptThatIsJustAsLargeAsALimitIsWithinIt(t *testing.T) {
	t.Parallel()
	c, size := sizedTalk(t, 24)
	const cold = 10 * time.Minute
	for name, test := range map[string]struct {
		limit  int
		pause  time.Duration
		change func(*ipc.Config)
		want   string // reason of the epoch; "" if there is no epoch
	}{
		"the target":                     {size * 4 / 3, 0, nil, ""},
		"a token above the target":       {size*4/3 - 2, 0, nil, "target"},
		"the limit":                      {size, 0, nil, "target"},
		"a token above the limit":        {size - 1, 0, nil, "limit"},
		"the idle share":                 {2 * size, cold, func(c *ipc.Config) { c.IdleUtilization = 0.5 }, ""},
		"a token above the idle share":   {2*size - 1, cold, func(c *ipc.Config) { c.IdleUtilization = 0.5 }, session.ReasonIdle},
		"minContext by break-even":       {million, cold, func(c *ipc.Config) { byBreakEven(c); c.MinContext, c.MinClear = size, 0.01 }, ""},
		"a token above minContext, cold": {million, cold, func(c *ipc.Config) { byBreakEven(c); c.MinContext, c.MinClear = size-1, 0.01 }, session.ReasonIdle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUsed(t, test.limit, small)
			if test.change != nil {
				test.change(pipeline.Change[ipc.Config](&u.Options.Config))
			}
			if test.pause > 0 {
				u.heat = session.CacheState{At: u.now, TTL: session.ShortTTL, Position: len(c.messages) - 2, Model: "claude-sonnet-4-5"}
			}
			exchange := u.send(t, test.pause, c)
			got := ""
			if u.Epochs > 0 {
				got = exchange.Lane.Projection.Reason
			}
			if got != test.want {
				t.Errorf("%d of %d tokens: an epoch for %q, want %q: %+v", size, test.limit, got, test.want, exchange.Report)
			}
		})
	}
}

// The first and the last message of a turn belong to it: a pin or a block of the bridge's there keeps this
// turn, and its neighbors are folded.
func TestPinAtTheEdgeOfATurnKeepsThisTurnOnly(t *testing.T) {
	t.Parallel()
	c := longTalk(30)
	turns := pipelinetest.NewExchange(t, codecs()[conversation.Anthropic], c.body(), pipelinetest.Options{Counter: newCounter(t)}).Conversation.Turns
	third, fifth := turns[3], turns[5]
	block := func(message int) session.Insert {
		return session.Insert{Number: 1, Module: "compaction-bridge", Message: message, Text: "note", Tokens: 5}
	}
	for name, set := range map[string]func(*pipelinetest.Options){
		"first messages":          func(o *pipelinetest.Options) { o.Pins = []int{third.From, fifth.From} },
		"last messages":           func(o *pipelinetest.Options) { o.Pins = []int{third.To - 1, fifth.To - 1} },
		"blocks in first":         func(o *pipelinetest.Options) { o.Inserts = []session.Insert{block(third.From), block(fifth.From)} },
		"blocks in last messages": func(o *pipelinetest.Options) { o.Inserts = []session.Insert{block(third.To - 1), block(fifth.To - 1)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lane := newLane(t, 14_000, small)
			set(&lane.Options)
			exchange, _ := lane.Send(t, c.body())
			levels := turnLevels(exchange)
			for turn, kept := range map[int]bool{2: false, 3: true, 4: false, 5: true, 6: false} {
				if (levels[turn] == 0) != kept {
					t.Errorf("turn %d is at L%d: %v", turn, levels[turn], levels)
				}
			}
		})
	}
}

// Of two compactions of the provider's own, the newer one is the boundary: every message up to it
// stays, and so does the turn that it opens.
func TestNewerOfTwoProviderCompactionsIsTheBoundary(t *testing.T) {
	t.Parallel()
	compaction := `{"role":"assistant","content":[{"type":"compaction","content":"What happened so far, part 1."}]}`
	c := (&talk{}).user("Hello. "+words(300)).add(compaction).user("And now?").run("ls", words(500)).run("make", words(500))
	second := len(c.messages) - 2 // it calls a tool as well, in the turn that it opens
	c.messages[second] = strings.Replace(c.messages[second], `"content":[`, `"content":[{"type":"compaction","content":"What happened so far, part 2."},`, 1)
	kept := len(c.messages)
	for range 12 {
		c.run("ls", words(500))
	}
	lane := newLane(t, 5_000, small)
	exchange, _ := lane.Send(t, c.body())
	if exchange.Lane.Projection == nil {
		t.Fatalf("no epoch: %+v", exchange.Report)
	}
	folded := false
	for _, part := range exchange.Lane.Projection.Parts {
		if part.Raw != nil && part.From < kept {
			t.Errorf("messages %d to %d are changed, the boundary is message %d", part.From, part.To, kept-1)
		}
		folded = folded || part.Raw != nil
	}
	if !folded {
		t.Error("nothing behind the boundary is folded")
	}
}

// An archive that fails at the second epoch leaves the first one in place; it is asked again once the pause
// is over and not a moment before.
func TestSecondEpochWaitsForTheArchive(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 40_000)
	asked := 0
	u.Options.Commit = func(context.Context, session.Projection) error {
		if asked++; asked == 2 {
			return errors.New("disk full")
		}
		return nil
	}
	c := longTalk(36)
	if exchange := u.send(t, 0, c); exchange.Lane.Projection == nil || asked != 1 {
		t.Fatalf("asked %d times: %+v", asked, exchange.Report)
	}
	for i := range 20 {
		c.run("make", fmt.Sprintf("ok %d %s", i, words(1000)))
	}
	for _, test := range []struct {
		after  time.Duration
		asked  int
		number int
	}{{time.Minute, 2, 1}, {30*time.Second - 1, 2, 1}, {1, 3, 2}} {
		exchange := u.send(t, test.after, c.run("true", "ok"))
		if asked != test.asked || exchange.Lane.Projection.Number != test.number {
			t.Errorf("%s later: asked %d times, projection %d; want %d and %d: %+v", test.after, asked, exchange.Lane.Projection.Number, test.asked, test.number, exchange.Report)
		}
	}
}

// An epoch that frees enough and still misses its target is remembered as such: it is no attempt in vain, and
// the next one waits until the prompt has grown by as much as an epoch must free.
func TestEpochThatMissesItsTargetIsNotInVain(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 20_000, small, func(c *ipc.Config) { c.MinClear = 0.05 })
	c := longTalk(18)
	prepare := u.Prepare
	u.Prepare = func(exchange *pipeline.Exchange) {
		prepare(exchange)
		for i := range 15 { // the newest of them take more than the target
			exchange.Lane.Pins = append(exchange.Lane.Pins, exchange.Conversation.Turns[2+i].From)
		}
	}
	exchange := u.send(t, 0, c)
	if u.Epochs != 1 || exchange.Report.After <= 15_000 || u.attempts.Reason != "missed_target" {
		t.Fatalf("%d epochs, %+v: %+v", u.Epochs, u.attempts, exchange.Report)
	}
	for range 4 {
		u.send(t, 10*time.Second, c.run("true", "ok"))
		if u.Epochs != 1 || u.attempts.Fruitless != 0 || u.attempts.Reason != "missed_target" {
			t.Fatalf("%d epochs, %+v", u.Epochs, u.attempts)
		}
	}
}

// A message that is typed right behind the last prompt, before any answer, is newer than that prompt.
func TestMessageTypedBehindTheLastPromptReleasesTheOneBefore(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 50_000)
	c := (&talk{}).user(words(39_000))
	u.send(t, time.Second, c.run("true", "ok"))
	wants(t, u.send(t, time.Second, c.run("true", "ok")), "target_unreachable", "typed_message")
	if exchange := u.send(t, time.Second, c.user("Go on.")); exchange.Report.Compression != pipeline.Epoch {
		t.Errorf("after a newer message was typed: %+v", exchange.Report)
	}
}

// As many of the newest turns stay as the settings say: so many turns, or those that hold the newest tokens.
func TestAsManyTurnsStayAsTheSettingsSay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		turns, tokens int
		goal          float64
		want          int
	}{{1, 0, 0.10, 1}, {3, 0, 0.10, 3}, {1, 4_000, 0.205, 4}, {5, 4_000, 0.205, 5}} {
		exchange, _ := epoch(t, longTalk(60).body(), 40_000, func(c *ipc.Config) {
			c.PreserveLastTurns, c.PreserveTokens, c.CompressTo = test.turns, test.tokens, test.goal
		})
		levels := turnLevels(exchange)
		kept := 0
		for kept < len(levels) && levels[len(levels)-1-kept] == 0 {
			kept++
		}
		if kept < test.want || kept > test.want+2 { // what room is left goes to the next ones
			t.Errorf("with %d turns and %d tokens the newest %d turns stay, want %d: %v", test.turns, test.tokens, kept, test.want, levels)
		}
	}
}

// Where L2 is the deepest level, the oldest turns at L2 are left out for a prompt that would not fit, and the
// event counts their messages.
func TestTurnsAtL2AreLeftOutAndCounted(t *testing.T) {
	t.Parallel()
	exchange, sealed := epoch(t, longTalk(80).body(), 1_700, small, func(c *ipc.Config) { c.DeepestLevel, c.TargetUtilization = 2, 0.9 })
	counts := event(t, exchange, "truncated").Counts
	if counts["archive_from"] != 1 || counts["dropped"] < 40 || counts["archive_to"] < 40 {
		t.Errorf("counts %v", counts)
	}
	if exchange.Report.After > exchange.Limits.Limit {
		t.Errorf("%d of %d tokens", exchange.Report.After, exchange.Limits.Limit)
	}
	lacks(t, sealed, "cat file5.go")
	holds(t, sealed, "cat file78.go", "file79 ")
}
