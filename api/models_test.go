package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/tenants"
)

// only leaves the workspace the key of one provider.
func (p *proxy) only(provider tenants.Provider) {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	for _, key := range p.store.keys {
		if key.Provider == provider {
			p.store.keys = []tenants.ProviderKey{key}
			return
		}
	}
}

// shape names the dialect that a list of models, or one model, is in.
func shape(t *testing.T, body []byte) string {
	t.Helper()
	var list struct {
		Object  *string                      `json:"object"`
		HasMore *bool                        `json:"has_more"`
		Type    *string                      `json:"type"`
		Data    []map[string]json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatalf("%v in %.200s", err, body)
	}
	switch {
	case list.Data != nil && len(list.Data) == 0:
		return "empty"
	case list.HasMore != nil && string(list.Data[0]["type"]) == `"model"` && len(list.Data[0]["display_name"]) > 2:
		return "anthropic list"
	case list.Object != nil && *list.Object == "list" && string(list.Data[0]["object"]) == `"model"`:
		return "openai list"
	case list.Type != nil && *list.Type == "model":
		return "anthropic model"
	case list.Object != nil && *list.Object == "model":
		return "openai model"
	default:
		return "no shape"
	}
}

// W9: the list has the shape of the client's dialect, whichever provider's it is.
func TestModelsHaveTheShapeThatIsAskedFor(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	claude, gpt := "claude-opus-5-5", "gpt-5.5"
	for _, test := range []struct {
		only  tenants.Provider
		path  string
		name  string
		want  string
		holds string
	}{
		{"", modelsPath, "2023-06-01", "anthropic list", claude},
		{"", modelsPath + "?limit=1000", "2026-10-21", "anthropic list", claude},
		{"", "/models", "", "openai list", gpt},
		{"", "/anthropic" + modelsPath, "2023-06-01", "anthropic list", claude},
		{"", modelsPath + "/" + claude, "2023-06-01", "anthropic model", claude},
		{"", modelsPath + "/" + gpt, "", "openai model", gpt},
		{tenants.ProviderOpenAI, modelsPath, "2023-06-01", "anthropic list", gpt},
		{tenants.ProviderOpenAI, modelsPath + "/" + gpt, "2023-06-01", "anthropic model", gpt},
		{tenants.ProviderAnthropic, modelsPath, "", "openai list", claude},
		{tenants.ProviderAnthropic, modelsPath + "/" + claude, "", "openai model", claude},
	} {
		p := setupAt(t, double.URL)
		if test.only != "" {
			p.only(test.only)
		}
		header := []string{}
		if test.name != "" {
			header = []string{"Anthropic-Version", test.name}
		}
		got := p.send(http.MethodGet, test.path, "", header...)
		if got.status != http.StatusOK || shape(t, got.body) != test.want || !strings.Contains(string(got.body), `"`+test.holds+`"`) {
			t.Errorf("%s of %q with %q: status %d, %s: %.300s", test.path, test.only, test.name, got.status, shape(t, got.body), got.body)
		}
		if got.header.Get("Content-Type") != "application/json" || got.header.Get("Location") != "" {
			t.Errorf("%s: headers %v", test.path, got.header)
		}
	}
}

// W1, W9: the provider gets its own key and its own version header.
func TestModelsAreAskedForWithTheProvidersKey(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{Key: providerKey})
	p := setupAt(t, double.URL)
	p.only(tenants.ProviderAnthropic)
	if got := p.send(http.MethodGet, modelsPath, ""); got.status != http.StatusOK {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	last, _ := double.Last()
	if last.Header.Get("X-Api-Key") != providerKey || last.Header.Get("Anthropic-Version") == "" || strings.Contains(fmt.Sprint(last.Header), testKey) || last.Path != modelsPath+"?limit=1000" {
		t.Errorf("%s with %v", last.Path, last.Header)
	}
}

// A list is asked for once a minute, however many want it at once.
func TestListOfModelsIsRemembered(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	release := make(chan struct{})
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		<-release
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
	})
	clock := &clock{at: time.Now()}
	p.Now = clock.now

	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			if got := p.send(http.MethodGet, modelsPath, ""); got.status != http.StatusOK {
				t.Errorf("status %d", got.status)
			}
		})
	}
	close(release)
	clients.Wait()
	first := asked.Load()
	clock.advance(59 * time.Second)
	got := p.send(http.MethodGet, modelsPath, "")
	if asked.Load() != first || got.header.Get("Age") != "59" {
		t.Errorf("asked %d times, then %d; age %s", first, asked.Load(), got.header.Get("Age"))
	}
	p.send(http.MethodGet, modelsPath, "", "OpenAI-Organization", "another")
	if asked.Load() != first+1 {
		t.Error("another organization is answered from memory")
	}
	clock.advance(2 * time.Second)
	p.send(http.MethodGet, modelsPath, "")
	if asked.Load() != first+2 {
		t.Errorf("after a minute: asked %d times, want %d", asked.Load(), first+2)
	}
}

// clock is a clock that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// W9: a provider that does not answer is not waited for; what it said before holds, and
// where it said nothing the error says why.
func TestSilentProviderOfModelsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	var silent atomic.Bool
	gone := make(chan struct{})
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		if silent.Load() {
			<-r.Context().Done()
			gone <- struct{}{}
			return
		}
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
	})
	clock := &clock{at: time.Now()}
	p.Now = clock.now
	p.send(http.MethodGet, modelsPath, "")
	silent.Store(true)
	clock.advance(2 * modelsAge)
	for query, want := range map[string]int{"": http.StatusOK, "?other=1": http.StatusBadGateway} {
		if got := p.send(http.MethodGet, modelsPath+query, ""); got.status != want {
			t.Errorf("%q: status %d: %s", query, got.status, got.body)
		}
		<-gone // no one is left waiting
	}
}

// W9: a provider that does not answer costs less than three seconds, whether or not it
// said something before.
func TestSilentProviderOfModelsCostsLessThanThreeSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lists, old := &modelLists{}, modelsQuestion{path: "old"}
		lists.store(old, modelsAnswer{status: http.StatusOK, at: time.Now().Add(-2 * modelsAge)})
		silent := func(ctx context.Context) (modelsAnswer, error) {
			<-ctx.Done()
			return modelsAnswer{}, context.Cause(ctx)
		}
		for question, want := range map[modelsQuestion]error{old: nil, {path: "new"}: errModelsLate} {
			began := time.Now()
			_, err := lists.get(t.Context(), question, time.Now, silent)
			if took := time.Since(began); !errors.Is(err, want) || took >= 3*time.Second {
				t.Errorf("%s: %v after %s, want %v", question.path, err, took, want)
			}
		}
	})
}

// Errors pass through where nothing is known; where something is, it holds.
func TestProvidersErrorAboutModelsPasses(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	status.Store(http.StatusUnauthorized)
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "9")
		w.WriteHeader(int(status.Load()))
		_, _ = fmt.Fprintf(w, `{"status":%d, "data":[]}`, status.Load())
	})
	clock := &clock{at: time.Now()}
	p.Now = clock.now
	for _, code := range []int32{401, 429, 500} {
		status.Store(code)
		got := p.send(http.MethodGet, modelsPath, "")
		if got.status != int(code) || string(got.body) != fmt.Sprintf(`{"status":%d, "data":[]}`, code) || got.header.Get("Retry-After") != "9" || got.header.Get("X-Palimpsest-Error-Source") != "provider" {
			t.Errorf("%d: status %d, %v: %s", code, got.status, got.header, got.body)
		}
	}
	status.Store(200)
	p.send(http.MethodGet, modelsPath, "")
	clock.advance(2 * modelsAge)
	for code, want := range map[int32]int{429: 200, 529: 200, 401: 401} {
		status.Store(code)
		if got := p.send(http.MethodGet, modelsPath, ""); got.status != want {
			t.Errorf("provider answers %d after a list was known: status %d, want %d", code, got.status, want)
		}
	}
}

func TestModelsOfAnotherShapeAreRead(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"data":[]}`: `{"data":[],"has_more":false,"first_id":null,"last_id":null}`,
		`{"data":[{"id":"a","created":1},{"id":"b"}]}`: `{"data":[{"type":"model","id":"a","display_name":"a","created_at":"1970-01-01T00:00:01Z"},{"type":"model","id":"b","display_name":"b","created_at":"1970-01-01T00:00:00Z"}],"has_more":false,"first_id":"a","last_id":"b"}`,
		`{"id":"a","created":1}`:                       `{"type":"model","id":"a","display_name":"a","created_at":"1970-01-01T00:00:01Z"}`,
	} {
		if got, err := modelsAs(tenants.ProviderAnthropic, tenants.ProviderOpenAI, []byte(body)); err != nil || string(got) != want {
			t.Errorf("%s: %s (%v), want %s", body, got, err, want)
		}
	}
	for _, body := range []string{"", "<html>", "[]", "{}", `{"data":"many"}`, `{"data":[1]}`} {
		if got, err := modelsAs(tenants.ProviderOpenAI, tenants.ProviderAnthropic, []byte(body)); err == nil {
			t.Errorf("%q is read as %s", body, got)
		}
	}
}

func TestKnownListsAreBounded(t *testing.T) {
	t.Parallel()
	lists := &modelLists{}
	for i := range knownLists + 10 {
		lists.store(modelsQuestion{path: strconv.Itoa(i)}, modelsAnswer{})
	}
	if len(lists.known) != knownLists {
		t.Errorf("%d lists are kept, want %d", len(lists.known), knownLists)
	}
}
