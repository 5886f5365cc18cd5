package billing

import (
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Status is Stripe's word for how a subscription is doing; empty if there never was a subscription.
type Status string

// The states of subscriptions in which they give a plan.
const (
	Trialing Status = "trialing"
	Active   Status = "active"
	PastDue  Status = "past_due"
	Unpaid   Status = "unpaid"
	Paused   Status = "paused"
	Canceled Status = "canceled"
)

// IsLive reports whether a subscription in this state gives its plan.
func (s Status) IsLive() bool {
	return slices.Contains([]Status{Trialing, Active, PastDue, Unpaid, Paused}, s)
}

// Owes reports whether a payment has failed and is still asked for.
func (s Status) Owes() bool { return s == PastDue || s == Unpaid }

// State is what Stripe says of a workspace's subscription. Its zero value is that of a
// workspace that has never had one. Times are zero if absent.
type State struct {
	Subscription string // Stripe's id
	Plan         Plan   // Free where no subscription gives another
	Status       Status
	Seats        int64
	PeriodStart  time.Time
	PeriodEnd    time.Time
	TrialEnd     time.Time
	EndsAt       time.Time // canceled for then
	PastDueSince time.Time // the oldest payment that failed and is still owed
	MeteredFrom  time.Time // usage from here on is told to Stripe
	MeteredTo    time.Time // up to here
}

// Account is what is known of a workspace.
type Account struct {
	State

	Workspace tenants.WorkspaceID
	Customer  string // Stripe's id; empty if no one has been to checkout
	Restraint tenants.Restraint
	Told      string // the trouble that people were written about
}

// Fields returns what the audit log shows of a state.
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

// Deadline returns when a payment that failed begins to restrain traffic; zero: none
// has failed.
func (s State) Deadline(grace time.Duration) time.Time {
	if !s.Status.Owes() || s.PastDueSince.IsZero() {
		return time.Time{}
	}
	return s.PastDueSince.Add(grace)
}

// restraint returns what holds back the traffic of a workspace that has used so many
// exchanges in this month.
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

// span returns the time whose usage is set against the plan: Stripe's period, or the
// calendar month in UTC on the plan Free, without what was used on a plan before it.
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

// MeterEvent is usage that Stripe is told about.
type MeterEvent struct {
	ID        uuid.UUID // Stripe's identifier: it counts one id once
	Customer  string
	At        time.Time // the time that Stripe is told
	Exchanges int64
	TriedAt   time.Time // first sent under this id; zero: never
}

// Notice is something that Stripe has told by webhook.
type Notice struct {
	ID         uuid.UUID // made of Event
	Event      string    // Stripe's id
	Type       string
	ReceivedAt time.Time
}
