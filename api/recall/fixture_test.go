package recall_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api"
	"palimpsest/api/credentials"
	"palimpsest/api/proxysettings"
	"palimpsest/api/recall"
	"palimpsest/api/recorder"
	"palimpsest/api/upstream"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
	"palimpsest/tenants"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const (
	window   = 16_000      // tokens of every model
	patience = time.Minute // for what must come
)

// product is the proxy with its MCP server on a real database, before a provider.
type product struct {
	db          *dbtest.Database
	credentials *credentials.Service
	keys        *identity.Keys
	index       *archivedb.Index
	behind      func(ctx context.Context, workspace tenants.WorkspaceID, upTo time.Time) (bool, time.Time, error) // the index's own
	provider    *providertest.Server
	url         string
	log         *logged
}

// logged is a log that may be written to while a test reads it.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func codecs() map[conversation.Format]wire.Codec {
	all := map[conversation.Format]wire.Codec{}
	for _, codec := range []wire.Codec{anthropic.New(), openaichat.New(), openairesponses.New()} {
		all[codec.Format()] = codec
	}
	return all
}

func setup(t *testing.T) *product {
	t.Helper()
	p := &product{db: dbtest.New(t), log: &logged{}, provider: providertest.NewServer(t, providerdouble.Config{Window: window})}
	secrets := [][]byte{bytes.Repeat([]byte("s"), 32)}
	safe, err := vault.New(secrets)
	must(t, err)
	began := time.Now() // for ever: no key is forgotten for its age
	p.keys, err = identity.NewKeys(p.db.DB.APIKeys, secrets, func() time.Time { return began })
	must(t, err)
	client := upstream.New(true)
	t.Cleanup(client.Close)
	p.credentials = credentials.New(credentials.Config{
		Store: credentials.Store{APIKeyStore: p.db.DB.APIKeys, ProviderKeyStore: p.db.DB.ProviderKeys}, Issuer: p.keys, Vault: safe, Upstream: client, Defaults: pipeline.Layer{Source: pipeline.FromDefault}, AllowPrivate: true,
	})
	settings, err := proxysettings.New(p.db.DB.ProxySettings, safe, "ipc", true)
	must(t, err)
	counter, err := tokens.NewCounter()
	must(t, err)
	sealing := archive.NewKeys(datakeys.New(p.db.DB.DataKeys, safe))
	sessions, originals := sessiondb.New(p.db.DB, sealing), archivedb.New(p.db.DB, sealing)
	writer, err := prompt.NewWriter(sessions, counter, pipeline.NewChain(modules.All(counter, modules.Memory{})...))
	must(t, err)
	p.index = archivedb.NewIndex(originals, func(format conversation.Format, raw []byte) (conversation.Message, error) {
		return codecs()[format].Parse(raw)
	})
	p.behind = p.index.Behind
	metrics, log := api.NewMetrics(prometheus.NewRegistry()), slog.New(slog.NewJSONHandler(p.log, nil))
	recorder := recorder.New(p.db.DB, sessions, p.db.DB.Exchanges, sealing, metrics.Recorded, log)
	recorder.Start()
	t.Cleanup(recorder.Stop)
	proxy := &api.Server{
		Gate: api.Gate{Keys: p.keys, Settings: settings}, Records: api.Records{Recorder: recorder, Metrics: metrics, Log: log, Now: time.Now},
		Prompts: writer, Upstream: client,
	}
	proxy.Recall = recall.New(recall.Config{
		Readers: p.db.DB.Data, Lanes: sessions.Browser(), Archive: originals, Searcher: p.index, Codecs: codecs(), PublicURL: "https://palimpsest.example", Log: log, Now: time.Now,
		Observe: proxy.Recalled,
		Behind: func(ctx context.Context, workspace tenants.WorkspaceID, upTo time.Time) (bool, time.Time, error) {
			return p.behind(ctx, workspace, upTo)
		},
	})
	e := echo.New()
	proxy.Register(e)
	front := httptest.NewServer(e)
	t.Cleanup(front.Close)
	p.url = front.URL
	p.listen(t, log)
	return p
}

// listen has keys that are changed in the database forgotten, as the program does.
func (p *product) listen(t *testing.T, log *slog.Logger) {
	t.Helper()
	listener := p.db.DB.NewListener(log)
	listener.Handle(tenantsdb.KeysChannel, p.keys.Changed, p.keys.Forget)
	must(t, listener.Start(t.Context()))
	t.Cleanup(listener.Stop)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tenant is a workspace.
type tenant struct {
	*product

	workspace tenants.WorkspaceID
	user      uuid.UUID // its owner
	key       string    // secret of an API key for the proxy
}

func (p *product) tenant(t *testing.T, name string) *tenant {
	t.Helper()
	user, workspace, err := p.db.DB.Accounts.SignUp(t.Context(), name+"@example.com", "hash", name)
	must(t, err)
	w := &tenant{product: p, workspace: workspace.ID, user: user.ID}
	_, w.key = w.newKey(t, tenants.ScopeProxy)
	for _, provider := range []tenants.Provider{tenants.ProviderAnthropic, tenants.ProviderOpenAI} {
		_, err := p.credentials.CreateProviderKey(t.Context(), w.workspace, tenants.ProviderKey{
			Provider: provider, Name: string(provider), BaseURL: p.provider.URL, CreatedBy: uuid.New(),
		}, "sk-provider")
		must(t, err)
	}
	for _, model := range []string{"claude-sonnet-4-5", "gpt-5.5"} {
		_, err := p.db.DB.ModelWindows.SetModelWindow(t.Context(), w.workspace, model, window, uuid.New())
		must(t, err)
	}
	return w
}

func (w *tenant) newKey(t *testing.T, scope tenants.Scope) (id uuid.UUID, secret string) {
	t.Helper()
	key, secret, err := w.credentials.CreateAPIKey(t.Context(), w.workspace, tenants.APIKey{
		Name: string(scope), Scopes: []tenants.Scope{scope}, CreatedBy: w.user,
	})
	must(t, err)
	return key.ID, secret
}

// told is what is known of a conversation that has been compressed.
type told struct {
	session string
	name    string // of the archive, as the prompt has it
	prompt  string // that went to the provider
}

// converse sends a conversation that does not fit its window, and indexes it.
func (w *tenant) converse(t *testing.T, path, body string) told {
	t.Helper()
	got := w.send(t, path, body)
	w.catchUp(t)
	return got
}

// catchUp indexes what is not indexed yet.
func (w *tenant) catchUp(t *testing.T) {
	t.Helper()
	for done := 1; done > 0; {
		var err error
		done, err = w.index.IndexPending(t.Context(), 100)
		must(t, err)
	}
}

// send sends a conversation that does not fit its window.
func (w *tenant) send(t *testing.T, path, body string) told {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+w.key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Anthropic-Version", "2023-06-01")
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	answer, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", path, response.StatusCode, answer)
	}
	sent := w.provider.Requests()
	got := told{session: response.Header.Get("X-Palimpsest-Session-Id"), prompt: string(sent[len(sent)-1].Body)}
	named := regexp.MustCompile(`archive ([a-z2-7]{8})`).FindStringSubmatch(got.prompt)
	if named == nil {
		t.Fatalf("the prompt names no archive: %.2000s", got.prompt)
	}
	got.name = named[1]
	return got
}

// message is an element of a conversation.
type message map[string]any

// result returns what the tool returned in step i of a conversation.
func result(i int) string {
	return fmt.Sprintf("step %d began\n%s\nserial-%05d é done", i, strings.Repeat(fmt.Sprintf("word%d ", i), 400), 7919*i)
}

// conversations returns for each format a path and a body that fill the window.
func conversations() map[conversation.Format][2]string {
	claude := []message{{"role": "user", "content": "Do it all."}}
	chat := []message{{"role": "user", "content": "Do it all."}}
	items := []message{{"role": "user", "content": "Do it all."}}
	for i := range 20 {
		id, command := fmt.Sprintf("toolu_%d", i), fmt.Sprintf(`{"command":"run step %d"}`, i)
		claude = append(claude,
			message{"role": "assistant", "content": []message{{"type": "tool_use", "id": id, "name": "Bash", "input": json.RawMessage(command)}}},
			message{"role": "user", "content": []message{{"type": "tool_result", "tool_use_id": id, "content": result(i)}}})
		chat = append(chat,
			message{"role": "assistant", "content": nil, "tool_calls": []message{{"id": id, "type": "function", "function": message{"name": "Bash", "arguments": command}}}},
			message{"role": "tool", "tool_call_id": id, "content": result(i)})
		items = append(items,
			message{"type": "function_call", "call_id": id, "name": "Bash", "arguments": command},
			message{"type": "function_call_output", "call_id": id, "output": result(i)})
	}
	return map[conversation.Format][2]string{
		conversation.Anthropic:       {"/v1/messages", encode(message{"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": claude})},
		conversation.OpenAIChat:      {"/v1/chat/completions", encode(message{"model": "gpt-5.5", "max_completion_tokens": 500, "messages": chat})},
		conversation.OpenAIResponses: {"/v1/responses", encode(message{"model": "gpt-5.5", "max_output_tokens": 500, "store": false, "input": items})},
	}
}

// recalled is a call of a model and what came back.
type recalled struct{ tool, arguments, result string }

// withCalls returns the body of a conversation that goes on with calls, and with as many of
// another tool as it takes to fill the window again, so that they are archived.
func withCalls(format conversation.Format, body string, calls ...recalled) string {
	var sent message
	if err := json.Unmarshal([]byte(body), &sent); err != nil {
		panic(err) // it is of this file
	}
	list := "messages"
	if format == conversation.OpenAIResponses {
		list = "input"
	}
	messages, _ := sent[list].([]any)
	for i := range 20 {
		calls = append(calls, recalled{"Bash", `{"command":"make"}`, strings.Repeat(fmt.Sprintf("made%d ", i), 400)})
	}
	for i, call := range calls {
		id := fmt.Sprintf("toolu_recall_%d", i)
		switch format {
		case conversation.Anthropic:
			messages = append(messages,
				message{"role": "assistant", "content": []message{{"type": "tool_use", "id": id, "name": call.tool, "input": json.RawMessage(call.arguments)}}},
				message{"role": "user", "content": []message{{"type": "tool_result", "tool_use_id": id, "content": call.result}}})
		case conversation.OpenAIChat:
			messages = append(messages,
				message{"role": "assistant", "content": nil, "tool_calls": []message{{"id": id, "type": "function", "function": message{"name": call.tool, "arguments": call.arguments}}}},
				message{"role": "tool", "tool_call_id": id, "content": call.result})
		default:
			messages = append(messages,
				message{"type": "function_call", "call_id": id, "name": call.tool, "arguments": call.arguments},
				message{"type": "function_call_output", "call_id": id, "output": call.result})
		}
	}
	sent[list] = messages
	return encode(sent)
}

func encode(body message) string {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err) // it holds nothing that cannot be encoded
	}
	return string(encoded)
}

// carrier adds headers to the requests of an MCP client.
type carrier map[string]string

func (c carrier) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	for name, value := range c {
		request.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(request)
}

// connect opens an MCP client's connection with headers.
func (p *product) connect(t *testing.T, headers carrier) (*mcp.ClientSession, error) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	return client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: p.url + "/mcp", HTTPClient: &http.Client{Transport: headers}, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
}

// recaller is a model's side of a connection.
type recaller struct {
	*mcp.ClientSession

	t *testing.T
}

// model returns a connection with a key and more headers.
func (p *product) model(t *testing.T, key string, headers ...string) recaller {
	t.Helper()
	carried := carrier{"Authorization": "Bearer " + key}
	for i := 0; i+1 < len(headers); i += 2 {
		carried[headers[i]] = headers[i+1]
	}
	session, err := p.connect(t, carried)
	must(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return recaller{session, t}
}

// hits is what recall_search returns.
type hits struct {
	About string
	Hits  []struct {
		Pointer, Session, At, Snippet string
		Score                         float64
		Tools, Paths                  []string
	}
}

// messages is what recall_get returns.
type messages struct {
	About, Session string
	NextCursor     string `json:"next_cursor"`
	Messages       []struct {
		Pointer, Role, At, Text string
		Offset                  int
		Total                   int `json:"total_bytes"`
	}
}

// call calls a tool and decodes its structured answer; text is what a model reads.
func (r recaller) call(tool string, arguments message, into any) (text string, failed bool) {
	r.t.Helper()
	result, err := r.CallTool(r.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any(arguments)})
	if err != nil {
		r.t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	if len(result.Content) != 1 {
		r.t.Fatalf("%s: %d contents", tool, len(result.Content))
	}
	content, is := result.Content[0].(*mcp.TextContent)
	if !is {
		r.t.Fatalf("%s: %T", tool, result.Content[0])
	}
	if into != nil && !result.IsError {
		encoded, err := json.Marshal(result.StructuredContent)
		must(r.t, err)
		must(r.t, json.Unmarshal(encoded, into))
	}
	return content.Text, result.IsError
}

// refused calls a tool with what it cannot do, and wants words in what it says.
func (r recaller) refused(tool string, arguments message, words string) {
	r.t.Helper()
	if text, failed := r.call(tool, arguments, nil); !failed || !strings.Contains(text, words) {
		r.t.Errorf("%s %v: failed %t, %q lacks %q", tool, arguments, failed, text, words)
	}
}
