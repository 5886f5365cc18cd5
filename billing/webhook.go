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

// tolerance is the maximum difference between a notice's time and ours.
const tolerance = 5 * time.Minute

// Receive takes a notice of Stripe, with its header Stripe-Signature. It does not call Stripe. It stores the
// notice once, with the job that handles it. It returns tenants.ErrBillingOff, tenants.Invalid for a notice
// of another API version, and tenants.ErrDenied for one that is unsigned, too old, or from the future.
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
		return nil // such as events of products and prices
	}
	workspace, err := s.deps.Store.WorkspaceOf(ctx, customer)
	if errors.Is(err, tenants.ErrNotFound) {
		s.deps.Log.WarnContext(ctx, "notice of an unknown customer", "event", event.ID, "type", string(event.Type))
		return nil // a retry would fail the same way
	}
	if err != nil {
		return err
	}
	notice := Notice{
		ID: uuid.NewSHA1(uuid.NameSpaceURL, []byte("stripe:"+event.ID)), Event: event.ID, Type: string(event.Type), ReceivedAt: s.deps.Now(),
	}
	return s.deps.Store.KeepNotice(ctx, workspace, notice, func(tenant tenants.Tenant) error {
		return s.deps.Enqueue(ctx, tenant, notice.ID)
	})
}

// verified returns a recent notice signed by Stripe, of our API version.
func (s *Service) verified(payload []byte, signature string) (stripe.Event, error) {
	// Stripe's library uses its own clock and accepts future times. Of repeated times it uses the last one,
	// so with two in a header we could check a different one than the library.
	signed, err := signedAt(signature)
	if err != nil {
		return stripe.Event{}, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	var event stripe.Event
	for _, secret := range s.config.webhookSecrets() {
		event, err = webhook.ConstructEventWithOptions(payload, signature, secret, webhook.ConstructEventOptions{
			IgnoreTolerance: true, IgnoreAPIVersionMismatch: true,
		})
		if err == nil {
			break
		}
	}
	if err != nil {
		return stripe.Event{}, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if age := s.deps.Now().Sub(signed); age.Abs() > tolerance {
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

// signedAt returns a signature's time. Fields may not be repeated, except signatures (v1 and the like),
// because Stripe signs with both secrets while one is replaced.
func signedAt(signature string) (time.Time, error) {
	values := map[string]string{}
	for part := range strings.SplitSeq(signature, ",") {
		name, value, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if _, repeated := values[name]; repeated && !strings.HasPrefix(name, "v") {
			return time.Time{}, fmt.Errorf("field %.20q is repeated", name)
		}
		values[name] = value
	}
	seconds, err := strconv.ParseInt(values["t"], 10, 64)
	if err != nil {
		return time.Time{}, errors.New("it names no time")
	}
	return time.Unix(seconds, 0), nil
}

// customerOf returns a notice's customer; "" if absent.
func customerOf(event stripe.Event) string {
	object := event.Data.Object
	if kind, _ := object["object"].(string); kind == "customer" {
		id, _ := object["id"].(string)
		return id
	}
	customer, _ := object["customer"].(string)
	return customer
}
