package manage_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/api/alerts"
	"palimpsest/api/credentials"
	"palimpsest/api/manage"
	"palimpsest/api/upstream"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/billing"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/deletion"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/vault"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const (
	prefix    = "/api/v1"
	password  = "correct horse battery"
	canaryKey = "sk-canary-0123456789-wxyz"
)

// product is the API on a real database.
type product struct {
	db       *dbtest.Database
	echo     *echo.Echo
	people   *identity.Service
	url      string
	double   *providertest.Server
	keys     *identity.Keys
	devices  *tenants.DeviceLogins
	sessions *sessiondb.Store
	archive  *archivedb.DB
	index    *archivedb.Index
	log      *bytes.Buffer
	records  map[string][]string // of the domain name system
	sealer   *vault.Vault

	archiveKeys *archive.Keys
}

func setup(t *testing.T) *product {
	t.Helper()
	return setupAt(t, "http://127.0.0.1:8080", true)
}

// setupAt is setup for a product that people reach at publicURL and that allows
// base URLs on private addresses, or not.
func setupAt(t *testing.T, publicURL string, allowPrivate bool) *product {
	t.Helper()
	p := &product{db: dbtest.New(t), echo: echo.New(), log: new(bytes.Buffer), records: map[string][]string{}}
	p.double = providertest.NewServer(t, providerdouble.Config{Key: canaryKey})
	secrets := [][]byte{bytes.Repeat([]byte("s"), 32)}
	sealer, err := vault.New(secrets)
	if err != nil {
		t.Fatal(err)
	}
	p.sealer = sealer
	archiveKeys := archive.NewKeys(datakeys.New(p.db.DB.DataKeys, sealer))
	p.archiveKeys = archiveKeys
	p.sessions, p.archive = sessiondb.New(p.db.DB, archiveKeys), archivedb.New(p.db.DB, archiveKeys)
	p.index = archivedb.NewIndex(p.archive, func(_ conversation.Format, raw []byte) (conversation.Message, error) {
		return anthropic.New().Parse(raw)
	})
	throttle, err := identity.NewLocalThrottle(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	people, err := identity.NewService(identity.Store{Accounts: p.db.DB.Accounts, LoginStore: p.db.DB.Logins, WorkspaceStore: p.db.DB.Workspaces, Factors: p.db.DB.Factors}, throttle, secrets, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	people.SetSealer(sealer)
	p.people = people
	if p.keys, err = identity.NewKeys(p.db.DB.APIKeys, secrets, time.Now); err != nil {
		t.Fatal(err)
	}
	models, err := tokens.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	client := upstream.New(allowPrivate)
	t.Cleanup(client.Close)
	defaults := pipeline.Layer{Source: pipeline.FromDefault}
	keys := credentials.New(credentials.Config{
		Store: credentials.Store{APIKeyStore: p.db.DB.APIKeys, ProviderKeyStore: p.db.DB.ProviderKeys}, Issuer: p.keys, Vault: sealer, Upstream: client, Defaults: defaults, AllowPrivate: allowPrivate,
	})
	p.devices = &tenants.DeviceLogins{Store: p.db.DB.Devices, Keys: keys, Throttle: throttle, Peppers: secrets, Page: publicURL + "/device", Now: time.Now}
	manage.Register(p.echo.Group(prefix), manage.Config{
		Defaults: defaults,
		Codecs:   map[conversation.Format]wire.Codec{conversation.Anthropic: anthropic.New()},
		People: manage.People{
			Identity: people, Cookies: tenants.NewCookies(publicURL), Keys: p.keys, Members: people.Workspaces(),
			Invitations: identity.NewInvitations(people, p.db.DB.Invitations, publicURL), Operators: p.db.DB.Operators, SignOn: p.signOn(), Devices: p.devices,
		},
		Gateway: manage.Gateway{
			APIKeys: keys, ProviderKeys: keys, Pipelines: p.db.DB.Pipelines, ModelWindows: p.db.DB.ModelWindows, Patterns: patternsdb.New(p.db.DB),
			Previews: preview.New(p.sessions.Browser(), models),
		},
		Traffic: manage.Traffic{
			Exchanges: p.db.DB.Exchanges, Usage: p.db.DB.Usage, Costs: p.sessions.Browser(), Views: p.db.DB.Views,
			Alerts: alerts.New(alerts.Config{
				Store:  alerts.Store{Alerts: p.db.DB.Alerts, Keys: p.db.DB.APIKeys, UsageReader: p.db.DB.Usage, Workspaces: p.db.DB.Workspaces, Transactor: p.db.DB},
				Sealer: sealer, Log: slog.New(slog.DiscardHandler), Now: time.Now,
			}),
		},
		Conversations: manage.Conversations{
			Sessions: p.sessions.Browser(), Archive: p.archive, ArchiveKeys: archiveKeys, Searcher: p.index, Stars: p.db.DB.Stars,
			Comments: p.db.DB.Comments,
		},
		Administration: manage.Administration{
			Workspaces: people.Workspaces(), Data: p.db.DB.Data, Audit: p.db.DB.Audit, Deletion: p.deletion(),
			Billing: billing.New(billing.DefaultConfig(), billing.Deps{Now: time.Now}),
		},
		Log: slog.New(slog.NewJSONHandler(p.log, nil)),
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log:\n%s", p.log)
		}
	})
	server := httptest.NewServer(p.echo)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// forget has memory drop a workspace, as notifications do in the product.
func (p *product) forget(workspace tenants.WorkspaceID) {
	p.people.Forget()
	p.keys.Changed(workspace.String())
}

// deletion deletes workspaces at once instead of in the background.
func (p *product) deletion() *deletion.Service {
	service := deletion.New(deletion.Config{
		Store: p.db.DB.Deletion, EraseBytes: archivedb.NewMover(p.db.DB, p.archiveKeys, nil).Erase, ForgetJobs: func(context.Context, tenants.WorkspaceID) error { return nil }, Log: slog.New(slog.DiscardHandler), Confirm: p.people.Confirm,
		Enqueue: func(context.Context, tenants.Tenant) error { return nil },
	})
	return service
}

// tenant is a workspace with one of everything.
type tenant struct {
	*product

	cookie      *http.Cookie
	workspace   tenants.WorkspaceID
	manage      string // secret of an API key with the scope manage
	read        string // and of one with the scope read
	keyID       string
	providerKey string
	login       string // not that of the cookie
	pattern     string
	viewer      string // id of a member
	invitation  string
	session     uuid.UUID
	lane        uuid.UUID
	request     uuid.UUID
	messages    []string
	comment     string // of the owner, on the session
}

// member signs up a workspace and logs in.
func (p *product) member(t *testing.T, name string) *tenant {
	t.Helper()
	w := &tenant{product: p}
	answer := w.send(t, http.MethodPost, "/signup", fmt.Sprintf(`{"email":"%s@example.com","password":%q,"workspace":%q}`, name, password, name))
	answer.want(t, http.StatusCreated)
	if len(answer.cookies) != 1 {
		t.Fatalf("%d cookies, want 1", len(answer.cookies))
	}
	w.cookie = answer.cookies[0]
	var me struct {
		Workspace struct{ ID tenants.WorkspaceID }
	}
	answer.decode(t, &me)
	w.workspace = me.Workspace.ID
	return w
}

// colleague returns someone who has a role in the tenant's workspace and is logged
// in there.
func (w *tenant) colleague(t *testing.T, role tenants.Role) *tenant {
	t.Helper()
	name := string(role) + "-" + uuid.NewString()
	colleague := w.member(t, name)
	var me struct{ User struct{ ID uuid.UUID } }
	colleague.send(t, http.MethodGet, "/me", "").decode(t, &me)
	statement := "UPDATE members SET role = $1, workspace_id = $2 WHERE user_id = $3"
	if _, err := w.db.Owner(t).Exec(t.Context(), "DELETE FROM logins WHERE user_id = $1", me.User.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.Owner(t).Exec(t.Context(), statement, string(role), w.workspace, me.User.ID); err != nil {
		t.Fatal(err)
	}
	answer := colleague.send(t, http.MethodPost, "/login", fmt.Sprintf(`{"email":"%s@example.com","password":%q}`, name, password))
	answer.want(t, http.StatusOK)
	colleague.cookie, colleague.workspace = answer.cookies[0], w.workspace
	return colleague
}

// tenant signs up a workspace and gives it one of everything.
func (p *product) tenant(t *testing.T, name string) *tenant {
	t.Helper()
	w := p.member(t, name)
	w.login = w.logInAgain(t, name+"@example.com")
	w.keyID, w.manage = w.createKey(t, "manage")
	_, w.read = w.createKey(t, "read")
	answer := w.send(t, http.MethodPost, "/provider-keys",
		fmt.Sprintf(`{"provider":"anthropic","name":"key of %s","key":%q,"base_url":%q}`, name, canaryKey, p.double.URL))
	answer.want(t, http.StatusCreated)
	var stored struct{ ID string }
	answer.decode(t, &stored)
	w.providerKey = stored.ID
	w.send(t, http.MethodPut, "/pipeline", `{"ipc":{"targetUtilization":0.61}}`).want(t, http.StatusOK)
	w.converse(t, name)
	w.send(t, http.MethodPut, w.modelWindow(), `{"window_tokens":64000}`).want(t, http.StatusOK)
	answer = w.send(t, http.MethodPost, "/patterns", fmt.Sprintf(`{"kind":"convention","text":"We use pnpm in %s, not npm."}`, name))
	answer.want(t, http.StatusCreated)
	answer.decode(t, &stored)
	w.pattern = stored.ID
	answer = w.send(t, http.MethodPost, "/sign-on/domains", fmt.Sprintf(`{"domain":%q}`, w.domain()))
	answer.want(t, http.StatusCreated)
	w.records[w.domain()] = []string{answer.signOn(t).Domains[0].Record}
	w.send(t, http.MethodPost, w.path("/pins"), `{"message":1}`).want(t, http.StatusOK)
	w.send(t, http.MethodPut, w.path("/star"), "").want(t, http.StatusNoContent)
	w.send(t, http.MethodPut, w.path("/pin"), "").want(t, http.StatusNoContent)
	w.comment = w.remark(t, `{"text":"Look at this."}`)
	w.viewer = w.colleague(t, tenants.Viewer).userID(t)
	answer = w.send(t, http.MethodPost, "/invitations", `{"email":"pending@example.com","role":"member"}`)
	answer.want(t, http.StatusCreated)
	answer.decode(t, &stored)
	w.invitation = stored.ID
	const longAgo = "UPDATE invitations SET sent_at = sent_at - interval '1 hour', expires_at = expires_at - interval '1 hour' WHERE id = $1"
	if _, err := w.db.Owner(t).Exec(t.Context(), longAgo, stored.ID); err != nil {
		t.Fatal(err)
	}
	return w
}

// logInAgain opens another login of the tenant's person and returns its id.
func (w *tenant) logInAgain(t *testing.T, email string) string {
	t.Helper()
	answer := w.sendWith(t, "", http.MethodPost, "/login", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password))
	answer.want(t, http.StatusOK)
	other := &tenant{product: w.product, cookie: answer.cookies[0]}
	for _, login := range other.logins(t) {
		if login.Current {
			return login.ID
		}
	}
	t.Fatal("a new login is not listed")
	return ""
}

// login is a login as the API lists it.
type login struct {
	ID        string
	UserAgent string `json:"user_agent"`
	Current   bool
}

func (w *tenant) logins(t *testing.T) []login {
	t.Helper()
	answer := w.send(t, http.MethodGet, "/account/logins", "")
	answer.want(t, http.StatusOK)
	var page struct{ Data []login }
	answer.decode(t, &page)
	return page.Data
}

// userID returns who is logged in.
func (w *tenant) userID(t *testing.T) string {
	t.Helper()
	var me struct{ User struct{ ID string } }
	w.send(t, http.MethodGet, "/me", "").decode(t, &me)
	return me.User.ID
}

// email returns the mail address of the tenant's person.
func (w *tenant) email(t *testing.T) string {
	t.Helper()
	var me struct{ User struct{ Email string } }
	w.send(t, http.MethodGet, "/me", "").decode(t, &me)
	return me.User.Email
}

// modelWindow is the path of the tenant's own window of a model.
func (w *tenant) modelWindow() string { return "/models/windows/model-" + w.session.String() }

func (w *tenant) createKey(t *testing.T, scope string) (id, secret string) {
	t.Helper()
	answer := w.send(t, http.MethodPost, "/keys", fmt.Sprintf(`{"name":%q,"scopes":[%q]}`, "for "+scope, scope))
	answer.want(t, http.StatusCreated)
	var created struct{ ID, Secret string }
	answer.decode(t, &created)
	return created.ID, created.Secret
}

// converse records a session of eight messages with one epoch and one exchange.
func (w *tenant) converse(t *testing.T, name string) {
	t.Helper()
	w.session, w.lane, w.request = uuid.New(), uuid.New(), uuid.Must(uuid.NewV7())
	for i := range 4 {
		w.messages = append(w.messages,
			fmt.Sprintf(`{"role":"user","content":"question %d of %s"}`, i, name),
			fmt.Sprintf(`{ "role": "assistant", "content": [{"type":"text","text":"answer %d"}] }`, i))
	}
	seen := session.Update{
		Scope:   session.Scope{Workspace: w.workspace, APIKey: uuid.MustParse(w.keyID), Format: conversation.Anthropic},
		Session: w.session, Lane: w.lane, Naming: session.Naming{Source: "lineage"}, Title: "Session of " + name, Client: "claude-code", Model: "claude-sonnet-4-5",
		At: time.Now(), Messages: session.Messages{Position: len(w.messages), Head: sha256.Sum256([]byte(name))},
		Increment: session.Increment{Exchanges: 1, TokensBefore: 100, TokensAfter: 60},
	}
	for i, raw := range w.messages {
		seen.Messages.Entries = append(seen.Messages.Entries, archive.Entry{Index: i, Hash: sha256.Sum256([]byte(raw)), Role: conversation.User, Tokens: 7, Raw: []byte(raw)})
	}
	projection := session.Projection{Number: 1, Covers: 4, Reason: "target", Before: 100, After: 60, At: time.Now(), Certificate: session.Certificate{{What: "orders", All: 2, InPrompt: 1, Missing: []int{0}}}, Parts: []session.Part{
		{From: 0, To: 2, Level: 2, Raw: json.RawMessage(`{"role":"user","content":"short"}`), Tokens: 3, Messages: 1},
		{From: 2, To: 4, Level: 1, Raw: json.RawMessage(`{"role":"user","content":"shorter"}`), Tokens: 3, Messages: 1},
	}}
	if err := w.sessions.Commit(t.Context(), seen, projection); err != nil {
		t.Fatal(err)
	}
	if _, err := w.index.Index(t.Context(), w.workspace, w.lane); err != nil {
		t.Fatal(err)
	}
	report, err := json.Marshal(pipeline.Report{Compression: pipeline.Epoch, Events: []pipeline.ReportEntry{{Module: "ipc", Type: "completed", Reason: "target", Counts: map[string]int{"before": 100}}}})
	if err != nil {
		t.Fatal(err)
	}
	err = w.db.DB.Exchanges.RecordExchanges(t.Context(), w.workspace, []tenants.Exchange{{
		ID: w.request, Workspace: w.workspace, At: time.Now(),
		Request: tenants.ExchangeRequest{
			Session: w.session, Lane: w.lane, APIKey: uuid.MustParse(w.keyID), Endpoint: "/v1/messages",
			Model: "claude-sonnet-4-5", Client: "claude-code", Position: len(w.messages),
		},
		Answer: tenants.ExchangeAnswer{Provider: tenants.ProviderAnthropic, Status: http.StatusOK, Attempts: 1},
		Prompt: tenants.ExchangePrompt{
			Compression: "epoch", TokensBefore: 100, TokensAfter: 60, Window: 200_000, Report: report,
		},
		Tokens: tenants.ExchangeTokens{Input: 11, CacheRead: 12, CacheWrite: 13, Output: 14},
		Cost:   tenants.ExchangeCost{CostMicroUSD: 15, NetMicroUSD: -16},
		Times:  tenants.ExchangeTimes{Overhead: 1500 * time.Microsecond},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// reply is an answer of the API.
type reply struct {
	request string
	status  int
	header  http.Header
	cookies []*http.Cookie
	body    []byte
}

// send sends a JSON body with the tenant's cookie, if it has one.
func (w *tenant) send(t *testing.T, method, path, body string, header ...string) reply {
	t.Helper()
	request := w.build(t, method, path, body, header...)
	if w.cookie != nil {
		request.AddCookie(w.cookie)
	}
	return do(t, request)
}

// sendWith sends a JSON body with an API key; without any credentials if it is empty.
func (w *tenant) sendWith(t *testing.T, key, method, path, body string) reply {
	t.Helper()
	request := w.build(t, method, path, body)
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	return do(t, request)
}

func (p *product) build(t *testing.T, method, path, body string, header ...string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.url+prefix+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	return request
}

// do sends a request, and holds it and its answer against openapi.yaml.
func do(t *testing.T, request *http.Request) reply {
	t.Helper()
	answer := exchange(t, request)
	described(t, request, sentBody(t, request), answer)
	return answer
}

// exchange sends a request.
func exchange(t *testing.T, request *http.Request) reply {
	t.Helper()
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{request: request.Method + " " + request.URL.RequestURI(), status: response.StatusCode, header: response.Header, cookies: response.Cookies(), body: body}
}

// want fails the test unless the answer has a status, and unless errors are
// problems that say what to do.
func (r reply) want(t *testing.T, status int) {
	t.Helper()
	if r.status != status {
		t.Fatalf("%s: status %d, want %d: %s", r.request, r.status, status, r.body)
	}
	if status < http.StatusBadRequest {
		return
	}
	var problem struct {
		Type, Title, Detail string
		Status              int
	}
	r.decode(t, &problem)
	if r.header.Get("Content-Type") != "application/problem+json" || problem.Type == "" || problem.Title == "" || problem.Detail == "" || problem.Status != status {
		t.Errorf("%s: %s is no problem: %s", r.request, r.header.Get("Content-Type"), r.body)
	}
}

func (r reply) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal(r.body, into); err != nil {
		t.Fatalf("%s: %v in %s", r.request, err, r.body)
	}
}

// field returns the field that a problem names.
func (r reply) field(t *testing.T) string {
	t.Helper()
	var problem struct{ Field string }
	r.decode(t, &problem)
	return problem.Field
}
