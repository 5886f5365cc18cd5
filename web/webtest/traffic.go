package webtest

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api"
	"palimpsest/api/proxysettings"
	"palimpsest/api/recorder"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
)

// ProviderKey is the only key that the provider double accepts.
const ProviderKey = "sk-double-0123456789abcdef"

// Provider starts a provider double with a context window of so many tokens.
func Provider(t testing.TB, window int) *providertest.Server {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	return providertest.NewServer(t, providerdouble.Config{Key: ProviderKey, Window: window, Count: counter.Count})
}

// Connect stores a key for the double and creates an API key, without the forms. It returns the API key's
// secret.
func (p *Person) Connect(double *providertest.Server, name string) string {
	p.t.Helper()
	keys := p.Credentials(true)
	for _, provider := range tenants.Providers() {
		wanted := tenants.ProviderKey{Provider: provider, Name: string(provider) + "-prod", BaseURL: double.URL, CreatedBy: p.User.ID}
		if _, err := keys.CreateProviderKey(p.t.Context(), p.Workspace.ID, wanted, ProviderKey); err != nil {
			p.t.Fatal(err)
		}
	}
	_, secret, err := keys.CreateAPIKey(p.t.Context(), p.Workspace.ID, tenants.APIKey{
		Name: name, Scopes: []tenants.Scope{tenants.ScopeProxy}, CreatedBy: p.User.ID,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return secret
}

// Talk sends all requests of a session through the real proxy, with the same context window in tokens for
// every model, and waits until all are recorded.
func (p *Person) Talk(secret string, window int, talk *sessiontest.Session, userAgent string) {
	p.t.Helper()
	proxy, stop := p.proxy(window)
	defer stop()
	path := map[conversation.Format]string{
		conversation.Anthropic: "/v1/messages", conversation.OpenAIChat: "/v1/chat/completions", conversation.OpenAIResponses: "/v1/responses",
	}[talk.Options.Format]
	for step, body := range talk.Bodies() {
		if status, answer := p.ask(proxy+path, secret, body, userAgent); status != http.StatusOK {
			p.t.Fatalf("request %d of the session: status %d: %.300s", step+1, status, answer)
		}
	}
}

// TalkOnce is Talk with one custom body.
func (p *Person) TalkOnce(secret string, window int, path, body, userAgent string) {
	p.t.Helper()
	proxy, stop := p.proxy(window)
	defer stop()
	if status, answer := p.ask(proxy+path, secret, []byte(body), userAgent); status != http.StatusOK {
		p.t.Fatalf("status %d: %.300s", status, answer)
	}
}

// Exchange sends one request with headers through the real proxy, waits until it is recorded, and returns the
// response's status and headers.
func (p *Person) Exchange(secret string, window int, path, body string, header ...string) (status int, answered http.Header) {
	p.t.Helper()
	proxy, stop := p.proxy(window)
	defer stop()
	response := p.sendToProxy(proxy+path, secret, []byte(body), "anthropic-sdk", header...)
	defer response.Body.Close()
	if _, err := io.ReadAll(response.Body); err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, response.Header
}

// ask sends one request to the proxy and returns its response.
func (p *Person) ask(address, secret string, body []byte, userAgent string) (status int, answer []byte) {
	p.t.Helper()
	response := p.sendToProxy(address, secret, body, userAgent)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, answer
}

// sendToProxy sends one request to the proxy.
func (p *Person) sendToProxy(address, secret string, body []byte, userAgent string, header ...string) *http.Response {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Anthropic-Version", "2023-06-01")
	request.Header.Set("User-Agent", userAgent)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	return response
}

// proxy starts the real proxy. stop ends it once everything is recorded.
func (p *Person) proxy(window int) (url string, stop func()) {
	p.t.Helper()
	server, recorded := p.server(p.t, window)
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	server.Register(e)
	listening := httptest.NewServer(e)
	return listening.URL, func() {
		listening.Close()
		recorded()
	}
}

// server returns the real proxy, with the same context window in tokens for every model. stop waits until
// everything is recorded.
func (p *Product) server(t testing.TB, window int) (server *api.Server, stop func()) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	settings, err := proxysettings.New(p.DB.ProxySettings, p.vault, p.modules, true)
	if err != nil {
		t.Fatal(err)
	}
	settings.WithRedaction(p.ArchiveKeys.TagKey)
	prompts := p.writer(t, window)
	prompts.Redactor = settings.Redact
	metrics := api.NewMetrics(prometheus.NewRegistry())
	recorder := recorder.New(p.DB, p.Sessions, p.DB.Exchanges, p.ArchiveKeys, metrics.Recorded, log)
	recorder.Recorded = func(workspace tenants.WorkspaceID, apiKeys []uuid.UUID) {
		for _, apiKey := range apiKeys {
			p.Live.Happened(workspace, apiKey, 1)
		}
	}
	recorder.Start()
	return &api.Server{
		Gate:    api.Gate{Keys: p.Keys, Settings: settings},
		Records: api.Records{Recorder: recorder, Metrics: metrics, Log: log, Now: time.Now},
		Prompts: prompts, Upstream: p.provider,
	}, recorder.Stop
}

// sender resends archived requests through the real proxy.
type sender struct {
	t       testing.TB
	product *Product
}

// senderWindow is the context window of resent requests.
const senderWindow = 200_000

// Send is a requests.Resend.
func (s sender) Send(from *http.Request, who tenants.Principal, key uuid.UUID, request tenants.Resend) (uuid.UUID, error) {
	server, stop := s.product.server(s.t, senderWindow)
	defer stop()
	return api.Resender{KeyOf: s.product.Keys.Of, Proxy: server}.Send(from, who, key, request)
}

func (p *Product) writer(t testing.TB, window int) *prompt.Writer {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	chain := pipeline.NewChain(modules.All(counter, modules.Memory{Past: compactionbridge.Past{Lanes: p.Sessions, Originals: p.Archive}})...)
	writer, err := prompt.NewWriter(p.Sessions, counter, chain.WithDeadline(time.Minute)) // even on a busy machine
	if err != nil {
		t.Fatal(err)
	}
	writer.Window = window
	return writer
}

// Newest returns the newest session of the person's workspace.
func (p *Person) Newest() session.Overview {
	p.t.Helper()
	page, err := p.Sessions.Browser().Sessions(tenants.OwnWork(p.t.Context()), p.Workspace.ID, session.Filter{Limit: 1})
	if err != nil || len(page.Sessions) == 0 {
		p.t.Fatalf("no session: %v", err)
	}
	return page.Sessions[0]
}

// Nobody returns an id that does not exist.
func Nobody() string { return uuid.Nil.String() }
