package ipc_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
)

// scaled is a lane whose model has a tokenizer of its own, and how it is used.
type scaled struct {
	limit  int // tokens of the model with a factor of 1
	change func(*ipc.Config)
	talk   func(request int) *talk
	pause  func(request int) time.Duration // optional
	lane   func(*used)                     // optional
	first  int
	last   int
	epochs int // at least
}

// lightTalk has a long message that stays and so little to fold that an epoch frees a tenth.
func lightTalk(turns int) *talk {
	c := (&talk{system: words(8_000)}).user("Please tidy the repository.")
	for i := range turns {
		c.run(fmt.Sprintf("cat file%d.go", i), fmt.Sprintf("file%d %s", i, words(400)))
	}
	return c
}

func scaledLanes() map[string]scaled {
	return map[string]scaled{
		"target": {limit: 20_000, talk: longTalk, first: 10, last: 40, epochs: 2},
		"break-even": {limit: million, change: func(c *ipc.Config) {
			byBreakEven(c)
			c.MinContext, c.PreserveLastTurns, c.PreserveTokens, c.KeepLastLadder = 24_000, 1, 4_000, []int{1}
		}, talk: grown, first: 10, last: 40, epochs: 2},
		"cold cache": {limit: 40_000, talk: longTalk, first: 26, last: 28, epochs: 1, pause: func(int) time.Duration { return 10 * time.Minute }},
		"order":      {limit: 40_000, talk: longTalk, first: 24, last: 25, epochs: 1, lane: func(u *used) { u.Options.Order = &session.Order{} }},
		"little to free": {limit: 10_000, talk: lightTalk, first: 3, last: 12, epochs: 1, change: func(c *ipc.Config) {
			c.PreserveLastTurns, c.PreserveTokens, c.TargetUtilization, c.MinClear = 1, 0, 0.95, 0.05
		}},
		"tail of tokens": {limit: 20_000, talk: longTalk, first: 16, last: 18, epochs: 1, change: func(c *ipc.Config) {
			c.PreserveLastTurns, c.PreserveTokens, c.CompressTo = 1, 2_400, 0.6
		}},
		"pinned": {limit: 12_000, talk: longTalk, first: 8, last: 24, epochs: 1, lane: func(u *used) { u.Options.Pins = []int{1, 3, 5, 7, 9} }},
		"a client's summary": {limit: 20_000, first: 16, last: 17, epochs: 1, talk: func(n int) *talk { // of more than an eighth of the limit
			c := longTalk(n)
			c.messages[0] = (&talk{}).user("This session is being continued from a previous conversation. Summary: " + words(2_900)).messages[0]
			return c.say("Done.").user("Now the tests.").run("make", words(500)).run("make", words(500))
		}, change: small},
		"one huge result": {limit: 8_000, first: 1, last: 3, epochs: 1, talk: func(n int) *talk {
			return longTalk(4).run("cat all.go", words(12_000*n))
		}},
	}
}

// A length in the tokens of one tokenizer is never held against one in another's: where the
// model, its window, and the settings count in tokens that are a half larger or smaller, every
// request comes to the same bytes, and the report's figures are larger or smaller by as much.
func TestOtherTokenizerChangesNoDecision(t *testing.T) {
	t.Parallel()
	for name, test := range scaledLanes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, _ := test.run(t, 1)
			for _, factor := range []float64{0.75, 1.5} {
				got, epochs := test.run(t, factor)
				if epochs < test.epochs {
					t.Errorf("%d epochs with a factor of %v, want %d", epochs, factor, test.epochs)
				}
				for i := range want {
					if !bytes.Equal(got[i].sealed, want[i].sealed) {
						t.Fatalf("request %d with a factor of %v: %+v\nwith 1: %+v", i, factor, got[i].report, want[i].report)
					}
					near(t, "before", got[i].report.Before, factor, want[i].report.Before)
					near(t, "after", got[i].report.After, factor, want[i].report.After)
				}
			}
		})
	}
}

// Where the provider has reported a prompt that is half as large again as the estimate, the epoch is planned
// as if the factor said so.
func TestReportedSizeIsAsGoodAsAFactor(t *testing.T) {
	t.Parallel()
	c := longTalk(20)
	calibrated, reported := newLane(t, 24_000, small), newLane(t, 24_000, small)
	calibrated.Options.Factor = 1.5
	whole, want := send(t, calibrated, c.body())
	reported.Options.Anchor = session.Anchor{Position: len(c.messages), Fixed: whole.Limits.Fixed, Tokens: whole.Report.Before}
	exchange, got := send(t, reported, c.body())
	if whole.Report.Compression != pipeline.Epoch || !bytes.Equal(got, want) {
		t.Errorf("levels %v, want %v: %+v", exchange.Report.Levels, whole.Report.Levels, exchange.Report)
	}
	near(t, "after", exchange.Report.After, 1, whole.Report.After)
}

func near(t *testing.T, figure string, got int, factor float64, want int) {
	t.Helper()
	if off := float64(got) - factor*float64(want); off < -2 || off > 2 {
		t.Errorf("%s is %d with a factor of %v, and %d with 1", figure, got, factor, want)
	}
}

// told is a request as it went out.
type told struct {
	sealed []byte
	report pipeline.Report
}

// run sends the lane's requests to a model whose tokens are so many times as many.
func (s scaled) run(t *testing.T, factor float64) (requests []told, epochs int) {
	t.Helper()
	model := func(tokens int) int { return int(factor * float64(tokens)) }
	u := newUsed(t, model(s.limit), func(c *ipc.Config) {
		if s.change != nil {
			s.change(c)
		}
		c.PreserveTokens, c.MinContext = model(c.PreserveTokens), model(c.MinContext)
	})
	u.Options.Factor = factor
	if s.lane != nil {
		s.lane(u)
	}
	for i := s.first; i <= s.last; i++ {
		pause := 10 * time.Second
		if s.pause != nil {
			pause = s.pause(i)
		}
		exchange := u.send(t, pause, s.talk(i))
		requests = append(requests, told{pipelinetest.Seal(exchange), exchange.Report})
	}
	return requests, u.Epochs
}
