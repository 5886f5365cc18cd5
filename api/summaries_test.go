package api

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/summary"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

// A8: a prompt goes to the account that it was for, or to none: what is sealed in it
// another one cannot read.
func TestAPromptIsGoneOnFromAtItsOwnAccountOnly(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	summaries := &Summaries{settings: p.Settings, upstream: p.Upstream}
	call := summary.Call{Workspace: p.store.workspace, Codec: anthropic.New(), Body: []byte(streamed)}
	for _, key := range p.store.keys {
		if key.Provider == tenants.ProviderAnthropic {
			call.Account = key.ID
		}
	}
	if reply, err := summaries.Ask(t.Context(), call); err != nil || reply.Status != http.StatusOK {
		t.Fatalf("its own account: status %d, %v: %s", reply.Status, err, reply.Body)
	}
	p.renewProviderKeys()
	if _, err := summaries.Ask(t.Context(), call); !errors.Is(err, summary.ErrOtherAccount) || len(double.Requests()) != 1 {
		t.Errorf("another account: %v after %d requests", err, len(double.Requests()))
	}
	call.Account = uuid.Nil
	if reply, err := summaries.Ask(t.Context(), call); err != nil || reply.Status != http.StatusOK {
		t.Errorf("any account: status %d, %v: %s", reply.Status, err, reply.Body)
	}
}

// A summary that was lost with its process is asked for again with a request of its
// lane, once no attempt at it can be under way any more.
func TestALostSummaryIsCalledForAgain(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	summaries := &Summaries{now: func() time.Time { return now }}
	for name, test := range map[string]struct {
		age    time.Duration // of the epoch
		asked  int           // messages of a summary that this process knows of
		covers int
	}{
		"may be under way": {lostAfter, 0, 0},
		"lost":             {lostAfter + time.Second, 0, 40},
		"an older one":     {lostAfter + time.Second, 20, 40},
		"there":            {lostAfter + time.Second, 40, 0},
	} {
		exchange := &pipeline.Exchange{View: pipeline.View{Lane: pipeline.Lane{Projection: &session.Projection{Covers: 40, At: now.Add(-test.age)}}}}
		covers, again := summaries.calledFor(exchange, test.asked)
		if covers != test.covers || again != (test.covers > 0) {
			t.Errorf("%s: %d messages, again %v", name, covers, again)
		}
	}
}
