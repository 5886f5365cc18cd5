package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/tenants"
)

// Two replicas look at the rules at once and both run jobs: a new key is told once, by a
// webhook that an owner has added on the dashboard.
func TestReplicasReportNewKeyOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var bodies []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, string(body))
	}))
	t.Cleanup(receiver.Close)
	i := start(t, providerdouble.Config{})
	w := i.tenant("northbeam")
	other := &instance{t: t, config: i.config, log: &syncBuffer{}, double: i.double}
	other.config.Storage.DataDir = t.TempDir()
	other.boot()

	form := url.Values{"kind": {"webhook"}, "name": {"on call"}, "url": {receiver.URL}, "rules": {string(tenants.AlertAccess)}, "on": {"yes"}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+i.program.addr()+"/settings/alerts/channels", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, cookie := range w.cookies {
		request.AddCookie(cookie)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK || !strings.Contains(string(page), "whsec_") {
		t.Fatalf("adding the channel: %d", response.StatusCode)
	}
	w.call(http.MethodPost, "/api/v1/keys", map[string]any{"name": "nightly", "scopes": []string{"proxy"}}, http.StatusCreated, nil)

	var passes sync.WaitGroup
	for _, replica := range []*program{i.program, other.program} {
		passes.Go(func() {
			if err := replica.sites[0].seams.work.Pass(t.Context(), "alerts"); err != nil {
				t.Error(err)
			}
		})
	}
	passes.Wait()
	var log struct {
		Data []struct {
			Title string `json:"title"`
			State string `json:"state"`
		} `json:"data"`
	}
	w.until(func() bool {
		w.call(http.MethodGet, "/api/v1/alerts/deliveries", nil, http.StatusOK, &log)
		return len(log.Data) == 1 && log.Data[0].State == "delivered"
	})
	mu.Lock()
	defer mu.Unlock()
	if len(bodies) != 1 || !strings.Contains(bodies[0], `"type":"alert.access"`) || !strings.Contains(bodies[0], "New API key: nightly") {
		t.Errorf("the receiver got %q", bodies)
	}
}
