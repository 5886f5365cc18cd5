package billing_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/billing"
	"palimpsest/billing/billingdb"
	"palimpsest/billing/stripetest"
	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// noon is when tests begin.
var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// bundle is billing with one workspace, on a real database and a double of Stripe that
// has the clock of both.
type bundle struct {
	*billing.Service

	database  *dbtest.Database
	store     *billingdb.Store
	double    *stripetest.Server
	workspace tenants.Workspace

	mu      *sync.Mutex
	notices *[]uuid.UUID // that jobs are there for
	mails   *[]tenants.Mail
}

func config(double *stripetest.Server) billing.Config {
	config := billing.DefaultConfig()
	config.APIKey, config.WebhookSecret, config.APIBase = stripetest.Key, stripetest.WebhookSecret, double.URL
	config.Meter, config.PublicURL = stripetest.Meter, "https://palimpsest.example"
	config.Catalog = billing.Catalog{
		Pro:  billing.Prices{Plan: []string{stripetest.ProPrice}, Usage: stripetest.ProUsagePrice},
		Team: billing.Prices{Plan: []string{stripetest.TeamPrice}, Usage: stripetest.TeamUsagePrice},
	}
	return config
}

func setup(t testing.TB, change ...func(*billing.Config)) bundle {
	t.Helper()
	database := dbtest.New(t)
	double := stripetest.New(t, noon)
	config := config(double)
	for _, set := range change {
		set(&config)
	}
	b := bundle{
		database: database, double: double, store: billingdb.New(database.DB),
		mu: new(sync.Mutex), notices: new([]uuid.UUID), mails: new([]tenants.Mail),
	}
	b.Service = billing.New(config, billing.Deps{
		Store: b.store, Log: slog.New(slog.DiscardHandler), Now: double.Now,
		Enqueue: func(_ context.Context, _ tenants.Tenant, notice uuid.UUID) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			*b.notices = append(*b.notices, notice)
			return nil
		},
		Mail: func(ctx context.Context, tenant tenants.Tenant, mail tenants.Mail) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			*b.mails = append(*b.mails, mail)
			return database.DB.Mail.QueueMail(ctx, tenant, mail)
		},
	})
	_, workspace, err := database.DB.Accounts.SignUp(t.Context(), "ada@example.com", "hash", "Northbeam")
	if err != nil {
		t.Fatal(err)
	}
	b.workspace = workspace
	return b
}

// buy has the workspace buy a plan, and returns its customer.
func (b bundle) buy(t testing.TB, plan string) string {
	t.Helper()
	address, err := b.Checkout(t.Context(), b.workspace, "ada@example.com", plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.double.Pay(address); err != nil {
		t.Fatal(err)
	}
	b.read(t)
	return b.account(t).Customer
}

func (b bundle) read(t testing.TB) {
	t.Helper()
	if err := b.Read(t.Context(), b.workspace.ID); err != nil {
		t.Fatal(err)
	}
}

func (b bundle) pass(t *testing.T) {
	t.Helper()
	if err := b.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (b bundle) account(t testing.TB) billing.Account {
	t.Helper()
	account, err := b.store.Account(t.Context(), b.workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	return account
}

func (b bundle) overview(t *testing.T) billing.Overview {
	t.Helper()
	overview, err := b.Overview(t.Context(), b.workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	return overview
}

// use records exchanges that count.
func (b bundle) use(t testing.TB, count int, at time.Time) {
	t.Helper()
	exchanges := make([]tenants.Exchange, count)
	for i := range exchanges {
		exchanges[i] = tenants.Exchange{
			ID: uuid.Must(uuid.NewV7()), At: at,
			Request: tenants.ExchangeRequest{APIKey: uuid.New(), Endpoint: "/v1/messages", Model: "claude"},
			Answer:  tenants.ExchangeAnswer{Provider: tenants.ProviderAnthropic, Status: http.StatusOK, Attempts: 1},
			Prompt:  tenants.ExchangePrompt{Compression: "none"},
		}
	}
	for batch := range slices.Chunk(exchanges, 1000) {
		if err := b.database.DB.Exchanges.RecordExchanges(t.Context(), b.workspace.ID, batch); err != nil {
			t.Fatal(err)
		}
	}
}

// counted returns how many exchanges of the table count.
func (b bundle) counted(t testing.TB) int64 {
	t.Helper()
	var count int64
	err := b.database.Owner(t).QueryRow(t.Context(), `SELECT count(*) FROM exchanges
		WHERE workspace_id = $1 AND exchange_counts(endpoint, class, status, error_from, attempts)`, b.workspace.ID).Scan(&count)
	if err != nil {
		t.Fatal(err)
	}
	return count
}
