package stripetest

import (
	"net/http"
	"strconv"
	"time"
)

// Stripe's rules of meter events.
const (
	identifiersFor = 24 * time.Hour // a repeated identifier is refused
	acceptedFor    = 35 * 24 * time.Hour
	aheadFor       = 5 * time.Minute
)

// meterEvent is reported usage.
type meterEvent struct {
	customer string
	at       time.Time
	value    int64
	received time.Time
}

func (e endpoints) newMeterEvent(r *http.Request) (any, *failure) {
	identifier := r.Form.Get("identifier")
	if known, is := e.meterEvents[identifier]; is && e.now.Sub(known.received) < identifiersFor {
		return nil, invalid("", "An event already exists with identifier "+identifier+".")
	}
	seconds, err := strconv.ParseInt(r.Form.Get("timestamp"), 10, 64)
	at := time.Unix(seconds, 0).UTC()
	if err != nil || e.now.Sub(at) > acceptedFor || at.Sub(e.now) > aheadFor {
		return nil, invalid("timestamp", "Timestamp must be within the past 35 calendar days or up to 5 minutes in the future.")
	}
	value, err := strconv.ParseInt(r.Form.Get("payload[value]"), 10, 64)
	if err != nil || r.Form.Get("event_name") != MeterEvent {
		return nil, invalid("payload", "The payload must name a whole value of an event that a meter has.")
	}
	customer := r.Form.Get("payload[stripe_customer_id]")
	if e.customers[customer] == nil {
		return nil, invalid("payload", "No such customer: '"+customer+"'")
	}
	if _, is := e.meterEvents[identifier]; is { // the id was forgotten, so the event counts again
		e.meterEvents[e.id(identifier)] = e.meterEvents[identifier]
	}
	e.meterEvents[identifier] = meterEvent{customer: customer, at: at, value: value, received: e.now}
	return object{
		"object": "billing.meter_event", "identifier": identifier, "event_name": MeterEvent, "created": e.now.Unix(), "timestamp": seconds,
		"payload": object{"stripe_customer_id": customer, "value": strconv.FormatInt(value, 10)}, "livemode": false,
	}, nil
}

func (e endpoints) listSummaries(r *http.Request) (any, *failure) {
	from, err := strconv.ParseInt(r.Form.Get("start_time"), 10, 64)
	to, toErr := strconv.ParseInt(r.Form.Get("end_time"), 10, 64)
	if err != nil || toErr != nil || from%60 != 0 || to%60 != 0 {
		return nil, invalid("start_time", "Timestamps must be aligned with minute boundaries.")
	}
	if r.PathValue("id") != Meter {
		return nil, missing("meter", r.PathValue("id"))
	}
	sum := e.used(r.Form.Get("customer"), time.Unix(from, 0), time.Unix(to, 0))
	return list(r.URL.Path, []any{object{
		"id": "mtrusg_1", "object": "billing.meter_event_summary", "aggregated_value": float64(sum), "start_time": from, "end_time": to,
		"meter": Meter, "livemode": false,
	}}), nil
}

// used returns a customer's usage in a span of time.
func (b *book) used(customer string, from, to time.Time) int64 {
	var sum int64
	for _, event := range b.meterEvents {
		if event.customer == customer && !event.at.Before(from) && event.at.Before(to) {
			sum += event.value
		}
	}
	return sum
}

// Reported returns a customer's total reported usage.
func (s *Server) Reported(customer string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used(customer, time.Time{}, s.now.AddDate(100, 0, 0))
}

// SetNow sets the clock without performing due actions.
func (s *Server) SetNow(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now.UTC().Truncate(time.Second)
}
