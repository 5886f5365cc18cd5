package api

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
)

// E12: a dry run says what the next request's epoch will be and does none of it:
// the body goes out as it came and nothing is committed.
func TestDryRunSaysWhatWouldBeDone(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	p.store.windows["claude-opus-5-5"] = small
	body := toolSession("claude-opus-5-5", 30, 800)

	dry := p.send(http.MethodPost, messagesPath, body, "X-Palimpsest-Dry-Run", "true")
	p.last(1)
	if last, _ := double.Last(); dry.status != http.StatusOK || string(last.Body) != body {
		t.Errorf("status %d, the body was edited or refused: %s", dry.status, dry.body)
	}
	if p.memory.commits.Load() != 0 || dry.header.Get("X-Palimpsest-Compression") != "none" || dry.header.Get("X-Palimpsest-Archived") != "0" {
		t.Errorf("%d commits, headers %v", p.memory.commits.Load(), dry.header)
	}

	// Another proxy, because this one has learned from the answer.
	fresh := setupAt(t, double.URL)
	fresh.store.windows["claude-opus-5-5"] = small
	header := fresh.send(http.MethodPost, messagesPath, body).header
	would := "epoch; before=" + header.Get("X-Palimpsest-Tokens-Before") + "; after=" + header.Get("X-Palimpsest-Tokens-After") +
		"; levels=" + header.Get("X-Palimpsest-Levels")
	said := dry.header.Get("X-Palimpsest-Dry-Run")
	if header.Get("X-Palimpsest-Compression") != "epoch" || header.Get("X-Palimpsest-Dry-Run") != "" || said != would {
		t.Errorf("the dry run said %q, and then it was %q", said, would)
	}

	// With a projection in place, a dry run sends that.
	p.send(http.MethodPost, messagesPath, body)
	p.last(2)
	p.send(http.MethodPost, messagesPath, body)
	frozen, _ := double.Last()
	again := p.send(http.MethodPost, messagesPath, body, "X-Palimpsest-Dry-Run", "1", "X-Palimpsest-Target-Utilization", "0.30")
	if last, _ := double.Last(); string(last.Body) != string(frozen.Body) || !strings.HasPrefix(again.header.Get("X-Palimpsest-Dry-Run"), "epoch; ") {
		t.Errorf("the frozen prompt changed, headers %v", again.header)
	}
	if commits := p.memory.commits.Load(); commits != 1 {
		t.Errorf("%d commits, want the epoch's alone", commits)
	}
}

// E4, E12: what the provider says of a dry run is what it says of the prompt as it
// is: there is no emergency pass.
func TestDryRunIsNotRescued(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		refuseTooLong(w)
	})
	got := p.send(http.MethodPost, messagesPath, toolSession("claude-sonnet-4-5", 30, 800), "X-Palimpsest-Dry-Run", "true")
	if got.status != http.StatusBadRequest || string(got.body) != tooLong || asked.Load() != 1 {
		t.Errorf("asked %d times, status %d: %s", asked.Load(), got.status, got.body)
	}
}
