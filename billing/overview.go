package billing

import (
	"context"
	"fmt"
	"time"

	"github.com/stripe/stripe-go/v76"

	"palimpsest/tenants"
)

const (
	// shownInvoices is how many invoices are shown.
	shownInvoices = 12
)

// Overview is what people see of a workspace's plan, from what is kept here.
type Overview struct {
	Account

	Used     int64 // exchanges that count since From
	Quota    int64 // on the plan Free; 0 if none
	From, To time.Time
	Deadline time.Time // when a payment that failed restrains traffic; zero: none failed
}

// Overview returns a workspace's plan and what it has used of it. Where billing is off
// the plan is Local.
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

// Forecast returns what will have been used at the end of the period if its rest goes
// as it has gone so far. There is no forecast while less than a quarter of the period is over.
func (o Overview) Forecast(now time.Time) (exchanges int64, ok bool) {
	return tenants.Forecast(o.Used, o.From, o.To, now)
}

// Invoice is a bill.
type Invoice struct {
	Number   string
	At       time.Time
	Total    int64  // in the smallest unit of its currency, as for Amount
	Currency string // ISO 4217, in lower case
	Status   string // Stripe's word: open, paid, uncollectible, void
	Link     string // where it is seen and paid, at Stripe; empty: nowhere
}

// Invoices returns a workspace's newest bills, as Stripe has them now.
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

// Warning is what every page tells of, at its top.
type Warning struct {
	Reason tenants.Reason
	On     time.Time // payment: when traffic is restrained, or was; quota: when the new month begins
	Now    bool      // traffic is restrained
}

// Warning returns what people have to be told of, or false.
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
