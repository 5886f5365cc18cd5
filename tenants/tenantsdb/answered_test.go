package tenantsdb_test

import (
	"palimpsest/tenants"
	"testing"
	"time"
)

func TestAnswersGivenAgainAreCountedSinceAMoment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := now()
	for _, report := range []string{`{"cache": "hit"}`, `{"cache": "semantic-hit"}`, `{"cache": "miss"}`, `{}`} {
		exchange := b.exchange(at)
		exchange.Prompt.Report, exchange.Answer.Attempts, exchange.Answer.Status = []byte(report), 0, 200
		b.record(t, b.workspace, exchange)
	}
	old, asked, refused := b.exchange(at.Add(-48*time.Hour)), b.exchange(at), b.exchange(at)
	old.Prompt.Report, old.Answer.Attempts, old.Answer.Status = []byte(`{"cache": "hit"}`), 0, 200
	asked.Prompt.Report, asked.Answer.Attempts, asked.Answer.Status = []byte(`{"cache": "miss"}`), 1, 200
	refused.Prompt.Report, refused.Answer.Attempts, refused.Answer.Status = []byte(`{}`), 0, 429
	b.record(t, b.workspace, old, asked, refused)

	for since, want := range map[time.Duration]int64{time.Hour: 2, 72 * time.Hour: 3, 0: 2} {
		if hits, err := b.Exchanges.AnsweredAgain(tenants.OwnWork(t.Context()), b.workspace, at.Add(-since)); err != nil || hits != want {
			t.Errorf("in %s: %d, %v; want %d", since, hits, err, want)
		}
	}
	// S2: another workspace has none.
	_, other := b.signUp(t, "other@example.com")
	if hits, err := b.Exchanges.AnsweredAgain(tenants.OwnWork(t.Context()), other, at.Add(-time.Hour)); err != nil || hits != 0 {
		t.Errorf("another workspace has %d, %v", hits, err)
	}
}
