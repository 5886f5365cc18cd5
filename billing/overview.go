package billing

import (
	"context"
	"fmt"
	"time"

	"github.com/stripe/stripe-go/v76"

	"palimpsest/tenants"
)

const (
	// shownInvoices limits the invoices shown.
	shownInvoices = 12
)

// Overview is a workspace's plan as people see it, from stored data only.
type Overview struct {
	Account

	Used     int64 // counted exchanges since From
	Quota    int64 // on the plan Free; 0 if unlimited
	From, To time.Time
	Deadline time.Time // when a failed payment restrains traffic; zero without a failed payment
}

// Overview returns a workspace's plan and its usage. If billing is off the plan is Local.
func (s *Service) Overview(ctx context.Context, workspace tenants.WorkspaceID) (Overview, error) {
	if !s.IsOn() {
		return Overview{Account: Account{Workspace: workspace, State: State{Plan: Local}}}, nil
	}
	account, err := s.deps.Store.Account(ctx, workspace)
	if err != nil {
		return Overview{}, err
	}
	overview := Overview{Account: account, Deadline: account.Deadline(s.config.Grace)}
	overview.From, overview.To = account.span(s.deps.Now())
	if account.Plan == Free {
		overview.Quota = FreeExchanges
	}
	overview.Used, err = s.deps.Store.Used(ctx, workspace, overview.From, overview.To)
	return overview, err
}

// Forecast returns the expected usage at the end of the period at the current rate. There is no forecast in
// the first quarter of the period.
func (o Overview) Forecast(now time.Time) (exchanges int64, ok bool) {
	return tenants.Forecast(o.Used, o.From, o.To, now)
}

// Invoice is an invoice of Stripe.
type Invoice struct {
	Number   string
	At       time.Time
	Total    int64  // in the smallest unit of its currency, as for Amount
	Currency string // ISO 4217, in lower case
	Status   string // Stripe's status: open, paid, uncollectible, void
	Link     string // the page at Stripe to see and pay it; "" if absent
}

// Invoices returns a workspace's newest invoices from Stripe.
func (s *Service) Invoices(ctx context.Context, account Account) ([]Invoice, error) {
	if !s.IsOn() || account.Customer == "" {
		return nil, nil
	}
	return s.stripe.invoices(ctx, account.Customer)
}

func (g *gateway) invoices(ctx context.Context, customer string) ([]Invoice, error) {
	params := &stripe.InvoiceListParams{Customer: new(customer)}
	params.Context = ctx
	params.Limit, params.Single = new(int64(shownInvoices)), true
	var invoices []Invoice
	found := g.api.Invoices.List(params)
	for found.Next() {
		one := found.Invoice()
		if one.Status == stripe.InvoiceStatusDraft {
			continue
		}
		invoices = append(invoices, Invoice{
			Number: one.Number, At: unix(one.Created), Total: one.Total, Currency: string(one.Currency), Status: string(one.Status),
			Link: one.HostedInvoiceURL,
		})
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("read invoices: %w", err)
	}
	return invoices, nil
}

// Warning is the warning at the top of every page.
type Warning struct {
	Reason tenants.Reason
	On     time.Time // payment: when traffic is restrained, or was; quota: when the new month begins
	Now    bool      // traffic is restrained
}

// Warning returns the warning about the plan, or false.
func (o Overview) Warning() (Warning, bool) {
	restrained := o.Restraint.Reason != tenants.Unrestrained
	switch {
	case !o.Deadline.IsZero():
		return Warning{Reason: tenants.PaymentFailed, On: o.Deadline, Now: restrained}, true
	case o.Restraint.Reason == tenants.QuotaUsed:
		return Warning{Reason: tenants.QuotaUsed, On: o.To, Now: true}, true
	}
	return Warning{}, false
}
