// Package webtest runs the dashboard for tests, on the real stores and a database of its own, with the real
// proxy and a provider double as sources of data.
package webtest

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/api/alerts"
	"palimpsest/api/credentials"
	"palimpsest/api/manage"
	"palimpsest/api/upstream"
	"palimpsest/billing"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/preview/previewdb"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/deletion"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/mail"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
	"palimpsest/web"
	"palimpsest/web/paths"
)

// Password is the password of every test account.
const Password = "correct horse battery"

// PublicURL is the product's public address.
const PublicURL = "http://127.0.0.1:8080"

// Version is the product's version.
const Version = "v1.2.3-test"

// Product is the dashboard with all its services.
type Product struct {
	URL         string
	Local       string // the same by this machine's host name, for passkeys
	Database    *dbtest.Database
	DB          *tenantsdb.DB
	Keys        *identity.Keys
	Sessions    *sessiondb.Store
	Archive     *archivedb.DB
	ArchiveKeys *archive.Keys
	Routes      []*echo.Route // of the dashboard
	People      *identity.Service
	Mails       *mail.Outbox // keeps the mails
	Records     *Records     // the DNS double
	Alerting    *alerts.Service
	Models      *tokens.Models
	Devices     *tenants.DeviceLogins

	everywhere

	vault    *vault.Vault
	provider *upstream.Client
	modules  string
}

// Option changes the dependencies of a product's dashboard.
type Option func(*Product, *web.Deps)

// MailsPath is the dashboard's page of mails.
const (
	MailsPath = "/dev/mail/" + mailToken
	mailToken = "mail-token"
)

// MailsAreSent disables the dashboard's page of mails.
func MailsAreSent(_ *Product, deps *web.Deps) { deps.Installation.Mails = nil }

// Start runs the dashboard until the test ends.
func Start(t testing.TB, options ...Option) *Product {
	t.Helper()
	return startOn(t, dbtest.New(t), options)
}

// StartFrom is Start on a copy of a template, which the first test fills through a dashboard.
func StartFrom(t testing.TB, template *dbtest.Template, fill func(testing.TB, *Product), options ...Option) *Product {
	t.Helper()
	return startOn(t, template.New(t, func(t testing.TB, database *dbtest.Database) {
		t.Helper()
		fill(t, startOn(t, database, nil))
	}), options)
}

func startOn(t testing.TB, database *dbtest.Database, options []Option) *Product {
	t.Helper()
	safe, err := vault.New([][]byte{[]byte("a secret of thirty-two bytes ...")})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := identity.NewKeys(database.DB.APIKeys, safe.DeriveAll("api keys"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	sealing := archive.NewKeys(datakeys.New(database.DB.DataKeys, safe))
	provider := upstream.New(true)
	t.Cleanup(provider.Close)
	p := &Product{
		Database: database, DB: database.DB, Keys: keys, vault: safe, provider: provider, modules: "ipc",
		Sessions: sessiondb.New(database.DB, sealing), Archive: archivedb.New(database.DB, sealing), ArchiveKeys: sealing,
	}
	server := httptest.NewUnstartedServer(nil)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p.Local = "http://localhost:" + port
	server.Config.Handler = p.handler(t, options)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(p.Live.Close)
	p.URL = server.URL
	return p
}

// handler returns the dashboard.
func (p *Product) handler(t testing.TB, options []Option) http.Handler {
	t.Helper()
	models, err := tokens.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	p.Models = models
	throttle, err := identity.NewLocalThrottle(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	people, err := identity.NewService(identity.Store{Accounts: p.DB.Accounts, LoginStore: p.DB.Logins, WorkspaceStore: p.DB.Workspaces, Factors: p.DB.Factors}, throttle, p.vault.DeriveAll("logins"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	p.People = people
	people.SetSealer(p.vault)
	people.SetMails(identity.Mails{PublicURL: PublicURL})
	p.Mails = mail.NewOutbox(mail.Config{Store: p.DB.Mail, Answer: people.AnswerRequests, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	p.useAlerts(t)
	keys := forgetting{Service: p.Credentials(true), keys: p.Keys}
	configuration := manage.NewConfigurations(manage.Config{
		Defaults: p.defaults(), Gateway: manage.Gateway{Pipelines: p.DB.Pipelines, ModelWindows: p.DB.ModelWindows, APIKeys: keys, ProviderKeys: keys},
		People:         manage.People{Members: people.Workspaces()},
		Administration: manage.Administration{Data: p.DB.Data, Audit: p.DB.Audit},
	})
	p.Devices = &tenants.DeviceLogins{Store: p.DB.Devices, Keys: keys, Throttle: throttle, Peppers: p.vault.DeriveAll("terminal codes"), Page: PublicURL + paths.Device, Now: time.Now}
	deps := web.Deps{
		Administration: web.Administration{
			ImportConfig: configuration.Import, Workspaces: people.Workspaces(), Data: p.DB.Data, Audit: p.DB.Audit, Deletion: p.deletion(people),
			Billing: billing.New(billing.DefaultConfig(), billing.Deps{Now: time.Now}),
		},
		People: web.People{
			Identity: people, Members: people.Workspaces(), Invitations: identity.NewInvitations(people, p.DB.Invitations, PublicURL),
			SignOn: p.signOn(PublicURL), Passkeys: p.passkeys(p.Local),
			Devices: p.Devices,
		},
		Gateway: web.Gateway{
			APIKeys: keys, ProviderKeys: keys, Pipelines: p.DB.Pipelines, Preview: preview.New(p.Sessions.Browser(), models),
			TriggerAdvice: previewdb.New(p.DB), ModelWindows: p.DB.ModelWindows,
		},
		Traffic: web.Traffic{
			Usage: p.DB.Usage, Costs: p.Sessions.Browser(), Exchanges: p.DB.Exchanges, Alerts: p.Alerting,
			Resend: sender{t, p}.Send, Models: models,
		},
		Conversations: web.Conversations{
			Sessions: p.Sessions.Browser(), Archive: p.Archive, ArchiveKeys: p.ArchiveKeys, Stars: p.DB.Stars, Comments: p.DB.Comments,
		},
		Installation: web.Installation{
			Mails: p.Mails.Kept, Operator: p.DB.Operators,
			Health: func(ctx context.Context) []tenants.Check {
				return []tenants.Check{{Name: "Database", OK: p.DB.Ping(ctx) == nil, Text: "answers"}}
			},
		},
	}
	p.useEverywhere(t, &deps)
	for _, option := range options {
		option(p, &deps)
	}
	log := slog.New(slog.DiscardHandler)
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	// High limits, so that the palette has all of its groups and the preview all sessions even on a busy
	// machine.
	web.New(web.Config{PublicURL: PublicURL, Defaults: p.defaults(), Codecs: formats.ByFormat(), Log: log, JumpWithin: time.Minute, CountWithin: time.Minute, MailToken: mailToken, Version: Version}, deps).Register(e)
	p.Routes = e.Routes()
	return e
}

// deletion deletes workspaces from view and keeps their data.
func (p *Product) deletion(people *identity.Service) *deletion.Service {
	return deletion.New(deletion.Config{
		Store: p.DB.Deletion, EraseBytes: archivedb.NewMover(p.DB, p.ArchiveKeys, nil).Erase, ForgetJobs: func(context.Context, tenants.WorkspaceID) error { return nil }, Log: slog.New(slog.DiscardHandler), Confirm: people.Confirm,
		Enqueue: func(context.Context, tenants.Tenant) error { return nil },
	})
}

func (p *Product) defaults() pipeline.Layer {
	return pipeline.Layer{Source: pipeline.FromDefault, Modules: p.modules}
}

// Credentials creates and tests the keys of workspaces.
func (p *Product) Credentials(allowPrivate bool) *credentials.Service {
	return credentials.New(credentials.Config{
		Store: credentials.Store{APIKeyStore: p.DB.APIKeys, ProviderKeyStore: p.DB.ProviderKeys}, Issuer: p.Keys, Vault: p.vault, Upstream: p.provider, Defaults: p.defaults(), AllowPrivate: allowPrivate,
	})
}

// forgetting makes every revocation effective at once, like the database's notification in the product.
type forgetting struct {
	*credentials.Service

	keys *identity.Keys
}

// RevokeAPIKey implements tenants.APIKeys.
func (f forgetting) RevokeAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error {
	defer f.keys.Changed(workspace.String())
	return f.Service.RevokeAPIKey(ctx, workspace, id)
}

// ChangeAPIKey implements tenants.APIKeys.
func (f forgetting) ChangeAPIKey(ctx context.Context, tenant tenants.Tenant, wanted tenants.APIKey) error {
	defer f.keys.Changed(tenant.Workspace().String())
	return f.Service.ChangeAPIKey(ctx, tenant, wanted)
}

// RotateAPIKey implements tenants.APIKeys.
func (f forgetting) RotateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, grace time.Duration) (tenants.Rotation, string, error) {
	defer f.keys.Changed(workspace.String())
	return f.Service.RotateAPIKey(ctx, workspace, id, grace)
}

// address returns the URL of a path of the product.
func (p *Product) address(path string) string {
	parsed, err := url.Parse(path)
	if err == nil && parsed.IsAbs() {
		return path
	}
	return p.URL + path
}
