// Package webtest runs the dashboard for tests: on the real stores and a database
// of its own, with the real proxy and a provider double to fill it.
package webtest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/api/upstream"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
	"palimpsest/web"
)

// Password is the password of everybody who signs up.
const Password = "correct horse battery"

// PublicURL is what the product is said to be reached at.
const PublicURL = "http://127.0.0.1:8080"

// Product is the dashboard with everything behind it.
type Product struct {
	URL      string
	Database *dbtest.Database
	DB       *tenantsdb.DB
	Keys     *identity.Keys
	Sessions *sessiondb.Store
	Archive  *archivedb.DB

	vault    *vault.Vault
	provider *upstream.Client
	modules  string
}

// Option changes what the dashboard is made of.
type Option func(*web.Deps)

// Start runs the dashboard until the test ends.
func Start(t testing.TB, options ...Option) *Product {
	t.Helper()
	database := dbtest.New(t)
	safe, err := vault.New([][]byte{[]byte("a secret of thirty-two bytes ...")})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := identity.NewKeys(database.DB, safe.DeriveAll("api keys"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	provider := upstream.New(true)
	t.Cleanup(provider.Close)
	p := &Product{
		Database: database, DB: database.DB, Keys: keys, vault: safe, provider: provider, modules: "ipc",
		Sessions: sessiondb.New(database.DB), Archive: archivedb.New(database.DB),
	}
	server := httptest.NewServer(p.handler(t, options))
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// handler returns the dashboard.
func (p *Product) handler(t testing.TB, options []Option) http.Handler {
	t.Helper()
	throttle, err := identity.NewLocalThrottle(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	people, err := identity.NewService(p.DB, throttle, p.vault.DeriveAll("logins"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	credentials := &credentials{product: p}
	deps := web.Deps{
		Identity: people, APIKeys: credentials, ProviderKeys: credentials, Tester: credentials,
		Pipelines: p.DB, Usage: p.DB, Sessions: p.Sessions, Exchanges: p.DB, Archive: p.Archive,
	}
	for _, option := range options {
		option(&deps)
	}
	log := slog.New(slog.DiscardHandler)
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	web.New(web.Config{PublicURL: PublicURL, Defaults: p.defaults(), Codecs: Codecs(), Log: log}, deps).Register(e)
	return e
}

func (p *Product) defaults() pipeline.Layer {
	return pipeline.Layer{Source: pipeline.FromDefault, Modules: p.modules}
}

// Codecs returns the codecs of all formats.
func Codecs() map[conversation.Format]wire.Codec {
	all := map[conversation.Format]wire.Codec{}
	for _, codec := range []wire.Codec{anthropic.New(), openaichat.New(), openairesponses.New()} {
		all[codec.Format()] = codec
	}
	return all
}

// credentials creates and checks the keys of workspaces.
type credentials struct{ product *Product }

// APIKeys implements keys.Store.
func (c *credentials) APIKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.APIKey, error) {
	return c.product.DB.APIKeys(ctx, workspace)
}

// CreateAPIKey implements keys.Store.
func (c *credentials) CreateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.APIKey) (tenants.APIKey, string, error) {
	key, secret, hash := c.product.Keys.Create(workspace, wanted.Name, wanted.Scopes, wanted.CreatedBy, wanted.ExpiresAt)
	return key, secret, c.product.DB.CreateAPIKey(ctx, workspace, key, hash)
}

// RevokeAPIKey implements keys.Store.
func (c *credentials) RevokeAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error {
	c.product.Keys.Forget()
	return c.product.DB.RevokeAPIKey(ctx, workspace, id)
}

// ProviderKeys implements providers.Store.
func (c *credentials) ProviderKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ProviderKey, error) {
	return c.product.DB.ProviderKeys(ctx, workspace)
}

// CreateProviderKey implements providers.Store.
func (c *credentials) CreateProviderKey(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.ProviderKey, secret string) (tenants.ProviderKey, error) {
	if wanted.BaseURL != "" {
		if err := upstream.VerifyBaseURL(wanted.BaseURL, true); err != nil {
			return tenants.ProviderKey{}, err
		}
	}
	sealed, err := c.product.vault.Seal(workspace, wanted.Provider, secret)
	if err != nil {
		return tenants.ProviderKey{}, err
	}
	wanted.ID, wanted.Sealed, wanted.Last4 = uuid.Must(uuid.NewV7()), sealed, secret[max(0, len(secret)-4):]
	wanted.Workspace, wanted.CreatedAt = workspace, time.Now()
	return wanted, c.product.DB.AddProviderKey(ctx, workspace, wanted)
}

// DeleteProviderKey implements providers.Store.
func (c *credentials) DeleteProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error {
	return c.product.DB.DeleteProviderKey(ctx, workspace, id)
}

// Rejected is a provider's refusal of a key.
type Rejected struct{ Status int }

// Error implements error.
func (r Rejected) Error() string { return http.StatusText(r.Status) }

// Rejection implements providers.Rejection.
func (r Rejected) Rejection() (status int, message string) { return r.Status, "invalid x-api-key" }

// Models implements providers.Tester.
func (c *credentials) Models(ctx context.Context, key tenants.ProviderKey) (int, error) {
	secret, err := c.product.vault.Open(key.Workspace, key.Provider, key.Sealed)
	if err != nil {
		return 0, err
	}
	header := http.Header{"Anthropic-Version": {"2023-06-01"}}
	response, err := c.product.provider.Send(ctx, http.MethodGet, "/v1/models", header, nil, upstream.Target{
		Provider: key.Provider, BaseURL: key.BaseURL, Key: secret,
	})
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, Rejected{Status: response.StatusCode}
	}
	return countModels(response.Body)
}

// address returns the URL of a path of the product.
func (p *Product) address(path string) string {
	parsed, err := url.Parse(path)
	if err == nil && parsed.IsAbs() {
		return path
	}
	return p.URL + path
}
