package stripetest

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// subscription is a customer's subscription.
type subscription struct {
	id, customer, status     string
	items                    []*item
	metadata                 map[string]string
	created, start, end      time.Time // start and end: of the period
	trialEnd, ended          time.Time
	cancelAtEnd, automatic   bool
	failures                 int       // consecutive failed payments
	retry                    time.Time // of the payment; zero if none is due
	prorated                 int64     // to be paid with the next invoice
	latest                   *invoice
	subscribed, canceledTime time.Time
}

// item is one price of a subscription.
type item struct {
	id       string
	price    price
	quantity int64
}

// retries are the days after which a failed payment is retried. After the last one the subscription ends.
func retries() []int { return []int{3, 5, 7, 7} }

func (s *subscription) json() object {
	items := make([]any, 0, len(s.items))
	for _, one := range s.items {
		made := object{"id": one.id, "object": "subscription_item", "subscription": s.id, "price": one.price.json(false), "metadata": object{}, "created": s.created.Unix()}
		if !one.price.metered {
			made["quantity"] = one.quantity
		}
		items = append(items, made)
	}
	made := object{
		"id": s.id, "object": "subscription", "customer": s.customer, "status": s.status, "items": list("/v1/subscription_items?subscription="+s.id, items),
		"metadata": s.metadata, "created": s.created.Unix(), "start_date": s.subscribed.Unix(), "current_period_start": s.start.Unix(),
		"current_period_end": s.end.Unix(), "trial_end": stamp(s.trialEnd), "ended_at": stamp(s.ended), "canceled_at": stamp(s.canceledTime),
		"cancel_at_period_end": s.cancelAtEnd, "cancel_at": nil, "currency": "usd", "livemode": false, "latest_invoice": nil,
		"automatic_tax": object{"enabled": s.automatic}, "collection_method": "charge_automatically",
	}
	if s.cancelAtEnd {
		made["cancel_at"] = s.end.Unix()
	}
	if s.latest != nil {
		made["latest_invoice"] = s.latest.id
	}
	return made
}

func (e endpoints) listSubscriptions(r *http.Request) (any, *failure) {
	var found []any
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(e.subscriptions))) {
		one := e.subscriptions[id]
		if one.customer == r.Form.Get("customer") && (r.Form.Get("status") == "all" || one.status != "canceled") {
			found = append(found, one.json())
		}
	}
	return list("/v1/subscriptions", found), nil
}

func (e endpoints) getSubscription(r *http.Request) (any, *failure) {
	found, is := e.subscriptions[r.PathValue("id")]
	if !is {
		return nil, missing("subscription", r.PathValue("id"))
	}
	return found.json(), nil
}

func (e endpoints) changeSubscription(r *http.Request) (any, *failure) {
	found, is := e.subscriptions[r.PathValue("id")]
	if !is {
		return nil, missing("subscription", r.PathValue("id"))
	}
	if wanted := r.Form.Get("cancel_at_period_end"); wanted != "" {
		e.setCancel(found, wanted == "true")
	}
	return found.json(), nil
}

func (b *book) setCancel(found *subscription, cancel bool) {
	found.cancelAtEnd, found.canceledTime = cancel, time.Time{}
	if cancel {
		found.canceledTime = b.now
	}
	b.happened("customer.subscription.updated", found.json())
}

func (e endpoints) cancelSubscription(r *http.Request) (any, *failure) {
	found, is := e.subscriptions[r.PathValue("id")]
	if !is || found.status == "canceled" {
		return nil, missing("subscription", r.PathValue("id"))
	}
	if r.Form.Get("invoice_now") == "true" {
		e.charge(found, 0, found.start, e.now)
	}
	e.cancel(found)
	return found.json(), nil
}

func (b *book) cancel(found *subscription) {
	found.status, found.ended, found.retry = "canceled", b.now, time.Time{}
	if found.canceledTime.IsZero() {
		found.canceledTime = b.now
	}
	b.happened("customer.subscription.deleted", found.json())
}

func (e endpoints) changeItem(r *http.Request) (any, *failure) {
	for _, found := range e.subscriptions {
		for _, one := range found.items {
			if one.id != r.PathValue("id") {
				continue
			}
			quantity, err := strconv.ParseInt(r.Form.Get("quantity"), 10, 64)
			if err != nil || quantity < 0 || one.price.metered {
				return nil, invalid("quantity", "Invalid integer: "+r.Form.Get("quantity"))
			}
			if r.Form.Get("proration_behavior") != "none" && found.status != "trialing" {
				left, whole := found.end.Sub(e.now), found.end.Sub(found.start)
				found.prorated += int64(float64((quantity-one.quantity)*one.price.amount) * float64(left) / float64(whole))
			}
			one.quantity = quantity
			e.happened("customer.subscription.updated", found.json())
			return object{"id": one.id, "object": "subscription_item", "subscription": found.id, "quantity": quantity, "price": one.price.json(false)}, nil
		}
	}
	return nil, missing("subscription_item", r.PathValue("id"))
}

// subscribe begins a subscription.
func (b *book) subscribe(bought *session) *subscription {
	made := &subscription{
		id: b.id("sub"), customer: bought.customer, metadata: bought.metadata, created: b.now, subscribed: b.now,
		start: b.now, end: b.now.AddDate(0, 1, 0), automatic: bought.tax, status: "active",
	}
	for _, line := range bought.lines {
		made.items = append(made.items, &item{id: b.id("si"), price: line.price, quantity: line.quantity})
	}
	b.subscriptions[made.id] = made
	if bought.trialDays > 0 {
		made.status, made.trialEnd = "trialing", b.now.AddDate(0, 0, bought.trialDays)
		made.end = made.trialEnd
		b.happened("customer.subscription.created", made.json())
		return made
	}
	b.happened("customer.subscription.created", made.json())
	b.bill(made, made.start, made.start)
	return made
}

// Advance moves the double's clock forward and performs the actions that fall due.
func (s *Server) Advance(to time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to = to.UTC().Truncate(time.Second)
	for {
		var next *subscription
		var at time.Time
		for _, id := range slices.Sorted(maps.Keys(s.subscriptions)) {
			due := s.subscriptions[id].due()
			if !due.IsZero() && !due.After(to) && (next == nil || due.Before(at)) {
				next, at = s.subscriptions[id], due
			}
		}
		if next == nil {
			s.now = to
			return
		}
		s.now = at
		s.proceed(next)
	}
}

// due returns the time of a subscription's next action; zero without one.
func (s *subscription) due() time.Time {
	switch {
	case s.status == "canceled":
		return time.Time{}
	case !s.retry.IsZero() && s.retry.Before(s.end):
		return s.retry
	}
	return s.end
}

// proceed performs an action that is due now.
func (b *book) proceed(due *subscription) {
	if !due.retry.IsZero() && due.retry.Equal(b.now) {
		b.collect(due, due.latest)
		return
	}
	if due.cancelAtEnd {
		b.cancel(due)
		return
	}
	from, to := due.start, due.end
	if due.status == "trialing" {
		due.status, from = "active", to // usage in a trial is free
	}
	due.start, due.end = to, to.AddDate(0, 1, 0)
	b.happened("customer.subscription.updated", due.json())
	b.bill(due, from, to)
}
