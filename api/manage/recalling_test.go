package manage_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api"
	"palimpsest/api/recall"
	"palimpsest/pipeline/wire/formats"
)

// recalling is the MCP server over the same archive, as API keys reach it.
type recalling struct{ url string }

// recalled has an entry for each tool of the MCP server: how it is asked for what is said in a session.
func recalled() map[string]func(of *tenant) map[string]any {
	return map[string]func(of *tenant) map[string]any{
		"recall_search": func(*tenant) map[string]any { return map[string]any{"query": "question", "limit": 25} },
		"recall_get": func(of *tenant) map[string]any {
			return map[string]any{"pointer": "#0", "session": of.session.String()}
		},
	}
}

func (p *product) newRecall(t *testing.T) recalling {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	proxy := &api.Server{Gate: api.Gate{Keys: p.keys}, Records: api.Records{Metrics: api.NewMetrics(prometheus.NewRegistry()), Log: log, Now: time.Now}}
	proxy.Recall = recall.New(recall.Config{
		Readers: p.db.DB.Data, Lanes: p.sessions.Browser(), Archive: p.archive, Searcher: p.index, Behind: p.index.Behind, Codecs: formats.ByFormat(),
		PublicURL: "https://palimpsest.example", Log: log, Now: time.Now, Observe: proxy.Recalled,
	})
	e := echo.New()
	proxy.Register(e)
	front := httptest.NewServer(e)
	t.Cleanup(front.Close)
	return recalling{front.URL + "/mcp"}
}

// call sends a request with an API key on behalf of an end user, "" for none, and returns what is answered.
func (r recalling) call(t *testing.T, secret, user, method string, params map[string]any) reply {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Header.Set("Accept", "application/json, text/event-stream")
	if user != "" {
		request.Header.Set("X-Palimpsest-User", user)
	}
	return exchange(t, request)
}

// checkEntries fails the test for a tool without an entry, and for an entry without a tool.
func (r recalling) checkEntries(t *testing.T, of *tenant) {
	t.Helper()
	_, secret := of.createKey(t, "recall")
	var listed struct {
		Result struct{ Tools []struct{ Name string } }
	}
	answer := r.call(t, secret, "", "tools/list", map[string]any{})
	answer.decode(t, &listed)
	entries := recalled()
	for _, tool := range listed.Result.Tools {
		if entries[tool.Name] == nil {
			t.Errorf("the tool %s has no entry", tool.Name)
		}
		delete(entries, tool.Name)
	}
	if len(entries) > 0 || len(listed.Result.Tools) == 0 {
		t.Errorf("no such tools: %v, in %s", entries, answer.body)
	}
}

// check asks every tool for what is said in a session, also on behalf of its end user and of another
// one, and returns how many cells that were.
func (r recalling) check(t *testing.T, who readAs, policy allow, of, other *tenant) (cells int) {
	t.Helper()
	if who.recalls == "" {
		return 0
	}
	for tool, arguments := range recalled() {
		for _, user := range []string{"", of.speaker(), other.speaker()} {
			cells++
			may := who.mayRecall && who.reads(policy, of.keyID) && slices.Contains([]string{"", of.speaker()}, user)
			answer := r.call(t, who.recalls, user, "tools/call", map[string]any{"name": tool, "arguments": arguments(of)})
			if strings.Contains(string(answer.body), of.said()) != may {
				t.Errorf("%s as %s for %q under %v: status %d, may read: %t: %.300s", tool, who.name, user, policy, answer.status, may, answer.body)
			}
		}
	}
	return cells
}
