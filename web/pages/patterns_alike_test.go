package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Candidates that say almost the same stand together, and are approved at once; several that
// were selected are approved all or none.
func TestAlikeCandidatesAreApprovedTogether(t *testing.T) {
	t.Parallel()
	person, _ := patternsSetup(t)
	price := person.Learn("The issue was that storePrice ran before the price was locked. The fix is to take the lock in validateCurrency.")
	person.Learn("Use pnpm for the site and never npm.")
	order := person.Learn("The issue was that splitOrder ran before the order was locked. The fix is to take the lock in refundOrder.")
	page := person.Get("/patterns")
	if heads := page.Find(`[data-testid="alike"]`); heads.Length() != 1 || !strings.Contains(heads.Text(), "2 rules that are almost the same") {
		t.Errorf("together: %q", heads.Text())
	}
	if page := person.Post("/patterns/approve"); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.Find("main").Text(), "Nothing was approved") {
		t.Errorf("none selected: status %d", page.Status)
	}
	var many []string
	for range 201 {
		many = append(many, "id", uuid.NewString())
	}
	if page := person.Post("/patterns/approve", many...); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.Find("main").Text(), "select 1 to 200 rules") {
		t.Errorf("one too many selected: status %d", page.Status)
	}
	if page := person.Post("/patterns/approve", "id", price.ID.String(), "id", "01a210d3-60f2-7496-b7d2-8dd7d5e775fe"); page.Status != http.StatusNotFound {
		t.Errorf("one of nobody: status %d", page.Status)
	}
	if page := person.Get("/patterns"); !strings.Contains(page.TestID("rules"), "storePrice") {
		t.Error("one was approved although another could not be")
	}
	for _, role := range []tenants.Role{tenants.Regular, tenants.Viewer} {
		if page := person.Colleague(role).Post("/patterns/approve", "id", price.ID.String()); page.Status != http.StatusForbidden {
			t.Errorf("%s: status %d", role, page.Status)
		}
	}
	page = person.Post("/patterns/approve", "id", price.ID.String(), "id", order.ID.String())
	if said := page.TestID("done"); said != "2 rules approved. They go into prompts that they are relevant to." {
		t.Errorf("it says %q", said)
	}
	if rules := person.Get("/patterns?state=approved").TestID("rules"); !strings.Contains(rules, "storePrice") || !strings.Contains(rules, "splitOrder") {
		t.Errorf("approved: %q", rules)
	}
}
