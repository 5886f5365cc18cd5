package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/tenants/identity"
)

const (
	smallMessage = `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`
	smallChat    = `{"model":"gpt-5.5","messages":[{"role":"user","content":"hi"}]}`
)

// asks sends a request with headers of its own only and returns the whole answer.
func (w *tenant) asks(method, path, body string, header http.Header) (*http.Response, []byte) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.url(path), strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for name, values := range header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	return w.do(request)
}

// W1, W2, W3: the key is taken wherever clients put it, one valid one is enough,
// and it goes nowhere: not to the provider, not to the log.
func TestTheWorkspacesKeyIsTakenAnywhereAndGoesNowhere(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{})
	w := i.tenant("keys")
	for name, header := range map[string]http.Header{
		"x-api-key":                {"X-Api-Key": {w.key}},                 // W1
		"bearer":                   {"Authorization": {"Bearer " + w.key}}, // W2
		"both":                     {"X-Api-Key": {w.key}, "Authorization": {"Bearer " + w.key}},
		"another in the other":     {"X-Api-Key": {"sk-ant-someone"}, "Authorization": {"Bearer " + w.key}}, // W3
		"another in the other way": {"X-Api-Key": {w.key}, "Authorization": {"Bearer sk-ant-someone"}},
		"api-key":                  {"Api-Key": {w.key}},
	} {
		header.Set("Anthropic-Version", "2026-10-21")
		header.Set("X-Gateway-Auth", "Bearer "+w.key) // and where nobody looks for it
		for path, body := range map[string]string{"/v1/messages": smallMessage, "/v1/chat/completions": smallChat, "/v1/embeddings": `{"model":"text-embedding-3-small","input":"a"}`} {
			response, answer := w.asks(http.MethodPost, path+"?key="+w.key, body, header)
			if response.StatusCode != http.StatusOK {
				t.Errorf("%s to %s: status %d: %s", name, path, response.StatusCode, answer)
			}
			last, _ := i.double.Last()
			if seen := fmt.Sprint(last.Header, last.Path, string(last.Body)); strings.Contains(seen, w.key) || strings.Contains(seen, "someone") || !strings.Contains(seen, providerKey) {
				t.Errorf("%s to %s: the provider sees %s", name, path, seen)
			}
			if path == "/v1/messages" && (last.Header.Get("X-Api-Key") != providerKey || last.Header.Get("Authorization") != "") {
				t.Errorf("%s: x-api-key %q, authorization %q", name, last.Header.Get("X-Api-Key"), last.Header.Get("Authorization"))
			}
		}
	}
	i.shutdown()
	if log := i.log.String(); strings.Contains(log, w.key) || strings.Contains(log, providerKey) {
		t.Error("a key is in the log")
	}
}

// W4: an invalid key is refused in the words of each dialect.
func TestWrongKeyIsRefusedInEachDialect(t *testing.T) {
	t.Parallel()
	w := start(t, providerdouble.Config{}).tenant("wrong-key")
	mistyped := w.key[:len(w.key)-1] + "x"
	if mistyped == w.key {
		mistyped = w.key[:len(w.key)-1] + "y"
	}
	elsewhere, _, _ := identity.GenerateKey() // of another installation
	for _, key := range []string{mistyped, elsewhere, "sk-ant-someone", ""} {
		w.refuses(key)
	}
}

// refuses checks that a key is refused at every endpoint in its dialect's words.
func (w *tenant) refuses(key string) {
	w.t.Helper()
	for path, says := range map[string]string{
		"/v1/messages": `{"type":"error","error":{"type":"authentication_error"`, "/v1/messages/count_tokens": `"authentication_error"`,
		"/v1/chat/completions": `"code":"invalid_api_key"`, "/v1/responses": `"code":"invalid_api_key"`, "/v1/responses/compact": `"code":"invalid_api_key"`,
		"/v1/embeddings": `"code":"invalid_api_key"`,
	} {
		response, answer := w.asks(http.MethodPost, path, smallMessage, http.Header{"X-Api-Key": {key}})
		if response.StatusCode != http.StatusUnauthorized || !bytes.Contains(answer, []byte(says)) || response.Header.Get("X-Should-Retry") != "false" {
			w.t.Errorf("%s: status %d, x-should-retry %q: %s", path, response.StatusCode, response.Header.Get("X-Should-Retry"), answer)
		}
	}
	for dialect, says := range map[string]string{"2023-06-01": `"authentication_error"`, "": `"code":"invalid_api_key"`} {
		response, answer := w.asks(http.MethodGet, "/v1/models", "", http.Header{"Anthropic-Version": {dialect}, "X-Api-Key": {key}})
		if response.StatusCode != http.StatusUnauthorized || !bytes.Contains(answer, []byte(says)) || response.Header.Get("X-Should-Retry") != "false" {
			w.t.Errorf("models: status %d, x-should-retry %q: %s", response.StatusCode, response.Header.Get("X-Should-Retry"), answer)
		}
	}
}

// W5, W6, W7, W26: version, betas, query and body go along as they came, under
// every path that clients build.
func TestRequestsGoAlongAsTheyCame(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{})
	w := i.tenant("along")
	for path, want := range map[string]string{
		"/v1/messages?beta=true": "/v1/messages?beta=true", "/v1/v1/messages": "/v1/messages", "/messages?a=b&a=c": "/v1/messages?a=b&a=c", "/anthropic/v1/messages": "/v1/messages",
	} {
		for _, version := range []string{"2026-10-21", "2023-06-01"} { // W5
			header := http.Header{"X-Api-Key": {w.key}, "Anthropic-Version": {version}, "Anthropic-Beta": {"context-management-2025-06-27, nobody-knows-2027-01-01", "another-one"}, "X-Stainless-Retry-Count": {"0"}}
			response, answer := w.asks(http.MethodPost, path, smallMessage, header)
			last, _ := i.double.Last()
			if response.StatusCode != http.StatusOK || last.Path != want || response.Header.Get("X-Palimpsest-Session-Id") == "" { // W7
				t.Errorf("%s: status %d, provider sees %s: %s", path, response.StatusCode, last.Path, answer)
			}
			if string(last.Body) != smallMessage || last.Header.Get("Anthropic-Version") != version || last.Header.Get("X-Stainless-Retry-Count") != "0" {
				t.Errorf("%s: the provider gets %v: %s", path, last.Header, last.Body)
			}
			if betas := strings.Join(last.Header.Values("Anthropic-Beta"), "|"); betas != "context-management-2025-06-27, nobody-knows-2027-01-01|another-one" { // W6
				t.Errorf("%s: the provider gets the betas %s", path, betas)
			}
		}
	}
}

// W8, W12: what clients ask before they begin is answered, by no one else.
func TestWarmUpsAreAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{})
	w := i.tenant("warm")
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
	for _, test := range []struct {
		method, path string
		header       http.Header
		status       int
	}{
		{http.MethodHead, "/api/hello", nil, http.StatusOK}, // W8
		{http.MethodHead, "/v1/api/hello", http.Header{"X-Api-Key": {w.key}}, http.StatusOK},
		{http.MethodGet, "/v1/responses", upgrade, http.StatusUpgradeRequired},
		{http.MethodGet, "/responses?model=gpt-5.5", upgrade, http.StatusUpgradeRequired},
		{http.MethodGet, "/openai/v1/responses", upgrade, http.StatusUpgradeRequired},
	} {
		response, answer := w.asks(test.method, test.path, "", test.header)
		if response.StatusCode != test.status {
			t.Errorf("%s %s: status %d", test.method, test.path, response.StatusCode)
		}
		if test.status == http.StatusUpgradeRequired && (!json.Valid(answer) || response.Header.Get("X-Should-Retry") != "false") {
			t.Errorf("%s: %v %s", test.path, response.Header, answer)
		}
	}
	if asked := i.double.Requests(); len(asked) > 0 {
		t.Errorf("the provider was asked %d times", len(asked))
	}
}

// W9: both shapes of the list, from the whole program.
func TestModelsAreListedInBothShapes(t *testing.T) {
	t.Parallel()
	w := start(t, providerdouble.Config{}).tenant("models")
	for version, says := range map[string]string{"2023-06-01": `"has_more":false`, "": `"object":"list"`} {
		response, answer := w.asks(http.MethodGet, "/v1/models?limit=1000", "", http.Header{"X-Api-Key": {w.key}, "Anthropic-Version": {version}})
		if response.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(says)) || response.Request.URL.Path != "/v1/models" {
			t.Errorf("%q: status %d: %.300s", version, response.StatusCode, answer)
		}
	}
}

// W10: a compressed body is understood by the whole program.
func TestCompressedRequestIsAnswered(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{})
	w := i.tenant("gzip")
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = io.WriteString(writer, smallMessage)
	_ = writer.Close()
	response, answer := w.post("/v1/messages", packed.Bytes(), map[string]string{"Content-Encoding": "gzip"})
	last, _ := i.double.Last()
	if response.StatusCode != http.StatusOK || string(last.Body) != smallMessage || last.Header.Get("Content-Encoding") != "" || last.Header.Get("Content-Length") != strconv.Itoa(len(smallMessage)) {
		t.Errorf("status %d, provider gets %v %s: %s", response.StatusCode, last.Header, last.Body, answer)
	}
}

// W23, W24: refusals come back with every byte and header, and are not tried again.
func TestRefusalsComeBackByteForByte(t *testing.T) {
	t.Parallel()
	type refusal struct {
		status int
		header http.Header
		body   string
	}
	var next refusal
	asked := 0
	provider := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked++
		maps.Copy(out.Header(), next.header)
		out.WriteHeader(next.status)
		_, _ = io.WriteString(out, next.body)
	}))
	t.Cleanup(provider.Close)
	w := start(t, providerdouble.Config{}).tenant("refused")
	limits := http.Header{"Content-Type": {"application/json"}, "Request-Id": {"req_1"}, "Anthropic-Ratelimit-Tokens-Reset": {"2026-11-21T12:00:00Z"}, "Anthropic-Ratelimit-Unified-Status": {"rejected"}, "X-Should-Retry": {"true"},
		"X-Request-Id": {"req_2"}, "X-Ratelimit-Remaining-Tokens": {"0"}, "X-Ratelimit-Reset-Requests": {"6m0s"}, "Retry-After-Ms": {"900"}, "Openai-Processing-Ms": {"7"}, "Openai-Version": {"2020-10-01"}}
	for name, test := range map[string]refusal{
		"413":              {413, http.Header{"Content-Type": {"application/json"}}, `{ "type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`},
		"429":              {429, merged(limits, "Retry-After", "17"), `{"type":"error","error":{"type":"rate_limit_error","message":"…"},"request_id":"req_1"}` + "\n"},
		"429, spend cap":   {429, limits, `{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"ramp_limit_exceeded"}}}`}, // W24
		"529":              {529, limits, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
		"500":              {500, http.Header{"Content-Type": {"text/html"}, "X-Should-Retry": {"false"}}, "<html>\xff</html>"},
		"402":              {402, limits, `{"type":"error","error":{"type":"billing_error"}}`},
		"400, no overflow": {400, limits, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1: nothing about length"}}`},
	} {
		for path, body := range map[string]string{"/v1/messages": smallMessage, "/v1/chat/completions": smallChat, "/v1/responses": `{"model":"gpt-5.5","input":"hi"}`, "/v1/embeddings": `{"input":"a"}`} {
			next, asked = test, 0
			response, answer := w.post(path, []byte(body), map[string]string{"X-Palimpsest-Provider-Key": "sk-once", "X-Palimpsest-Base-Url": provider.URL})
			if response.StatusCode != test.status || string(answer) != test.body || asked != 1 {
				t.Errorf("%s, %s: status %d after %d attempts: %q", name, path, response.StatusCode, asked, answer)
			}
			for header := range merged(limits, "Retry-After", "") {
				if got, want := response.Header.Values(header), test.header.Values(header); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s, %s: %s is %q, want %q", name, path, header, got, want)
				}
			}
			if response.Header.Get("X-Palimpsest-Attempts") != "1" || response.Header.Get("X-Palimpsest-Error-Source") != "provider" {
				t.Errorf("%s, %s: headers %v", name, path, response.Header)
			}
		}
	}
}

func merged(header http.Header, name, value string) http.Header {
	header = header.Clone()
	header.Set(name, value)
	return header
}

// W22: the emergency pass of the whole program; what it archived is there, and the
// session goes on from it.
func TestEmergencyPassKeepsTheSessionAlive(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{Window: 30_000})
	w := i.tenant("emergency")
	body := generated(i.double, 120)
	header := map[string]string{"X-Palimpsest-Session-Id": "emergency", "X-Palimpsest-Target-Utilization": "0.95"}
	response, answer := w.post("/v1/messages", body, header)
	if response.StatusCode != http.StatusOK || response.Header.Get("X-Palimpsest-Compression") != "emergency" || response.Header.Get("X-Palimpsest-Attempts") != "2" {
		t.Fatalf("status %d, headers %v: %s", response.StatusCode, response.Header, answer)
	}
	if response, answer = w.post("/v1/messages", body, header); response.StatusCode != http.StatusOK || response.Header.Get("X-Palimpsest-Attempts") != "1" {
		t.Errorf("again: status %d, headers %v: %s", response.StatusCode, response.Header, answer)
	}
	if rejected := i.double.Rejected(); rejected != 1 {
		t.Errorf("%d requests were refused, want the first alone", rejected)
	}
}

// What a workspace sets for a model, and what is learned of one, holds at once and
// is listed.
func TestModelWindowsHoldInTheProxy(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{Window: 30_000, AllowUnknown: true})
	w := i.tenant("windows")
	window := func(model string) string {
		response, _ := w.post("/v1/messages", []byte(strings.Replace(smallMessage, "claude-sonnet-4-5", model, 1)), nil)
		return response.Header.Get("X-Palimpsest-Context-Window")
	}
	if got := window("claude-sonnet-4-5"); got != "199900" {
		t.Errorf("from the table: %s", got)
	}
	w.call(http.MethodPut, "/api/v1/models/windows/claude-sonnet-4-5", map[string]any{"window_tokens": 50_000}, http.StatusOK, nil)
	w.hears(func() bool { return window("claude-sonnet-4-5") == "49900" })
	w.call(http.MethodDelete, "/api/v1/models/windows/claude-sonnet-4-5", nil, http.StatusNoContent, nil)
	w.hears(func() bool { return window("claude-sonnet-4-5") == "199900" })

	if got := window("house-model"); got != "unknown" {
		t.Errorf("of an unknown model: %s", got)
	}
	long := bytes.Replace(generated(i.double, 120), []byte(`"claude-sonnet-4-5"`), []byte(`"house-model"`), 1)
	if response, answer := w.post("/v1/messages", long, nil); response.StatusCode != http.StatusOK {
		t.Errorf("status %d: %s", response.StatusCode, answer)
	}
	if got := window("house-model"); got != "29900" {
		t.Errorf("learnt: %s", got)
	}
	var list struct {
		Data []struct {
			Model  string
			Tokens int `json:"window_tokens"`
			Source string
		}
	}
	w.call(http.MethodGet, "/api/v1/models/windows", nil, http.StatusOK, &list)
	if len(list.Data) != 1 || list.Data[0].Model != "house-model" || list.Data[0].Tokens != 30_000 || list.Data[0].Source != "learnt" {
		t.Errorf("listed: %+v", list.Data)
	}
}

// until asks again and again until something holds that comes by itself, as long as a
// loaded machine may take.
func (i *instance) until(holds func() bool) {
	i.t.Helper()
	i.await(5*time.Minute, holds)
}

// hears is until for what comes with a notice, and without it by itself half a minute
// later.
func (w *tenant) hears(holds func() bool) {
	w.t.Helper()
	w.await(25*time.Second, holds)
}

func (i *instance) await(patience time.Duration, holds func() bool) {
	i.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for pause := 2 * time.Millisecond; !holds(); pause = min(2*pause, 100*time.Millisecond) { // asking costs, too
		select {
		case <-time.After(pause):
		case <-deadline.C:
			i.t.Fatal("what is waited for does not come")
		}
	}
}

// W25, S27: while the database is gone requests pass, also those of a session that only the
// database could know; when it is back, all are recorded in their sessions.
func TestDatabaseThatIsGoneStopsNoRequest(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{})
	w := i.tenant("outage")
	known := []byte(`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yes"},{"role":"user","content":"again"}]}`)
	strange := bytes.ReplaceAll(known, []byte("yes"), []byte("no"))
	session := func(body []byte) string {
		t.Helper()
		response, answer := w.post("/v1/messages", body, nil)
		last, _ := i.double.Last()
		if response.StatusCode != http.StatusOK || !bytes.Equal(last.Body, body) {
			t.Fatalf("status %d, provider gets %s: %s", response.StatusCode, last.Body, answer)
		}
		return response.Header.Get("X-Palimpsest-Session-Id")
	}
	before := session(known)
	i.allowConnections(false)
	w.until(func() bool { return strings.Contains(i.log.String(), "changes of other replicas are not heard") })
	if during := session(known); during == "" || during != before {
		t.Errorf("session %q, with the database %q", during, before)
	}
	assumed := session(strange)
	if assumed == "" || assumed == before {
		t.Errorf("a history that only the database could know has session %q, another one %q", assumed, before)
	}
	i.allowConnections(true)
	database, err := pgx.Connect(t.Context(), i.config.Storage.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close(context.WithoutCancel(t.Context()))
	w.until(func() bool {
		var recorded bool
		if err := database.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM sessions WHERE id = $1)", assumed).Scan(&recorded); err != nil {
			t.Fatal(err)
		}
		return recorded
	})
	if after := session(strange); after != assumed {
		t.Errorf("session %q, with the database away %q", after, assumed)
	}
	if after := session(known); after != before {
		t.Errorf("session %q, before %q", after, before)
	}
}

// allowConnections closes the program's database to everybody, or opens it again.
func (i *instance) allowConnections(allow bool) {
	i.t.Helper()
	config, err := pgx.ParseConfig(i.config.Storage.DatabaseURL)
	if err != nil {
		i.t.Fatal(err)
	}
	name := config.Database
	config.Database = "postgres"
	connection, err := pgx.ConnectConfig(i.t.Context(), config)
	if err != nil {
		i.t.Fatal(err)
	}
	defer connection.Close(context.WithoutCancel(i.t.Context()))
	if _, err := connection.Exec(i.t.Context(), fmt.Sprintf("ALTER DATABASE %s ALLOW_CONNECTIONS %t", pgx.Identifier{name}.Sanitize(), allow)); err != nil {
		i.t.Fatal(err)
	}
	if _, err := connection.Exec(i.t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name); err != nil {
		i.t.Fatal(err)
	}
}

// W14, W16, W17: through the whole program a stream is neither held back, nor
// mended where it ends early, nor left running when its client has gone.
func TestStreamsPassTheWholeProgram(t *testing.T) {
	t.Parallel()
	const event = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	next, gone := make(chan bool), make(chan struct{}, 1)
	provider := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		out.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(out)
		_ = control.Flush()
		for {
			select {
			case goOn := <-next:
				if !goOn {
					panic(http.ErrAbortHandler)
				}
				_, _ = io.WriteString(out, event)
				_ = control.Flush()
			case <-r.Context().Done():
				gone <- struct{}{}
				return
			}
		}
	}))
	t.Cleanup(provider.Close)
	w := start(t, providerdouble.Config{}).tenant("streams")
	open := func(ctx context.Context) io.ReadCloser {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url("/v1/messages"), strings.NewReader(strings.Replace(smallMessage, `"max_tokens"`, `"stream":true,"max_tokens"`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"X-Api-Key": {w.key}, "X-Palimpsest-Provider-Key": {"sk-once"}, "X-Palimpsest-Base-Url": {provider.URL}}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		return response.Body
	}
	pull := func(from io.Reader) {
		got := make([]byte, len(event))
		next <- true
		if _, err := io.ReadFull(from, got); err != nil || string(got) != event {
			t.Errorf("read %q (%v)", got, err)
		}
	}

	cut := open(t.Context())
	for range 20 {
		pull(cut) // W14: the next event is written once this one has been read
	}
	next <- false
	if rest, err := io.ReadAll(cut); len(rest) > 0 || !errors.Is(err, io.ErrUnexpectedEOF) { // W17
		t.Errorf("a stream that ended early ends with %q (%v)", rest, err)
	}
	_ = cut.Close()

	ctx, cancel := context.WithCancel(t.Context())
	left := open(ctx)
	pull(left)
	cancel()
	<-gone // W16
	_ = left.Close()
}
