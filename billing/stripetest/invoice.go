package stripetest

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// invoice is an invoice of the double.
type invoice struct {
	id, number, customer, subscription, status string
	total                                      int64
	created, finalized, paidAt                 time.Time
	attempts                                   int
	url                                        string
}

func (i *invoice) json() object {
	return object{
		"id": i.id, "object": "invoice", "number": i.number, "customer": i.customer, "subscription": i.subscription, "status": i.status,
		"total": i.total, "amount_due": i.total, "currency": "usd", "created": i.created.Unix(), "attempted": i.attempts > 0, "attempt_count": i.attempts,
		"paid": i.status == "paid", "hosted_invoice_url": i.url, "livemode": false,
		"status_transitions": object{"finalized_at": stamp(i.finalized), "paid_at": stamp(i.paidAt), "marked_uncollectible_at": nil, "voided_at": nil},
	}
}

func (e endpoints) listInvoices(r *http.Request) (any, *failure) {
	var found []any
	for _, one := range slices.Backward(e.invoices) {
		if of := r.Form.Get("customer"); of != "" && one.customer != of {
			continue
		}
		if of := r.Form.Get("subscription"); of != "" && one.subscription != of {
			continue
		}
		if status := r.Form.Get("status"); status == "" || status == one.status {
			found = append(found, one.json())
		}
	}
	return list("/v1/invoices", found), nil
}

// bill invoices the period that begins and the usage of the one that ends.
func (b *book) bill(of *subscription, from, to time.Time) {
	flat := int64(0)
	for _, one := range of.items {
		if !one.price.metered {
			flat += one.price.cost(one.quantity)
		}
	}
	b.charge(of, flat, from, to)
}

// charge invoices an amount and the usage of a span.
func (b *book) charge(of *subscription, amount int64, from, to time.Time) {
	made := &invoice{
		id: b.id("in"), number: fmt.Sprintf("PAL-%04d", len(b.invoices)+1), customer: of.customer, subscription: of.id, status: "open",
		created: b.now, finalized: b.now, total: of.prorated + amount,
	}
	made.url = b.url + "/invoice/" + made.id
	of.prorated = 0
	for _, one := range of.items {
		if one.price.metered {
			made.total += one.price.cost(b.used(of.customer, from, to))
		}
	}
	b.invoices = append(b.invoices, made)
	of.latest, of.failures, of.retry = made, 0, time.Time{}
	b.happened("invoice.created", made.json())
	b.happened("invoice.finalized", made.json())
	b.collect(of, made)
}

// collect tries to collect an invoice.
func (b *book) collect(of *subscription, due *invoice) {
	due.attempts++
	if !b.customers[of.customer].declines {
		due.status, due.paidAt = "paid", b.now
		of.failures, of.retry = 0, time.Time{}
		b.happened("invoice.paid", due.json())
		if of.status != "active" {
			of.status = "active"
			b.happened("customer.subscription.updated", of.json())
		}
		return
	}
	b.happened("invoice.payment_failed", due.json())
	if of.failures == len(retries()) {
		b.cancel(of)
		return
	}
	of.retry = b.now.AddDate(0, 0, retries()[of.failures])
	of.failures++
	if of.status != "past_due" {
		of.status = "past_due"
		b.happened("customer.subscription.updated", of.json())
	}
}

// PayOpen pays the open invoices of a customer with another card, as people do in the portal.
func (s *Server) PayOpen(customer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.customers[customer].declines = false
	for _, one := range s.invoices {
		if one.customer == customer && one.status == "open" {
			s.collect(s.subscriptions[one.subscription], one)
		}
	}
}

// Invoiced returns the sum of a customer's invoices, in cents.
func (s *Server) Invoiced(customer string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum int64
	for _, one := range s.invoices {
		if one.customer == customer {
			sum += one.total
		}
	}
	return sum
}
