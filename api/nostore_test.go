package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/tenants"
)

// A request of which nothing is to be kept, by its header, its key or its workspace, is
// metered and goes out as it came: no session, no epoch, no message in the archive,
// no answer, and so nothing that could be searched.
func TestNoStoreExchangeKeepsFiguresOnly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		data   tenants.DataSettings
		limits tenants.Limits
		header []string
	}{
		"by its header":    {header: []string{"X-Palimpsest-No-Store", "true"}},
		"by its key":       {limits: tenants.Limits{NoStore: true}},
		"by its workspace": {data: tenants.DataSettings{NoStore: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			double := providertest.NewServer(t, providerdouble.Config{})
			p := setupAt(t, double.URL)
			p.store.windows["claude-opus-5-5"] = small
			p.store.data = test.data
			p.store.limit(test.limits)
			body := toolSession("claude-opus-5-5", 30, 800)
			header := append([]string{"X-Palimpsest-Session-Id", "named-by-the-client"}, test.header...)
			for n := range 2 {
				got := p.send(http.MethodPost, messagesPath, body, header...)
				kept := p.last(n + 1)
				if last, _ := double.Last(); got.status != http.StatusOK || string(last.Body) != body {
					t.Fatalf("status %d, the body was edited or refused: %s", got.status, got.body)
				}
				if kept.Request.Session != uuid.Nil || kept.Request.Lane != uuid.Nil || len(kept.Answer.Answer) != 0 || kept.Prompt.Compression != "bypassed" {
					t.Errorf("kept %+v", kept)
				}
				if kept.Tokens.Output == 0 || kept.Tokens.Input+kept.Tokens.CacheRead+kept.Tokens.CacheWrite == 0 || kept.Cost.CostMicroUSD == 0 || kept.Prompt.TokensBefore == 0 {
					t.Errorf("not metered: %+v", kept)
				}
				if strings.Contains(string(kept.Prompt.Report), "named-by-the-client") || got.header.Get("X-Palimpsest-Archived") != "0" {
					t.Errorf("report %s, headers %v", kept.Prompt.Report, got.header)
				}
			}
			if writes := p.memory.writes(); writes != [2]int32{} {
				t.Errorf("%d commits, %d records, want none", writes[0], writes[1])
			}
			// The same without it makes an epoch.
			p.store.mu.Lock()
			p.store.data.NoStore = false
			p.store.mu.Unlock()
			p.store.limit(tenants.Limits{})
			p.Settings.ForgetAll()
			p.send(http.MethodPost, messagesPath, body)
			if kept := p.last(3); kept.Request.Session == uuid.Nil || p.memory.commits.Load() != 1 {
				t.Errorf("without it: %d commits, %+v", p.memory.commits.Load(), kept)
			}
		})
	}
}

// E4: what is too long for the provider is not shortened on the way, either: what is
// shortened must be in the archive first.
func TestNoStoreIsNotRescued(t *testing.T) {
	t.Parallel()
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) { refuseTooLong(w) })
	got := p.send(http.MethodPost, messagesPath, toolSession("claude-sonnet-4-5", 30, 800), "X-Palimpsest-No-Store", "true")
	if got.status != http.StatusBadRequest || string(got.body) != tooLong {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	if got := p.send(http.MethodPost, messagesPath, toolSession("claude-sonnet-4-5", 2, 8), "X-Palimpsest-No-Store", "perhaps"); got.status != http.StatusBadRequest && got.status != http.StatusUnprocessableEntity {
		t.Errorf("perhaps: status %d", got.status)
	}
	p.last(2)
	if writes := p.memory.writes(); writes != [2]int32{} {
		t.Errorf("%v is kept", writes)
	}
}
