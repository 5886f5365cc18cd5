package summary

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
)

// D1, D3, D4, D5: what is kept of a good answer has all sections, the files from
// the ledger, the directives word for word and the identifiers that the model lost.
func TestAGoodAnswerIsCompletedByProgram(t *testing.T) {
	t.Parallel()
	l := newLane().user("Fix issue ABC-1234 in the parser. Never touch pkg/legacy/old.go.").
		run("Read", `{"file_path":"/repo/pkg/parser/parse.go"}`, "package parser").
		run("Edit", `{"file_path":"/repo/pkg/parser/parse.go","old_string":"a","new_string":"b"}`, "ok").
		run("Read", `{"file_path":"/repo/README.md"}`, "# Repo").work(20)
	d := newDouble(t, providerdouble.Config{})

	attempt := newBench(t, l, d).do(t, l.job())

	if attempt.Reason != "" || attempt.Covers != len(l.messages) || attempt.Chain != l.chain[len(l.messages)] {
		t.Fatalf("attempt: %+v", attempt)
	}
	for _, want := range []string{
		"## Goal\n- Carry the work on.", "## Progress\n### Done\n- The first steps.", "## Next steps\n- The next step.",
		"Never touch pkg/legacy/old.go.", "ABC-1234", "## Modified files\n- /repo/pkg/parser/parse.go", "## Read files\n- /repo/README.md",
	} {
		if !strings.Contains(attempt.Text, want) {
			t.Errorf("%q is missing in\n%s", want, attempt.Text)
		}
	}
	if attempt.Form != FormOwn || attempt.Model != "claude-haiku-4-5" || !attempt.Usage.Reported || attempt.CostMicroUSD <= 0 {
		t.Errorf("attempt: %+v", attempt)
	}
}

// D2: the next summary goes on from the last one, whose turns are not read again.
func TestAChainGoesOnFromThePreviousSummary(t *testing.T) {
	t.Parallel()
	l := newLane().user("Begin with FIRST-100.").work(20)
	answers := make(chan string, 1)
	d := newDouble(t, providerdouble.Config{Script: func(providerdouble.Request) providerdouble.Reply { return providerdouble.Reply{Text: <-answers} }})
	b := newBench(t, l, d)
	answers <- strings.Replace(strings.Replace(providerdouble.Notes, "- The first steps.", "- Write the scanner.", 1), "### Blocked\n(none)", "### Blocked\n- Wait for the schema.", 1)
	first := b.do(t, l.job())
	l.say("The schema came.").work(20)
	answers <- strings.Replace(strings.Replace(strings.Replace(providerdouble.Notes,
		"- The first steps.", "- [x] Wait for the schema.", 1), "### In progress\n(none)", "### In progress\n- write the scanner", 1),
		"- The next step.", "- Wait for the schema", 1)

	second := b.do(t, l.job())

	if second.Reason != "" || second.Merged != first.Covers {
		t.Fatalf("attempt: %+v", second)
	}
	if want := "### Done\n- Write the scanner.\n- Wait for the schema.\n\n### In progress\n(none)\n\n### Blocked\n(none)"; !strings.Contains(second.Text, want) {
		t.Errorf("what is done is open again:\n%s", second.Text)
	}
	if strings.Contains(second.Text, "## Next steps\n- Wait") {
		t.Errorf("what is done is to be done:\n%s", second.Text)
	}
	asked := string(d.asked()[1].Body)
	if !strings.Contains(asked, "<previous-summary>") || !strings.Contains(asked, "The schema came.") || strings.Contains(asked, "go test ./part1\\") {
		t.Errorf("the model is asked: %.1500s", asked)
	}
}

// D4, D6: after thirty summaries of summaries the newest order and the first one
// are still there, and the text is within its bound.
func TestThirtySummariesLaterTheOrdersAreStillThere(t *testing.T) {
	t.Parallel()
	l := newLane().user("Always run make lint before a commit.")
	d := newDouble(t, providerdouble.Config{Script: func(r providerdouble.Request) providerdouble.Reply {
		var long strings.Builder
		for i := range 60 {
			fmt.Fprintf(&long, "\n- Step %d of %d was done at length, with all that belongs to it.", i, r.Tokens)
		}
		return providerdouble.Reply{Text: strings.Replace(providerdouble.Notes, "\n- The first steps.", long.String(), 1)}
	}})
	b := newBench(t, l, d)
	job := l.job()
	job.Window = 40_000
	count := newCounter(t).Count
	for i := range 30 {
		l.work(4).user(fmt.Sprintf("You must keep rule %d in mind.", i))
		job.Covers, job.Chain = len(l.messages), l.chain
		attempt := b.do(t, job)
		if attempt.Reason != "" {
			t.Fatalf("summary %d: %s", i, attempt.Reason)
		}
		if size, most := count(attempt.Text), Budget(job.Window); size > most {
			t.Fatalf("summary %d has %d tokens of %d", i, size, most)
		}
		for _, want := range []string{"Always run make lint before a commit.", fmt.Sprintf("You must keep rule %d in mind.", i)} {
			if !strings.Contains(attempt.Text, want) {
				t.Fatalf("summary %d lost %q:\n%s", i, want, attempt.Text)
			}
		}
	}
}

// D7: an answer that is not a summary is rejected with its reason and nothing of it is kept; an
// error message never becomes a summary.
func TestAnswerThatIsNotASummaryIsRejected(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reply providerdouble.Reply
		want  string
	}{
		"empty":             {providerdouble.Reply{}, ReasonEmpty},
		"white space":       {providerdouble.Reply{Text: " \n\t "}, ReasonEmpty},
		"no room":           {providerdouble.Reply{Text: providerdouble.Notes, StopReason: "max_tokens"}, ReasonTruncated},
		"refusal":           {providerdouble.Reply{Text: providerdouble.Notes, StopReason: "refusal"}, ReasonRefusal},
		"refusal in words":  {providerdouble.Reply{Text: "I'm sorry, but I can't help with that."}, ReasonRefusal},
		"tool call":         {providerdouble.Reply{Calls: []providerdouble.Call{{Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}}}, ReasonToolCall},
		"tool call beside":  {providerdouble.Reply{Text: providerdouble.Notes, Calls: []providerdouble.Call{{Name: "Bash", Input: json.RawMessage(`{}`)}}}, ReasonToolCall},
		"an error as text":  {providerdouble.Reply{Text: `{"error":{"message":"overloaded"}}`}, ReasonError},
		"an error in words": {providerdouble.Reply{Text: "Error: the upstream model timed out"}, ReasonError},
		"a section missing": {providerdouble.Reply{Text: strings.Replace(providerdouble.Notes, "## Key decisions\n", "", 1)}, "missing_key_decisions"},
		"just an answer":    {providerdouble.Reply{Text: "All done, the tests pass."}, "missing_goal"},
		"429":               {providerdouble.Reply{Misbehave: providerdouble.MisbehaveRateLimit}, "provider_429"},
		"500":               {providerdouble.Reply{Misbehave: providerdouble.MisbehaveFailure}, "provider_500"},
		"529":               {providerdouble.Reply{Misbehave: providerdouble.MisbehaveOverloaded}, "provider_529"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLane().user("Go.").work(20)
			d := newDouble(t, providerdouble.Config{Script: func(providerdouble.Request) providerdouble.Reply { return test.reply }})
			b := newBench(t, l, d)

			attempt := b.do(t, l.job())

			if attempt.Reason != test.want || attempt.Text != "" || len(l.summaries) != 0 {
				t.Errorf("rejected for %q with text %q, want %q", attempt.Reason, attempt.Text, test.want)
			}
			if len(d.asked()) != 1 {
				t.Errorf("the provider was asked %d times", len(d.asked()))
			}
		})
	}
}

// D7: a summary that is not smaller than its source is rejected.
func TestASummaryLargerThanItsSourceIsRejected(t *testing.T) {
	t.Parallel()
	l := newLane().user("Hello.").say("Hello to you.")
	if attempt := newBench(t, l, newDouble(t, providerdouble.Config{})).do(t, l.job()); attempt.Reason != ReasonLarger {
		t.Errorf("rejected for %q", attempt.Reason)
	}
}

// D4, D5: a summary whose bound has no room for what the person ordered last is rejected.
func TestASummaryWithoutTheNewestOrdersIsRejected(t *testing.T) {
	t.Parallel()
	for window, want := range map[int]string{4_000: ReasonCoverage, 40_000: ""} { // 200 and 2,000 tokens
		l := newLane()
		for i := range 8 {
			l.user(fmt.Sprintf("Never change the table called orders_%d in any of its columns, indexes, triggers or views without asking me first.", i)).work(4)
		}
		job := l.job()
		job.Window = window
		attempt := newBench(t, l, newDouble(t, providerdouble.Config{})).do(t, job)
		if attempt.Reason != want || (attempt.Text == "") != (want != "") {
			t.Errorf("in a window of %d: rejected for %q, want %q:\n%s", window, attempt.Reason, want, attempt.Text)
		}
		if want == "" && strings.Count(attempt.Text, "Never change the table") != 8 {
			t.Errorf("orders are missing:\n%s", attempt.Text)
		}
	}
}

// D10: where the provider finds the request too long, the oldest turns go and it is
// asked again, a bounded number of times.
func TestATooLongRequestLosesItsOldestTurns(t *testing.T) {
	t.Parallel()
	l := newLane().user("Go OLDEST-1.").work(60).say("NEWEST-2 is done.")
	size := 0
	d := newDouble(t, providerdouble.Config{Models: map[string]providerdouble.Model{"claude-haiku-4-5": {Window: 8_000, MaxOutput: 64_000}}})
	b := newBench(t, l, d)

	job := l.job()
	job.Window = 40_000
	attempt := b.do(t, job)

	calls := d.asked()
	if len(calls) < 2 {
		t.Fatalf("asked %d times: %+v", len(calls), attempt)
	}
	for i, call := range calls {
		if i > 0 && len(call.Body) >= size {
			t.Errorf("request %d has %d bytes, the one before %d", i, len(call.Body), size)
		}
		size = len(call.Body)
		if !strings.Contains(string(call.Body), "NEWEST-2") || i > 0 && strings.Contains(string(call.Body), "OLDEST-1") {
			t.Errorf("request %d leaves out the wrong end", i)
		}
	}
	if attempt.Reason != "" && attempt.Reason != ReasonOverflow || len(calls) > attempts {
		t.Errorf("%d calls: %+v", len(calls), attempt)
	}
	if attempt.Reason == "" && !strings.Contains(attempt.Text, "OLDEST-1") {
		t.Errorf("what the model did not see is not put back:\n%s", attempt.Text)
	}
}

// D10: what the model that writes cannot hold it is not sent in the first place.
func TestTheWritersOwnWindowIsKeptTo(t *testing.T) {
	t.Parallel()
	l := newLane().user("Go OLDEST-1.").work(700).say("NEWEST-2 is done.")
	d := newDouble(t, providerdouble.Config{AllowUnknown: true})
	job := l.job()
	job.Settings.Model = "house-model" // of which 100,000 tokens are supposed
	attempt := newBench(t, l, d).do(t, job)

	calls := d.asked()
	if len(calls) != 1 || attempt.Reason != "" {
		t.Fatalf("asked %d times: %+v", len(calls), attempt)
	}
	last, _ := d.Last()
	body := string(last.Body)
	if last.Prompt > unknownLimit || last.Prompt < unknownLimit/2 || !strings.Contains(body, "NEWEST-2") || strings.Contains(body, "OLDEST-1") || !strings.Contains(body, "earlier turns left out") {
		t.Errorf("%d tokens, newest %t, oldest %t", last.Prompt, strings.Contains(body, "NEWEST-2"), strings.Contains(body, "OLDEST-1"))
	}
}

// stuck answers nothing until it is released or canceled.
type stuck struct{ entered, release chan struct{} }

// Ask implements Provider.
func (p *stuck) Ask(ctx context.Context, _ Call) (Reply, error) {
	p.entered <- struct{}{}
	select {
	case <-p.release:
		return Reply{Status: 500}, nil
	case <-ctx.Done():
		return Reply{}, context.Cause(ctx)
	}
}

// D10: an attempt ends at its deadline, which is 30 seconds unless the workspace has
// set another.
func TestAnAttemptEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	for set, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 5 * time.Second: 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l := newLane().user("Go.").work(5)
			job := l.job()
			job.Settings.Timeout = set
			b := newBench(t, l, &stuck{entered: make(chan struct{}, 1)})
			began := time.Now()

			attempt, _ := b.worker.keep(t.Context(), job)

			if took := time.Since(began); attempt.Reason != ReasonTimeout || took != want {
				t.Errorf("after %s, want %s: %+v", took, want, attempt)
			}
			b.worker.Stop()
		})
	}
}

// A lane has one job at a time, the queue is bounded, and asking never waits.
func TestAskingNeverWaits(t *testing.T) {
	t.Parallel()
	l := newLane().user("Go.").work(5)
	p := &stuck{entered: make(chan struct{}, queueJobs+workers), release: make(chan struct{})}
	b := newBench(t, l, p)
	job := l.job()
	if !b.worker.Ask(job) || b.worker.Ask(job) {
		t.Error("a lane has two jobs")
	}
	for range workers - 1 {
		b.worker.Ask(l.job())
	}
	for range workers {
		<-p.entered
	}
	taken, prompt := 0, make([]byte, queueBytes/4)
	for range queueJobs + 10 {
		other := l.job()
		other.Base = &CachedPrompt{Body: prompt}
		if b.worker.Ask(other) {
			taken++
		}
	}
	if taken != queueJobs {
		t.Errorf("%d jobs were taken, the queue holds %d", taken, queueJobs)
	}
	close(p.release)
	for range taken + workers {
		<-b.ended
	}
	b.worker.mu.Lock()
	if b.worker.bytes != 0 {
		t.Errorf("%d bytes are still held", b.worker.bytes)
	}
	b.worker.mu.Unlock()
	if !b.worker.Ask(job) {
		t.Error("a lane whose job has ended gets no other")
	}
	<-b.ended
}

// Stopping ends a call under way, keeps nothing of it, and may be done twice.
// What was lost with its process is made up for; what was tried is not tried again.
func TestASummaryAskedForAgainIsMadeOnlyIfNoneWasTried(t *testing.T) {
	t.Parallel()
	provider := newDouble(t, providerdouble.Config{Script: notes(providerdouble.Notes)})
	b := newBench(t, newLane().user("Port the scanner.").work(20), provider)
	job := b.job()
	job.Again = true
	if attempt := b.do(t, job); attempt.Reason != "" {
		t.Fatalf("what was lost is rejected: %s", attempt.Reason)
	}
	calls := len(provider.asked())

	attempt, kept := b.worker.keep(t.Context(), job)

	if kept || len(provider.asked()) != calls {
		t.Errorf("it was tried again: %+v", attempt)
	}
}

func TestStoppingEndsACallUnderWay(t *testing.T) {
	t.Parallel()
	l := newLane().user("Go.").work(5)
	p := &stuck{entered: make(chan struct{}, 1)}
	b := newBench(t, l, p)
	b.worker.Ask(l.job())
	<-p.entered

	b.worker.Stop()
	b.worker.Stop()

	if len(l.attempts) != 0 {
		t.Errorf("kept: %+v", l.attempts)
	}
	NewWorker(Config{}).Stop()
}

// answer is a provider that has one answer.
type answer struct {
	reply Reply
	err   error
}

// Ask implements Provider.
func (a answer) Ask(context.Context, Call) (Reply, error) { return a.reply, a.err }

func TestNoAnswerIsNoSummary(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{ReasonNoProvider: ErrNoProvider, ReasonUnreachable: fmt.Errorf("%w: connection refused", ErrUnreachable)} {
		l := newLane().user("Go.").work(5)
		b := newBench(t, l, answer{err: err})
		if attempt := b.do(t, l.job()); attempt.Reason != want || !slices.Equal(l.rejected, []string{want}) {
			t.Errorf("%v: %+v, told %v", err, attempt, l.rejected)
		}
	}
}

// E1: what is not durable yet is not summed up.
func TestOriginalsThatAreNotDurableAreNotSummedUp(t *testing.T) {
	t.Parallel()
	l := newLane().user("Go.").work(5)
	job := l.job()
	l.messages = l.messages[:4]
	if attempt := newBench(t, l, answer{err: errors.New("never asked")}).do(t, job); attempt.Reason != ReasonNotArchived {
		t.Errorf("attempt: %+v", attempt)
	}
	job.Lane, job.Covers = uuid.New(), 0
	if newBench(t, l, answer{}).worker.Ask(job) {
		t.Error("a summary of nothing was taken")
	}
}
