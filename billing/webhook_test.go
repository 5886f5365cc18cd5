package billing_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76/webhook"

	"palimpsest/billing"
	"palimpsest/billing/stripetest"
	"palimpsest/tenants"
)

// deliver sends notices as Stripe does.
func (b bundle) deliver(t testing.TB, events ...stripetest.Event) {
	t.Helper()
	for _, event := range events {
		if err := b.Receive(t.Context(), event.Payload, stripetest.Sign(event.Payload, b.double.Now())); err != nil {
			t.Fatalf("%s: %v", event.Type, err)
		}
	}
}

// work does the jobs of the notices that came, and forgets them.
func (b bundle) work(t *testing.T) {
	t.Helper()
	for _, notice := range *b.notices {
		if err := b.Handle(t.Context(), b.workspace.ID, notice); err != nil {
			t.Fatal(err)
		}
	}
	*b.notices = nil
}

// of returns the notices about a customer's subscription that decide.
func of(events []stripetest.Event, kinds ...string) []stripetest.Event {
	return slices.DeleteFunc(events, func(event stripetest.Event) bool { return !slices.Contains(kinds, event.Type) })
}

// S29: what Stripe has not signed, just now and in our version, changes nothing.
func TestNoticeThatIsNotStripesIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.buy(t, "pro")
	payload, now := b.double.Events()[1].Payload, b.double.Now()
	other := bytes.Replace(payload, []byte("2023-10-16"), []byte("2024-04-10"), 1)

	for name, c := range map[string]struct {
		payload   []byte
		signature string
		version   bool
	}{
		"no signature":         {payload: payload},
		"no hex":               {payload: payload, signature: "t=1,v1=zz"},
		"another secret":       {payload: payload, signature: strings.Replace(stripetest.Sign(payload, now), "v1=", "v1=00", 1)},
		"another body":         {payload: append([]byte(" "), payload...), signature: stripetest.Sign(payload, now)},
		"old":                  {payload: payload, signature: stripetest.Sign(payload, now.Add(-5*time.Minute-time.Second))},
		"from the future":      {payload: payload, signature: stripetest.Sign(payload, now.Add(5*time.Minute+time.Second))},
		"no time":              {payload: payload, signature: strings.TrimPrefix(stripetest.Sign(payload, time.Unix(0, 0)), "t=0,")},
		"two times":            {payload: payload, signature: fmt.Sprintf("t=%d,%s", now.Unix(), stripetest.Sign(payload, now.Add(-time.Hour)))},
		"two times, a blank":   {payload: payload, signature: fmt.Sprintf("t=%d, %s", now.Unix(), stripetest.Sign(payload, now.Add(-time.Hour)))},
		"the same time twice":  {payload: payload, signature: fmt.Sprintf("t=%d,%s", now.Unix(), stripetest.Sign(payload, now))},
		"an unknown one twice": {payload: payload, signature: stripetest.Sign(payload, now) + ",x=1,x=2"},
		"another API version":  {payload: other, signature: stripetest.Sign(other, now), version: true},
	} {
		err := b.Receive(t.Context(), c.payload, c.signature)
		if _, invalid := errors.AsType[tenants.Invalid](err); invalid != c.version || !c.version && !errors.Is(err, tenants.ErrDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(*b.notices) != 0 {
		t.Errorf("%d jobs came of notices that were refused", len(*b.notices))
	}
	for _, at := range []time.Time{now.Add(-5 * time.Minute), now.Add(5 * time.Minute)} {
		if err := b.Receive(t.Context(), payload, stripetest.Sign(payload, at)); err != nil {
			t.Errorf("within the tolerance: %v", err)
		}
	}
}

// S29: the handler keeps a notice once, with one job, and asks Stripe nothing. How long it
// takes, BenchmarkNotice measures.
func TestNoticeIsTakenAtOnceAndOnceOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.buy(t, "pro")
	event := b.double.Events()[1]
	calls := len(b.double.Calls())

	for range 3 {
		b.deliver(t, event)
	}
	if len(*b.notices) != 1 || len(b.double.Calls()) != calls {
		t.Errorf("%d jobs and %d calls of Stripe, want 1 and none", len(*b.notices), len(b.double.Calls())-calls)
	}
	// Its job reads once; of another notice that came before the reading nothing is left
	// to do.
	b.deliver(t, b.double.Events()[2])
	b.double.Advance(b.double.Now().Add(time.Second))
	calls = len(b.double.Calls())
	b.work(t)
	if got := len(b.double.Calls()) - calls; got != 1 {
		t.Errorf("two notices led to %d calls of Stripe, want 1", got)
	}
}

// BenchmarkNotice measures how long the handler takes for a notice that it has not seen.
func BenchmarkNotice(b *testing.B) {
	bundle := setup(b)
	bundle.buy(b, "pro")
	payload := bundle.double.Events()[1].Payload
	for n := 0; b.Loop(); n++ {
		bundle.deliver(b, stripetest.Event{Payload: bytes.Replace(payload, []byte(`"evt_`), fmt.Appendf(nil, `"evt_%d_`, n), 1)})
	}
	if len(*bundle.notices) != b.N {
		b.Errorf("%d jobs of %d notices", len(*bundle.notices), b.N)
	}
}

// S29: each endpoint of an installation with several public URLs has a secret of its own.
func TestNoticeMaySignWithAnyOfSeveralSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t, func(config *billing.Config) {
		config.WebhookSecret = "whsec_first, " + stripetest.WebhookSecret + ",whsec_last,"
	})
	b.buy(t, "pro")
	now := b.double.Now()
	for i, secret := range []string{"whsec_first", stripetest.WebhookSecret, "whsec_last", "", " ", "whsec_other", "whsec_first,whsec_last"} {
		payload := bytes.Replace(b.double.Events()[1].Payload, []byte(`"evt_`), fmt.Appendf(nil, `"evt_%d_`, i), 1)
		signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: payload, Secret: secret, Timestamp: now}).Header
		if err := b.Receive(t.Context(), payload, signed); (err == nil) != (i < 3) || err != nil && !errors.Is(err, tenants.ErrDenied) {
			t.Errorf("signed with %q: %v", secret, err)
		}
	}
	if len(*b.notices) != 3 {
		t.Errorf("%d jobs of three notices", len(*b.notices))
	}
	config := config(b.double)
	if config.WebhookSecret = " ,"; config.Validate() == nil {
		t.Error("no secret is enough")
	}
}

func TestNoticeOfAStrangerAndOfAProductIsIgnored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.buy(t, "pro")
	stranger := bytes.ReplaceAll(b.double.Events()[1].Payload, []byte("cus_"), []byte("cus_x"))
	product := []byte(`{"id":"evt_p","object":"event","api_version":"2023-10-16","type":"product.updated","data":{"object":{"id":"prod_1","object":"product"}}}`)
	for _, payload := range [][]byte{stranger, product} {
		if err := b.Receive(t.Context(), payload, stripetest.Sign(payload, b.double.Now())); err != nil || len(*b.notices) != 0 {
			t.Errorf("%v, %d jobs", err, len(*b.notices))
		}
	}
}

// S29: in every order, each twice, the notices of one subscription's life end in the
// same state, whatever was known before.
func TestEveryOrderOfNoticesEndsInTheSameState(t *testing.T) {
	t.Parallel()
	b := setup(t, func(config *billing.Config) { config.TrialDays = 14 })
	customer := b.buy(t, "pro")
	b.double.Advance(noon.AddDate(0, 0, 20))
	b.double.SetCard(customer, true)
	b.double.Advance(noon.AddDate(0, 1, 15))
	events := of(b.double.Events(), "customer.subscription.created", "customer.subscription.updated", "invoice.payment_failed")
	if len(events) < 5 {
		t.Fatalf("only %d notices", len(events))
	}
	events = events[len(events)-5:]
	b.read(t)
	want := b.account(t).State
	if want.Status != billing.PastDue || want.PastDueSince.IsZero() {
		t.Fatalf("the story ends with %+v", want)
	}

	owner, orders := b.database.Owner(t), 0
	for order := range permutations(events) {
		orders++
		for _, reset := range []string{
			"DELETE FROM billing_events", "UPDATE billing_accounts SET plan = 'team', status = 'active', seats = 9, past_due_since = NULL, ends_at = now()",
		} {
			if _, err := owner.Exec(t.Context(), reset); err != nil {
				t.Fatal(err)
			}
		}
		b.deliver(t, order...)
		b.deliver(t, order[orders%5]) // and one again
		if len(*b.notices) != len(events) {
			t.Fatalf("%d jobs of %d notices", len(*b.notices), len(events))
		}
		again := slices.Clone(*b.notices)
		b.work(t)
		*b.notices = again
		b.work(t) // S28
		if got := b.account(t).State; got != want {
			t.Fatalf("order %d ends with\n%+v, want\n%+v", orders, got, want)
		}
	}
	if orders != 120 {
		t.Errorf("%d orders", orders)
	}
}

// permutations yields every order of some notices.
func permutations(events []stripetest.Event) func(yield func([]stripetest.Event) bool) {
	return func(yield func([]stripetest.Event) bool) {
		var walk func(rest, chosen []stripetest.Event) bool
		walk = func(rest, chosen []stripetest.Event) bool {
			if len(rest) == 0 {
				return yield(chosen)
			}
			for i := range rest {
				if !walk(slices.Delete(slices.Clone(rest), i, i+1), append(slices.Clone(chosen), rest[i])) {
					return false
				}
			}
			return true
		}
		walk(events, nil)
	}
}

// S29: of two readings at once, what the one saw that began later is kept, though the
// other ends after it.
func TestReadingThatBeganEarlierOverwritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.buy(t, "pro")
	held, release := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	slow := bundle{Service: b.second(t, func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/subscriptions") && first.CompareAndSwap(false, true) {
			close(held)
			<-release
		}
	}), store: b.store, workspace: b.workspace}
	done := make(chan error, 1)
	go func() { done <- slow.Read(t.Context(), b.workspace.ID) }() // has read: active
	<-held
	b.double.SetCard(customer, true)
	b.double.Advance(noon.AddDate(0, 1, 1))
	b.read(t)
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := b.account(t).Status; got != billing.PastDue {
		t.Errorf("the account is %s again", got)
	}
}
