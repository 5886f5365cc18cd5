package billing

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Status is Stripe's status of a subscription; "" if there never was one.
type Status string

// The statuses with a plan.
const (
	Trialing Status = "trialing"
	Active   Status = "active"
	PastDue  Status = "past_due"
	Unpaid   Status = "unpaid"
	Paused   Status = "paused"
	Canceled Status = "canceled"
)

// IsLive reports whether a subscription with this status gives its plan.
func (s Status) IsLive() bool {
	return slices.Contains([]Status{Trialing, Active, PastDue, Unpaid, Paused}, s)
}

// Owes reports whether a payment has failed and is still due.
func (s Status) Owes() bool { return s == PastDue || s == Unpaid }

// State is the state of a workspace's subscription at Stripe. Its zero value means that there never was one.
// Times are zero if absent.
type State struct {
	Subscription string // Stripe's id
	Plan         Plan   // Free unless a subscription gives another
	Status       Status
	Seats        int64
	PeriodStart  time.Time
	PeriodEnd    time.Time
	TrialEnd     time.Time
	EndsAt       time.Time // when a canceled subscription ends
	PastDueSince time.Time // the oldest failed payment that is still owed
	MeteredFrom  time.Time // usage from here on is reported to Stripe
	MeteredTo    time.Time // up to here
}

// Account is a workspace's billing data.
type Account struct {
	State

	Workspace tenants.WorkspaceID `gorm:"column:workspace_id"`
	Customer  string              // Stripe's id; "" before the first checkout
	Restraint tenants.Restraint   `gorm:"embedded"`
	Told      string              // the trouble of the last mail
}

// Fields returns a state's fields for the audit log.
func (s State) Fields() tenants.Fields {
	fields := tenants.Fields{"plan": string(s.Plan), "status": string(s.Status)}
	if s.Seats > 0 {
		fields["seats"] = strconv.FormatInt(s.Seats, 10)
	}
	if !s.EndsAt.IsZero() {
		fields["ends_at"] = s.EndsAt.UTC().Format(time.RFC3339)
	}
	return fields
}

// Deadline returns when a failed payment begins to restrain traffic; zero without a failed payment.
func (s State) Deadline(grace time.Duration) time.Time {
	if !s.Status.Owes() || s.PastDueSince.IsZero() {
		return time.Time{}
	}
	return s.PastDueSince.Add(grace)
}

// restraint returns the reason to hold back the traffic of a workspace that has used so many exchanges this
// month.
func (s State) restraint(now time.Time, used int64, grace time.Duration) tenants.Reason {
	deadline := s.Deadline(grace)
	switch {
	case !deadline.IsZero() && !now.Before(deadline):
		return tenants.PaymentFailed
	case s.Plan == Free && used > FreeExchanges:
		return tenants.QuotaUsed
	}
	return tenants.Unrestrained
}

// span returns the period whose usage counts against the plan. It is Stripe's period, or on the plan Free the
// calendar month in UTC, from the end of a plan that was canceled in it.
func (s State) span(now time.Time) (from, to time.Time) {
	if s.Plan != Free && !s.PeriodEnd.IsZero() {
		return s.PeriodStart, s.PeriodEnd
	}
	now = now.UTC()
	from = time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	to = from.AddDate(0, 1, 0)
	if s.Status == Canceled && s.EndsAt.After(from) && s.EndsAt.Before(to) {
		from = s.EndsAt
	}
	return from, to
}

// MeterEvent is usage to report to Stripe.
type MeterEvent struct {
	ID        uuid.UUID // Stripe's identifier, so that a repeated event counts once
	Customer  string
	At        time.Time // the time sent to Stripe
	Exchanges int64
	TriedAt   time.Time // first sent under this id; zero if never
}

// Notice is a webhook event of Stripe.
type Notice struct {
	ID         uuid.UUID // derived from Event
	Event      string    // Stripe's id
	Type       string
	ReceivedAt time.Time
}

// tell mails a problem to the people who pay, once for each problem.
func (s *Service) tell(ctx context.Context, account Account, periodEnd time.Time) error {
	if s.deps.Mail == nil {
		return nil
	}
	trouble, subject, text := s.trouble(account, periodEnd)
	if trouble == account.Told {
		return nil
	}
	return s.deps.Store.Tell(ctx, account.Workspace, trouble, func(tenant tenants.Tenant, to []string) error {
		if trouble == "" {
			return nil
		}
		for _, address := range to {
			if err := s.deps.Mail(ctx, tenant, tenants.Mail{To: address, Subject: subject, Text: text}); err != nil {
				return err
			}
		}
		return nil
	})
}

// trouble returns the current problem's name and the mail about it; "" without a problem.
func (s *Service) trouble(account Account, periodEnd time.Time) (name, subject, text string) {
	page := s.config.PublicURL + "/billing"
	deadline := account.Deadline(s.config.Grace)
	switch {
	case account.Restraint.Reason == tenants.PaymentFailed:
		return "restrained " + account.PastDueSince.UTC().Format(time.RFC3339), "Your requests now pass uncompressed",
			fmt.Sprintf("A payment for your workspace failed on %s and is still open. Since %s your requests go to your provider "+
				"uncompressed: nothing is blocked, nothing stored is lost.\n\nUpdate the payment method: %s\n", day(account.PastDueSince), day(deadline), page)
	case !deadline.IsZero():
		return "owed " + account.PastDueSince.UTC().Format(time.RFC3339), "A payment failed",
			fmt.Sprintf("A payment for your workspace failed on %s. Everything works as before until %s. From then on your requests go to "+
				"your provider uncompressed; they are never blocked.\n\nUpdate the payment method: %s\n", day(account.PastDueSince), day(deadline), page)
	case account.Restraint.Reason == tenants.QuotaUsed:
		return "quota " + periodEnd.Format(time.DateOnly), "This month's exchanges are used up",
			fmt.Sprintf("Your workspace has used the %d exchanges that the plan Free has in a month. Until %s your requests go to your provider "+
				"uncompressed; they are never blocked.\n\nSee the plans: %s\n", FreeExchanges, day(periodEnd), page)
	}
	return "", "", ""
}

// day formats a date in UTC.
func day(at time.Time) string { return at.UTC().Format("2 January 2006") }
