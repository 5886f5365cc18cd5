package alerts_test

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/alerts"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants"
	"palimpsest/tenants/guard"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const publicURL = "https://palimpsest.example"

// bundle is a workspace, what alerts it, and a clock that stands still.
type bundle struct {
	*tenantsdb.DB
	*alerts.Service

	database *dbtest.Database
	queue    *jobsdb.Runner // keeps jobs, and runs none before Start
	config   alerts.Config
	owner    tenants.Principal
	mails    *mails
	health   []tenants.Check

	mu  sync.Mutex
	now time.Time
}

func setup(t *testing.T, change ...func(*alerts.Config)) *bundle {
	t.Helper()
	b := &bundle{database: dbtest.New(t), mails: &mails{}, now: time.Now().UTC().Truncate(time.Microsecond)}
	b.DB = b.database.DB
	user, workspace, err := b.Accounts.SignUp(t.Context(), "ada@example.com", "hash", "northbeam")
	if err != nil {
		t.Fatal(err)
	}
	user.Operator = true // the first
	b.owner = tenants.Principal{User: user, Workspace: workspace, Role: tenants.Owner}
	safe, err := vault.New([][]byte{[]byte("a secret of thirty-two bytes ...")})
	if err != nil {
		t.Fatal(err)
	}
	b.queue = jobsdb.New(jobsdb.Config{
		Pool: b.database.DB.WorkPool(), Joined: b.Joined, Metrics: jobsdb.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	b.config = alerts.Config{
		Store: alerts.Store{Alerts: b.Alerts, Keys: b.APIKeys, Budgets: b.Data.Budgets, Spend: b.Data.Spend, UsageReader: b.Usage, Workspaces: b.Workspaces, Transactor: b.DB}, Sealer: safe, Queue: b.queue, Mailer: b.mails, Guard: guard.New(true), PublicURL: publicURL, Log: slog.New(slog.DiscardHandler),
		Health: func(context.Context) []tenants.Check { return b.health }, Now: b.clock,
	}
	for _, set := range change {
		set(&b.config)
	}
	b.Service = alerts.New(b.config)
	b.queue.Handle(alerts.JobDeliver, jobs.Limits{Timeout: alerts.DeliverTimeout, Attempts: alerts.DeliverAttempts}, b.Deliver)
	if err := b.queue.Open(); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bundle) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bundle) advance(by time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(by)
}

// webhook adds a signed webhook that is subscribed to rules, and returns it with its secret.
func (b *bundle) webhook(t *testing.T, url string, rules ...tenants.AlertRule) (tenants.AlertChannel, string) {
	t.Helper()
	channel, secret, err := b.Add(t.Context(), b.owner, tenants.WantedAlertChannel{Kind: tenants.AlertWebhook, Name: "on call", URL: url, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return channel, secret
}

// pass looks at the rules once.
func (b *bundle) pass(t *testing.T) {
	t.Helper()
	if err := b.Pass(tenants.OwnWork(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// settings saves the default settings with a change.
func (b *bundle) settings(t *testing.T, change func(*tenants.AlertSettings)) {
	t.Helper()
	settings := tenants.DefaultAlertSettings()
	change(&settings)
	if err := b.SaveSettings(t.Context(), b.owner.Workspace.ID, settings); err != nil {
		t.Fatal(err)
	}
}

// deliveries returns all deliveries, the oldest first.
func (b *bundle) deliveries(t *testing.T) []tenants.AlertDelivery {
	t.Helper()
	found, err := b.Alerts.AlertDeliveries(t.Context(), b.owner.Workspace.ID, 100)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(found)
	return found
}

// titles returns what people were alerted to, the oldest first.
func (b *bundle) titles(t *testing.T) []string {
	t.Helper()
	var titles []string
	for _, delivery := range b.deliveries(t) {
		titles = append(titles, delivery.Title)
	}
	return titles
}

// addKey stores an API key of the owner.
func (b *bundle) addKey(t *testing.T, name string, quota tenants.Quota) tenants.APIKey {
	t.Helper()
	hash := make([]byte, 32)
	_, _ = rand.Read(hash)
	key := tenants.APIKey{
		ID: uuid.Must(uuid.NewV7()), Workspace: b.owner.Workspace.ID, Name: name, Prefix: "plm_live_ab", Suffix: "wxyz",
		Scopes: []tenants.Scope{tenants.ScopeProxy}, CreatedBy: b.owner.User.ID, APIKeyTimes: tenants.APIKeyTimes{CreatedAt: b.clock()},
		Limits: tenants.Limits{Quota: quota},
	}
	if err := b.APIKeys.CreateAPIKey(t.Context(), key.Workspace, key, hash); err != nil {
		t.Fatal(err)
	}
	return key
}

// record records an exchange of now as change has it.
func (b *bundle) record(t *testing.T, change func(*tenants.Exchange)) {
	t.Helper()
	exchange := tenants.Exchange{
		ID: uuid.Must(uuid.NewV7()), Workspace: b.owner.Workspace.ID, At: b.clock(),
		Request: tenants.ExchangeRequest{APIKey: uuid.New(), Endpoint: "/v1/messages", Model: "claude", Client: "codex"},
		Answer:  tenants.ExchangeAnswer{Provider: tenants.ProviderAnthropic, Status: http.StatusOK, Attempts: 1},
		Prompt:  tenants.ExchangePrompt{Compression: "frozen"},
	}
	change(&exchange)
	if err := b.Exchanges.RecordExchanges(t.Context(), exchange.Workspace, []tenants.Exchange{exchange}); err != nil {
		t.Fatal(err)
	}
}

// received is a request that a receiver got.
type received struct {
	header http.Header
	body   []byte
}

// receiver is a real server that takes webhooks.
type receiver struct {
	*httptest.Server

	mu     sync.Mutex
	got    []received
	status int
	answer string
	header map[string]string
	came   chan struct{}
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusOK, answer: "ok", came: make(chan struct{}, 100)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, received{request.Header, body})
		for name, value := range r.header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(r.status)
		_, _ = io.WriteString(w, r.answer)
		r.came <- struct{}{}
	}))
	t.Cleanup(r.Close)
	return r
}

// answers sets what it answers from now on.
func (r *receiver) answers(status int, answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.answer = status, answer
}

func (r *receiver) requests() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// mails keeps the mails that it is handed.
type mails struct {
	mu   sync.Mutex
	sent []tenants.Mail
	err  error
}

// Send implements alerts.Mailer.
func (m *mails) Send(_ context.Context, _ uuid.UUID, mail tenants.Mail) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.sent = append(m.sent, mail)
	}
	return m.err
}
