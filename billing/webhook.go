package billing

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/webhook"

	"palimpsest/tenants"
)

// tolerance is how far the time of a notice may be from ours, either way.
const tolerance = 5 * time.Minute

// Receive takes a notice of Stripe, with its header Stripe-Signature. It asks Stripe
// nothing: the notice is kept once, with the job that handles it. It returns
// tenants.ErrBillingOff, tenants.Invalid for a notice of another API version, and
// tenants.ErrDenied for one that is not signed, too old, or from the future.
func (s *Service) Receive(ctx context.Context, payload []byte, signature string) error {
	if !s.IsOn() {
		return tenants.ErrBillingOff
	}
	event, err := s.verified(payload, signature)
	if errors.Is(err, errVersion) {
		return tenants.Invalid{Field: "api_version", Message: "must be " + stripe.APIVersion + "; create the webhook endpoint with this version"}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", tenants.ErrDenied, err)
	}
	customer := customerOf(event)
	if customer == "" {
		return nil // of products, prices and the like
	}
	workspace, err := s.deps.Store.WorkspaceOf(ctx, customer)
	if errors.Is(err, tenants.ErrNotFound) {
		s.deps.Log.WarnContext(ctx, "notice of an unknown customer", "event", event.ID, "type", string(event.Type))
		return nil // sending it again would not change that
	}
	if err != nil {
		return err
	}
	notice := Notice{
		ID: uuid.NewSHA1(uuid.NameSpaceURL, []byte("stripe:"+event.ID)), Event: event.ID, Type: string(event.Type), ReceivedAt: s.deps.Now(),
	}
	return s.deps.Store.KeepNotice(ctx, workspace, notice, func(ctx context.Context) error {
		return s.deps.Enqueue(ctx, workspace, notice.ID)
	})
}

// verified returns a notice that Stripe has signed, just now, in the form we read.
func (s *Service) verified(payload []byte, signature string) (stripe.Event, error) {
	// Stripe's library looks at the clock by itself and lets the future pass.
	event, err := webhook.ConstructEventWithOptions(payload, signature, s.config.WebhookSecret, webhook.ConstructEventOptions{
		IgnoreTolerance: true, IgnoreAPIVersionMismatch: true,
	})
	if err != nil {
		return stripe.Event{}, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if age := s.deps.Now().Sub(signedAt(signature)); age.Abs() > tolerance {
		return stripe.Event{}, fmt.Errorf("%w: it is %s old", ErrSignature, age)
	}
	if event.APIVersion != stripe.APIVersion {
		return stripe.Event{}, fmt.Errorf("%w: %q", errVersion, event.APIVersion)
	}
	if event.ID == "" || event.Data == nil {
		return stripe.Event{}, fmt.Errorf("%w: it says nothing", ErrSignature)
	}
	return event, nil
}

// signedAt returns the time that a signature names; zero if it names none.
func signedAt(signature string) time.Time {
	for part := range strings.SplitSeq(signature, ",") {
		if value, is := strings.CutPrefix(part, "t="); is {
			seconds, err := strconv.ParseInt(value, 10, 64)
			if err == nil {
				return time.Unix(seconds, 0)
			}
		}
	}
	return time.Time{}
}

// customerOf returns the customer that a notice is about; empty for none.
func customerOf(event stripe.Event) string {
	object := event.Data.Object
	if kind, _ := object["object"].(string); kind == "customer" {
		id, _ := object["id"].(string)
		return id
	}
	customer, _ := object["customer"].(string)
	return customer
}
