package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/limits"
	"palimpsest/api/proxysettings"
	"palimpsest/api/recorder"
	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/tenants"
)

const (
	testKey     = "plm_live_test"
	providerKey = "sk-test"
	patience    = time.Minute // for what must come, on a loaded machine
)

// proxy is the proxy with real parts on a store in memory, before a provider.
type proxy struct {
	*Server

	t        testing.TB
	url      string
	provider string // address
	store    *storage
	memory   *memory
	log      *logged
}

// exchangeStore is what a fake does not implement of tenants.Exchanges.
type exchangeStore interface{ tenants.Exchanges }

// storage is what the proxy keeps, in memory.
type storage struct {
	exchangeStore
	tenants.ProviderKeyVault

	mu        sync.Mutex
	broken    error // every call fails
	workspace tenants.WorkspaceID
	keys      []tenants.ProviderKey
	windows   map[string]int
	prices    []tenants.ModelPrice
	pipeline  tenants.PipelineConfig
	data      tenants.DataSettings
	budgets   []tenants.Budget
	exchanges []tenants.Exchange
	recorded  chan struct{} // one for each exchange
	limits    tenants.Limits
}

// Spend returns what was recorded.
func (s *storage) Spend(_ context.Context, _ tenants.WorkspaceID, who tenants.Spender, _, _ time.Time) (day, month int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, exchange := range s.exchanges {
		if who.Kind != tenants.EndUserSpends || exchange.Request.EndUser == who.ID {
			day += exchange.Cost.CostMicroUSD
		}
	}
	return day, day, s.broken
}

// limit holds the test's key to limits from now on.
func (s *storage) limit(limits tenants.Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = limits
}

func (s *storage) Pipeline(context.Context, tenants.WorkspaceID) (tenants.PipelineConfig, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pipeline, s.broken
}

func (s *storage) ProviderKeys(context.Context, tenants.WorkspaceID) ([]tenants.ProviderKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys, s.broken
}

func (s *storage) DataSettings(context.Context, tenants.WorkspaceID) (tenants.DataSettings, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data, s.broken
}

func (s *storage) Budgets(context.Context, tenants.WorkspaceID) ([]tenants.Budget, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.budgets, s.broken
}

func (s *storage) ModelPrices(context.Context, tenants.WorkspaceID) ([]tenants.ModelPrice, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prices, s.broken
}

func (s *storage) ModelWindows(context.Context, tenants.WorkspaceID) ([]tenants.ModelWindow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var windows []tenants.ModelWindow
	for model, window := range s.windows {
		windows = append(windows, tenants.ModelWindow{Model: model, Tokens: window})
	}
	return windows, s.broken
}

func (s *storage) LearnModelWindow(_ context.Context, _ tenants.WorkspaceID, model string, window int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.windows[model] = window
	}
	return s.broken
}

func (s *storage) Together(_ context.Context, tenant tenants.Tenant, fn func(tenant tenants.Tenant) error) error {
	return fn(tenant)
}

func (s *storage) RecordExchanges(_ context.Context, _ tenants.Tenant, exchanges []tenants.Exchange) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges = append(s.exchanges, exchanges...)
	for range exchanges {
		s.recorded <- struct{}{}
	}
	return nil
}

// RecordedExchanges implements tenants.Exchanges.
func (s *storage) RecordedExchanges(_ context.Context, _ tenants.Tenant, ids []uuid.UUID) (recorded []uuid.UUID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.exchanges {
		if slices.Contains(ids, s.exchanges[i].ID) {
			recorded = append(recorded, s.exchanges[i].ID)
		}
	}
	return recorded, nil
}

// Open implements Vault: provider keys are not sealed.
func (s *storage) Open(key tenants.ProviderKey) (string, error) { return string(key.Sealed), nil }

// Authenticate implements tenants.KeyAuthenticator.
func (s *storage) Authenticate(_ context.Context, secret string) (tenants.APIKey, error) {
	if secret != testKey {
		return tenants.APIKey{}, tenants.ErrKeyUnknown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return tenants.APIKey{ID: uuid.UUID(s.workspace), Workspace: s.workspace, Prefix: "plm_live_te", Scopes: []tenants.Scope{tenants.ScopeProxy}, Limits: s.limits, Rights: tenants.KeyRights{Private: true}}, nil
}

// memory is a session store that counts what is written to it.
type memory struct {
	*session.Memory

	commits, records atomic.Int32

	mu      sync.Mutex
	updates []session.Update // that were recorded
}

func (m *memory) Commit(ctx context.Context, seen session.Update, projection session.Projection) error {
	m.commits.Add(1)
	return m.Memory.Commit(ctx, seen, projection)
}

func (m *memory) Record(ctx context.Context, tenant tenants.Tenant, seen []session.Update) error {
	m.records.Add(int32(len(seen)))
	m.mu.Lock()
	m.updates = append(m.updates, seen...)
	m.mu.Unlock()
	return m.Memory.Record(ctx, tenant, seen)
}

// seen returns what was recorded.
func (m *memory) seen() []session.Update {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.updates)
}

// writes returns how often epochs were committed and requests recorded.
func (m *memory) writes() [2]int32 { return [2]int32{m.commits.Load(), m.records.Load()} }

// fail has every call fail from now on; nil mends the store.
func (s *storage) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err
}

// last waits for the n-th recorded exchange and returns it.
func (p *proxy) last(n int) tenants.Exchange {
	p.t.Helper()
	for {
		p.store.mu.Lock()
		if len(p.store.exchanges) >= n {
			defer p.store.mu.Unlock()
			return byArrival(p.store.exchanges)[n-1]
		}
		p.store.mu.Unlock()
		select {
		case <-p.store.recorded:
		case <-time.After(patience):
			p.t.Fatalf("exchange %d is not recorded", n)
		}
	}
}

// byArrival sorts exchanges as their requests arrived, because the recorder may store two of them the other way round.
func byArrival(exchanges []tenants.Exchange) []tenants.Exchange {
	return slices.SortedStableFunc(slices.Values(exchanges), func(a, b tenants.Exchange) int { return a.At.Compare(b.At) })
}

// logged is a log that may be written to while a test reads it.
type logged struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed at the next write; nil while no test waits
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written != nil {
		close(l.written)
		l.written = nil
	}
	return l.text.Write(p)
}

// holds waits until the log holds a text, and reports whether it came: an exchange is logged after it is recorded.
func (l *logged) holds(text string) bool {
	late := time.After(patience)
	for {
		l.mu.Lock()
		if strings.Contains(l.text.String(), text) {
			l.mu.Unlock()
			return true
		}
		if l.written == nil {
			l.written = make(chan struct{})
		}
		written := l.written
		l.mu.Unlock()
		select {
		case <-written:
		case <-late:
			return false
		}
	}
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// setup starts a proxy before a provider.
func setup(t testing.TB, provider http.HandlerFunc) *proxy {
	t.Helper()
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	return setupAt(t, server.URL)
}

// setupAt starts a proxy before the provider at an address, with more modules in
// front of those that it has.
func setupAt(t testing.TB, provider string, more ...pipeline.Module) *proxy {
	t.Helper()
	p := &proxy{t: t, provider: provider, memory: &memory{Memory: session.NewMemory()}, log: &logged{}}
	p.store = &storage{workspace: tenants.WorkspaceID(uuid.MustParse("5eed0000-0000-4000-8000-000000000001")), windows: map[string]int{}, recorded: make(chan struct{}, 100_000)}
	for _, name := range []tenants.Provider{tenants.ProviderAnthropic, tenants.ProviderOpenAI} {
		p.store.keys = append(p.store.keys, tenants.ProviderKey{ID: uuid.New(), Provider: name, Name: string(name), BaseURL: provider, ProviderKeySecret: tenants.ProviderKeySecret{Sealed: []byte(providerKey)}})
	}
	settings, err := proxysettings.New(p.store, p.store, "ipc", true)
	if err != nil {
		t.Fatal(err)
	}
	settings.WithBudgets(p.store.Budgets).WithPrices(p.store.ModelPrices)
	metrics := NewMetrics(prometheus.NewRegistry())
	log := slog.New(slog.NewJSONHandler(p.log, nil))
	records := recorder.New(p.store, p.memory, p.store, archivetest.Keys(), metrics.Recorded, log)
	records.Start()
	t.Cleanup(records.Stop)
	client := upstream.New(true)
	t.Cleanup(client.Close)
	p.Server = &Server{
		Gate:    Gate{Keys: p.store, Settings: settings, Limits: limits.New(limits.Config{Spend: p.store.Spend})},
		Records: Records{Recorder: records, Metrics: metrics, Log: log, Now: time.Now},
		Prompts: newWriter(t, p.memory, more...), Upstream: client,
	}
	e := echo.New()
	p.Register(e)
	front := httptest.NewServer(e)
	t.Cleanup(front.Close)
	p.url = front.URL
	return p
}

func newWriter(t testing.TB, store session.Store, more ...pipeline.Module) *prompt.Writer {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	var past compactionbridge.Past
	switch kept := store.(type) {
	case *session.Memory:
		past = compactionbridge.Past{Lanes: kept, Originals: session.MemoryArchive{Memory: kept}}
	case *memory:
		past = compactionbridge.Past{Lanes: kept.Memory, Originals: session.MemoryArchive{Memory: kept.Memory}}
	}
	writer, err := prompt.NewWriter(store, counter, pipeline.NewChain(append(more, modules.All(counter, modules.Memory{Past: past})...)...).WithDeadline(patience))
	if err != nil {
		t.Fatal(err)
	}
	return writer
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   []byte
	broken error // the answer ended before its end
}

// send sends a request with the test's key and reads the whole answer.
func (p *proxy) send(method, path, body string, header ...string) answer {
	p.t.Helper()
	response := p.open(p.t.Context(), method, path, body, header...)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return answer{status: response.StatusCode, header: response.Header, body: content, broken: err}
}

// open sends a request and returns its answer as soon as it begins.
func (p *proxy) open(ctx context.Context, method, path, body string, header ...string) *http.Response {
	p.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+testKey)
	request.Header.Set("Accept-Encoding", "identity")
	if strings.HasPrefix(path, messagesPath) {
		request.Header.Set("Anthropic-Version", "2023-06-01")
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	return response
}

// toolSession returns a body of a conversation of n turns, each with a tool's
// result of words.
func toolSession(model string, n, words int) string {
	messages := []map[string]any{{"role": "user", "content": "Do it all."}}
	for i := range n {
		id := fmt.Sprintf("toolu_%d", i)
		messages = append(messages,
			map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": id, "name": "Bash", "input": map[string]any{"command": fmt.Sprint("step ", i)}}}},
			map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": strings.Repeat(fmt.Sprintf("word%d ", i), words)}}})
	}
	body, err := json.Marshal(map[string]any{"model": model, "max_tokens": 1000, "messages": messages})
	if err != nil {
		panic(err) // it holds nothing that cannot be encoded
	}
	return string(body)
}

var errDown = errors.New("connection refused")

// chatSession is toolSession for Chat Completions.
func chatSession(n, words int) string {
	messages := []string{`{"role":"user","content":"Do it all."}`}
	for i := range n {
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"bash","arguments":"{\"command\":\"step %d\"}"}}]}`, i, i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%q}`, i, strings.Repeat(fmt.Sprintf("word%d ", i), words)))
	}
	return fmt.Sprintf(`{"model":"gpt-5.5","max_completion_tokens":1000,"messages":[%s]}`, strings.Join(messages, ","))
}

// responsesSession is toolSession for Responses, of 30 turns.
func responsesSession(words int) string {
	items := []string{`{"role":"user","content":"Do it all."}`}
	for i := range 30 {
		items = append(items,
			fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"bash","arguments":"{\"command\":\"step %d\"}"}`, i, i),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":%q}`, i, strings.Repeat(fmt.Sprintf("word%d ", i), words)))
	}
	return fmt.Sprintf(`{"model":"gpt-5.5","max_output_tokens":1000,"store":false,"input":[%s]}`, strings.Join(items, ","))
}

// gzipped returns a text in gzip.
func gzipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	if _, err := io.WriteString(writer, text); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// flusher writes a stream in gzip, every write to its end.
type flusher struct {
	encoder *gzip.Writer
	control *http.ResponseController
}

func newFlusher(w http.ResponseWriter) flusher {
	return flusher{encoder: gzip.NewWriter(w), control: http.NewResponseController(w)}
}

func (f flusher) write(text string) {
	_, _ = io.WriteString(f.encoder, text)
	_ = f.encoder.Flush()
	_ = f.control.Flush()
}

// ignoreCounted is a tap that counts what it is given.
type ignoreCounted struct {
	ignore

	read int
}

func (i *ignoreCounted) Write(p []byte) (int, error) {
	i.read += len(p)
	return len(p), nil
}
