package billing

import (
	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/billing/meterevent"
	"github.com/stripe/stripe-go/v76/billing/metereventsummary"
	billingportal "github.com/stripe/stripe-go/v76/billingportal/session"
	checkout "github.com/stripe/stripe-go/v76/checkout/session"
	"github.com/stripe/stripe-go/v76/customer"
	"github.com/stripe/stripe-go/v76/invoice"
	"github.com/stripe/stripe-go/v76/price"
	"github.com/stripe/stripe-go/v76/subscription"
	"github.com/stripe/stripe-go/v76/subscriptionitem"
)

// stripeClients are the clients of the Stripe resources in use. Stripe's own client.API links all its 134
// packages.
type stripeClients struct {
	BillingMeterEvents         meterevent.Client
	BillingMeterEventSummaries metereventsummary.Client
	BillingPortalSessions      billingportal.Client
	CheckoutSessions           checkout.Client
	Customers                  customer.Client
	Invoices                   invoice.Client
	Prices                     price.Client
	SubscriptionItems          subscriptionitem.Client
	Subscriptions              subscription.Client
}

func newStripeClients(backend stripe.Backend, key string) stripeClients {
	return stripeClients{
		BillingMeterEvents:         meterevent.Client{B: backend, Key: key},
		BillingMeterEventSummaries: metereventsummary.Client{B: backend, Key: key},
		BillingPortalSessions:      billingportal.Client{B: backend, Key: key},
		CheckoutSessions:           checkout.Client{B: backend, Key: key},
		Customers:                  customer.Client{B: backend, Key: key},
		Invoices:                   invoice.Client{B: backend, Key: key},
		Prices:                     price.Client{B: backend, Key: key},
		SubscriptionItems:          subscriptionitem.Client{B: backend, Key: key},
		Subscriptions:              subscription.Client{B: backend, Key: key},
	}
}
