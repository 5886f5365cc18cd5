package prompt_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/wire"
)

// payer answers the prompts of a bench as a provider does that caches all of every
// prompt, at a clock that moves a minute with each.
type payer struct {
	*bench

	now    time.Time
	cached int // tokens of the last prompt
}

func newPayer(t *testing.T, window int) *payer {
	t.Helper()
	p := &payer{bench: newBench(t, conversation.Anthropic, window), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	p.writer.Now = func() time.Time { return p.now }
	return p
}

// everything is what pay reads where the provider finds all of the last prompt.
const everything = -1

// unedited is what pay reads where it finds all of it unless an epoch changed it.
const unedited = -2

// pay writes a prompt and answers it with so many tokens from the cache.
func (p *payer) pay(body []byte, read int) (*prompt.Prompt, cost.Money) {
	p.t.Helper()
	p.now = p.now.Add(time.Minute)
	written := p.write(body)
	size := written.Exchange.Report.After
	switch {
	case read == unedited && written.Exchange.Report.Archived > 0:
		read = 0
	case read < 0:
		read = min(p.cached, size)
	}
	p.cached = size
	usage := wire.Usage{Reported: true, CacheRead: read, CacheWrite: size - read}
	return written, p.writer.Answered(written.Sent(), wire.Answer{Usage: usage})
}

// C11: each cause, as it comes about in a lane.
func TestMissesInALaneHaveTheirCause(t *testing.T) {
	t.Parallel()
	p := newPayer(t, 1_000_000)
	talk := begun("claude-sonnet-4-5").filled(4, 2000)
	expect := func(what string, got cost.Money, want cost.Cause) {
		t.Helper()
		if got.Miss.Cause != want {
			t.Errorf("%s: the miss is put down to %q, want %q: %+v", what, got.Miss.Cause, want, got)
		}
	}
	_, money := p.pay(talk.body(), 0)
	expect("first prompt", money, cost.ColdStart)
	_, money = p.pay(talk.filled(1, 2000).body(), everything)
	expect("the next", money, cost.None)
	_, money = p.pay(talk.filled(1, 2000).body(), 0)
	expect("nothing changed", money, cost.Provider)

	p.now = p.now.Add(5 * time.Minute)
	_, money = p.pay(talk.filled(1, 2000).body(), 0)
	expect("after a while", money, cost.TTLExpiry)

	talk.head += `,"system":"You are another."`
	_, money = p.pay(talk.filled(1, 2000).body(), 0)
	expect("another system prompt", money, cost.PrefixChangeClient)

	// The client rewinds and says something else.
	talk.messages = slices.Clone(talk.messages[:9])
	talk.assistant(said("Stop.")).user(said("Do this in its place: " + words(2000)))
	_, money = p.pay(talk.body(), 100)
	expect("a history that was rewound", money, cost.PrefixChangeClient)
}

// A client that has compacted itself goes on in another lane: nothing of the old
// prompts could be read, by its own doing.
func TestClientsOwnCompactionIsItsEdit(t *testing.T) {
	t.Parallel()
	p := newPayer(t, 1_000_000)
	p.headers.Set("User-Agent", "claude-cli/2.1.329 (external, cli)")
	_, _ = p.pay(begun("claude-sonnet-4-5").filled(4, 2000).body(), 0)
	summary := (&talk{head: `"model":"claude-sonnet-4-5"`}).
		user(said("This session is being continued from a previous conversation that ran out of context. The summary below covers the earlier portion of the conversation.\n\nSummary:\nAll is done."))
	if _, money := p.pay(summary.body(), 0); money.Miss != (cost.Miss{Cause: cost.PrefixChangeClient}) {
		t.Errorf("missed %+v", money.Miss)
	}
}

// C11: an epoch's realized net is what its exchanges save; what it rewrites of a
// cache that is alive counts against it.
func TestEpochsOfAWarmCacheCostWhatTheyRewrite(t *testing.T) {
	t.Parallel()
	p := newPayer(t, 60_000)
	talk := begun("claude-sonnet-4-5").filled(8, 2000)
	for range 40 {
		written, money := p.pay(talk.filled(1, 2000).body(), everything)
		if written.Exchange.Report.Archived == 0 {
			continue
		}
		report := written.Exchange.Report
		if money.Miss.Cause != cost.None {
			t.Fatalf("all was read, and missed is %+v", money.Miss)
		}
		// The same answer, had the provider found nothing of it.
		usage := wire.Usage{Reported: true, CacheWrite: report.After}
		money = p.writer.Answered(written.Sent(), wire.Answer{Usage: usage})
		saved := int64(report.Before-report.After) * 3 / 10
		lost := int64(money.Miss.Tokens) * (375 - 30) / 100
		if money.Miss.Cause != cost.PrefixChangeOurs || money.Miss.Tokens < report.After/2 || money.Net > saved-lost+10 || money.Net < saved-lost-10 {
			t.Errorf("net %d of an epoch from %d to %d tokens that missed %+v, want %d", money.Net, report.Before, report.After, money.Miss, saved-lost)
		}
		if report.Predicted() == nil {
			t.Error("the epoch does not say what it is to save")
		}
		return
	}
	t.Fatal("no epoch")
}

// A process that has just started goes by what the store knows of the lane.
func TestMissesAreAttributedAfterARestart(t *testing.T) {
	t.Parallel()
	p := newPayer(t, 1_000_000)
	talk := begun("claude-sonnet-4-5").filled(4, 2000)
	_, _ = p.pay(talk.body(), 0)
	tracker, err := cost.NewTracker()
	if err != nil {
		t.Fatal(err)
	}
	p.writer.Tracker = tracker
	p.now = p.now.Add(20 * time.Minute)
	if _, money := p.pay(talk.filled(1, 2000).body(), 0); money.Miss.Cause != cost.TTLExpiry || money.Miss.Tokens == 0 {
		t.Errorf("missed %+v", money.Miss)
	}
}

func TestLaneThatLosesMoneyIsWarnedOf(t *testing.T) {
	t.Parallel()
	p := newPayer(t, 400_000) // the client's own prompt always fits
	settings := pipeline.Change[ipc.Config](&p.config)
	settings.ContextWindow, settings.TargetUtilization, settings.CompressTo = 40_000, 0.75, 0.25
	talk := begun("claude-sonnet-4-5").filled(4, 2000)
	epochs, warnings, events := 0, 0, 0
	for range 40 { // the ceiling holds a few turns only: each epoch comes before the last one has paid
		written, _ := p.pay(talk.filled(1, 4000).body(), unedited)
		report := written.Exchange.Report
		if report.Archived > 0 {
			epochs++
		}
		if slices.Contains(report.Warnings, "net-loss") {
			warnings++
			if epochs < 2 {
				t.Fatalf("a loss after %d epochs", epochs)
			}
		}
		for _, event := range report.Events {
			if event.Type == "warning" && event.Reason == "net-loss" {
				events++
				if event.Counts["net_microusd"] >= 0 {
					t.Errorf("the loss is %d", event.Counts["net_microusd"])
				}
			}
		}
	}
	if epochs < 3 || warnings < 2 || events == 0 || events >= warnings {
		t.Errorf("%d epochs, %d warnings, %d events", epochs, warnings, events)
	}
}

// E5, E13: what people are warned of stands in the report for as long as it holds,
// and its event with what caused it.
func TestWarningsStandForAsLongAsTheyHold(t *testing.T) {
	t.Parallel()
	p := newPayer(t, 30_000)
	pipeline.Change[ipc.Config](&p.config).WarnAfterEpochs = 2
	talk := begun("claude-sonnet-4-5").filled(4, 2000)
	epochs := 0
	for range 80 {
		written, _ := p.pay(talk.filled(1, 2000).body(), everything)
		report := written.Exchange.Report
		isEpoch := report.Archived > 0
		if isEpoch {
			epochs++
		}
		warned := slices.ContainsFunc(report.Warnings, func(warning string) bool { return strings.HasPrefix(warning, "epochs=") })
		if warned != (epochs >= 2) {
			t.Fatalf("%d epochs, warnings %v", epochs, report.Warnings)
		}
		events := 0
		for _, event := range report.Events {
			if event.Type == "warning" && event.Reason == "epochs" && event.Counts["epochs"] == epochs {
				events++
			}
		}
		if want := warned && isEpoch; (events == 1) != want {
			t.Fatalf("%d epochs, %d events", epochs, events)
		}
	}
	if epochs < 3 {
		t.Fatalf("%d epochs", epochs)
	}
	pipeline.Change[ipc.Config](&p.config).WarnAfterEpochs = 0
	if written, _ := p.pay(talk.filled(1, 2000).body(), everything); len(written.Exchange.Report.Warnings) > 0 {
		t.Errorf("turned off, and warned of %v", written.Exchange.Report.Warnings)
	}
}
