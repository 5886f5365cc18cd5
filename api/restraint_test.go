package api

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/tenants"
)

// plans says what a test wants, and counts how often it was asked.
type plans struct {
	reason atomic.Pointer[tenants.Reason]
	asked  atomic.Int32
}

func (p *plans) Restraint(context.Context, tenants.WorkspaceID) (tenants.Restraint, error) {
	p.asked.Add(1)
	return tenants.Restraint{Reason: *p.reason.Load()}, nil
}

func (p *plans) say(reason tenants.Reason) { p.reason.Store(&reason) }

// A workspace that owes, or has used up what is free, is never blocked: its requests
// pass as they came, with a warning, and the plan is known without a round trip.
func TestRestrainedWorkspacePassesUncompressed(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	plans := new(plans)
	plans.say(tenants.Unrestrained)
	p.Settings.WithPlans(plans.Restraint)
	p.store.windows["claude-sonnet-4-5"] = small
	body := toolSession("claude-sonnet-4-5", 30, 800)
	last := func() string {
		received, _ := double.Last()
		return string(received.Body)
	}

	got := p.send(http.MethodPost, messagesPath, body)
	if got.status != http.StatusOK || last() == body || strings.Contains(got.header.Get("X-Palimpsest-Warning"), "uncompressed") {
		t.Fatalf("unrestrained: status %d, %v", got.status, got.header)
	}
	for reason, words := range map[tenants.Reason]string{tenants.PaymentFailed: "a payment", tenants.QuotaUsed: "plan Free"} {
		plans.say(reason)
		p.Settings.Forget(p.store.workspace) // as the notice of the change does
		asked := plans.asked.Load()
		for range 3 {
			got = p.send(http.MethodPost, messagesPath, body)
			if got.status != http.StatusOK || last() != body || got.header.Get("X-Palimpsest-Compression") != "bypassed" {
				t.Errorf("%s: status %d, the body as it came: %v, %v", reason, got.status, last() == body, got.header)
			}
			if warning := got.header.Get("X-Palimpsest-Warning"); !strings.Contains(warning, words) || !strings.Contains(warning, "Billing") {
				t.Errorf("%s: warning %q", reason, warning)
			}
		}
		if more := plans.asked.Load() - asked; more != 1 {
			t.Errorf("%s: asked %d times for three requests", reason, more)
		}
	}
	plans.say(tenants.Unrestrained)
	p.Settings.Forget(p.store.workspace)
	if got := p.send(http.MethodPost, messagesPath, body); last() == body || got.header.Get("X-Palimpsest-Compression") == "bypassed" {
		t.Errorf("after it was paid: %v", got.header)
	}
}
