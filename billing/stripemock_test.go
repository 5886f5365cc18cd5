package billing

import (
	"bufio"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	stripeapi "github.com/stripe/stripe-go/v76"

	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/tenants"
)

// stripeMock starts stripe-mock, Stripe's own double, in the version that
// deploy/tools/go.mod pins, and returns its address. It checks every parameter against
// Stripe's specification and keeps nothing.
func stripeMock(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), buildtest.StripeMock(t), "-http-addr", "127.0.0.1:0")
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if _, address, is := strings.Cut(lines.Text(), "Listening for HTTP at address: "); is {
			return "http://" + address
		}
	}
	t.Fatal("stripe-mock does not listen")
	return ""
}

// Every call that is made has the parameters that Stripe's specification asks for, and
// its answers can be read.
func TestEveryCallFitsStripesSpecification(t *testing.T) {
	t.Parallel()
	config := DefaultConfig()
	config.APIKey, config.APIBase, config.PublicURL = "sk_test_123", stripeMock(t), "https://palimpsest.example"
	config.Meter = "mtr_123"
	config.Catalog.Team = Prices{Plan: []string{"price_1"}, Usage: "price_2"}
	stripe, ctx := newGateway(config), t.Context()

	customer, err := stripe.customer(ctx, tenants.NewWorkspaceID(), "Northbeam", "ada@example.com")
	if err != nil || customer == "" {
		t.Fatalf("customer %q: %v", customer, err)
	}
	checkout, checkoutErr := stripe.checkout(ctx, order{workspace: tenants.NewWorkspaceID(), customer: customer, plan: Team, seats: 3, trialDays: 14})
	portal, portalErr := stripe.portal(ctx, customer)
	if err := errors.Join(checkoutErr, portalErr); err != nil || checkout == "" || portal == "" {
		t.Errorf("checkout %q, portal %q: %v", checkout, portal, err)
	}
	found, err := stripe.subscription(ctx, customer)
	if err != nil || found == nil || found.CurrentPeriodEnd == 0 || len(found.Items.Data) == 0 || found.Items.Data[0].Price == nil {
		t.Fatalf("subscription %+v: %v", found, err)
	}
	_, owedErr := stripe.owedSince(ctx, found.ID)
	_, invoicesErr := stripe.invoices(ctx, customer)
	_, offerErr := stripe.offer(ctx, Team)
	_, reportedErr := stripe.reported(ctx, customer, time.Now().Truncate(time.Hour))
	_, endErr := stripe.end(ctx, customer)
	for what, err := range map[string]error{
		"owed": owedErr, "invoices": invoicesErr, "offer": offerErr, "reported": reportedErr, "end": endErr,
		"seats":  stripe.setSeats(ctx, found.Items.Data[0].ID, 4),
		"report": stripe.report(ctx, MeterEvent{ID: uuid.New(), Customer: customer, At: time.Now(), Exchanges: 5}),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	// It does check.
	wrong := &stripeapi.SubscriptionItemParams{ProrationBehavior: new("as usual")}
	if _, err := stripe.api.SubscriptionItems.Update(found.Items.Data[0].ID, wrong); err == nil {
		t.Error("a word that Stripe does not know is taken")
	}
	config.APIKey = "wrong"
	_, err = newGateway(config).customer(ctx, tenants.NewWorkspaceID(), "x", "x@example.com")
	if failure, is := asStripe(err); !is || failure.HTTPStatusCode != http.StatusUnauthorized {
		t.Errorf("with a wrong key: %v", err)
	}
}
