package stripetest

import (
	"encoding/json"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/webhook"
)

// Event is a notice as Stripe sends it.
type Event struct {
	ID, Type string
	Payload  []byte
}

// happened records an event with the object's current state.
func (b *book) happened(kind string, about object) {
	event := Event{ID: b.id("evt"), Type: kind}
	event.Payload, _ = json.Marshal(object{ //nolint:errchkjson // maps of plain values
		"id": event.ID, "object": "event", "api_version": stripe.APIVersion, "created": b.now.Unix(), "livemode": false, "type": kind,
		"data": object{"object": about}, "pending_webhooks": 1, "request": object{"id": nil, "idempotency_key": nil},
	})
	b.events = append(b.events, event)
}

// Events returns all notices until now, in the order in which they happened.
func (s *Server) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Event(nil), s.events...)
}

// Sign returns the header Stripe-Signature for a payload sent at a time.
func Sign(payload []byte, at time.Time) string {
	return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: payload, Secret: WebhookSecret, Timestamp: at}).Header
}
