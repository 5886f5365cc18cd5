package manage_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
)

// asked is a request that was refused by the provider, with everything that can be
// known of one.
func (w *tenant) asked(t *testing.T) tenants.Exchange {
	t.Helper()
	exchange := tenants.Exchange{
		ID: uuid.Must(uuid.NewV7()), Workspace: w.workspace, At: time.Now().UTC().Truncate(time.Microsecond),
		Request: tenants.ExchangeRequest{
			Session: w.session, Lane: w.lane, APIKey: uuid.MustParse(w.keyID), Endpoint: "/v1/messages",
			Model: "=cmd|'/c calc'!A0", Client: "@codex", Class: "main", Tags: tenants.Tags{"team": "+search"},
		},
		Answer: tenants.ExchangeAnswer{
			Provider: tenants.ProviderAnthropic, ProviderKey: uuid.MustParse(w.providerKey), Status: 529,
			ErrorFrom: "provider", ErrorType: "overloaded_error", Attempts: 1,
			Signed: map[string]string{"Session-Source": "lineage"},
		},
		Prompt: tenants.ExchangePrompt{
			Compression: "none",
			Report:      []byte(`{"compression":"none","modules":[{"name":"ipc","outcome":"noop"},{"name":"patterns","outcome":"applied"}]}`),
		},
		Cost:   tenants.ExchangeCost{NetMicroUSD: -1500},
		Tokens: tenants.ExchangeTokens{MissCause: "ttl_expiry", MissedTokens: 9},
		Times:  tenants.ExchangeTimes{Overhead: 1500 * time.Microsecond},
	}
	key, err := w.archiveKeys.Key(t.Context(), w.workspace)
	if err != nil {
		t.Fatal(err)
	}
	exchange.Answer.ErrorText = key.SealError(exchange.ID, []byte("Overloaded: a private question"))
	if err := w.db.DB.Exchanges.RecordExchanges(t.Context(), w.workspace, []tenants.Exchange{exchange}); err != nil {
		t.Fatal(err)
	}
	return exchange
}

func TestRequestsAreNarrowedAsThePageNarrowsThem(t *testing.T) {
	t.Parallel()
	a := setup(t).tenant(t, "ant")
	one := a.asked(t)
	for query, want := range map[string]int{
		"": 2, "tag=team%3D%2Bsearch": 1, "tag=team%3Dother": 0, "status=5xx": 1, "status=2xx": 1, "error_from=provider": 1, "error_from=proxy": 0,
		"miss=ttl_expiry": 1, "module=patterns": 1, "module=patterns:applied&status=5xx": 1, "module=ipc:applied": 0,
		"client=%40codex": 1, "model=" + url.QueryEscape(one.Request.Model): 1, "key=" + a.keyID: 2, "key=" + uuid.NewString(): 0,
		"id=" + one.ID.String(): 1, "id=" + one.ID.String()[:13]: 1, "session=" + a.session.String(): 2, "session=" + uuid.NewString(): 0,
	} {
		var page struct {
			Data []struct {
				ID      uuid.UUID         `json:"id"`
				Tags    map[string]string `json:"tags"`
				Modules []struct{ Name, Outcome string }
			}
			Next *string `json:"next_cursor"`
		}
		answer := a.send(t, http.MethodGet, "/requests?"+query, "")
		answer.want(t, http.StatusOK)
		answer.decode(t, &page)
		if len(page.Data) != want || page.Next != nil {
			t.Errorf("%s: %d requests, next %v, want %d", query, len(page.Data), page.Next, want)
		}
		if want == 1 && page.Data[0].ID == one.ID && (page.Data[0].Tags["team"] != "+search" || len(page.Data[0].Modules) != 2 || page.Data[0].Modules[1].Outcome != "applied") {
			t.Errorf("%s: %+v", query, page.Data[0])
		}
	}
	for query, field := range map[string]string{
		"id=x": "id", "session=x": "session", "key=x": "key", "status=529": "status", "error_from=x": "error_from", "tag=x": "tag",
		"tag=a%3D1&tag=a%3D2": "tag", "from=x": "from", "unknown=1": "unknown", "cursor=x": "cursor",
		strings.Repeat("tag=a%3D1&", 11): "tag",
	} {
		answer := a.send(t, http.MethodGet, "/requests?"+query, "")
		if answer.status != http.StatusUnprocessableEntity && answer.status != http.StatusBadRequest || answer.field(t) != field {
			t.Errorf("%s: status %d, field %q: %s", query, answer.status, answer.field(t), answer.body)
		}
	}
}

// What the provider said is answered to who may read what was said in the session.
func TestProvidersErrorIsAnsweredToWhoMayReadTheSession(t *testing.T) {
	t.Parallel()
	a := setup(t).tenant(t, "ant")
	path := "/requests/" + a.asked(t).ID.String()
	for role, may := range map[tenants.Role]bool{tenants.Admin: true, tenants.Billing: false} {
		answer := a.colleague(t, role).send(t, http.MethodGet, path, "")
		answer.want(t, http.StatusOK)
		if strings.Contains(string(answer.body), "a private question") != may {
			t.Errorf("%s: %s", role, answer.body)
		}
	}
	answer := a.sendWith(t, a.read, http.MethodGet, path, "")
	for _, part := range []string{`"error_text":"Overloaded: a private question"`, `"X-Palimpsest-Session-Source":"lineage"`, `"class":"main"`, `"provider_key":"` + a.providerKey} {
		if !strings.Contains(string(answer.body), part) {
			t.Errorf("the answer does not hold %s: %s", part, answer.body)
		}
	}
	if list := a.send(t, http.MethodGet, "/requests", ""); strings.Contains(string(list.body), "private question") || strings.Contains(string(list.body), "error_text") {
		t.Errorf("the list holds it: %s", list.body)
	}
	// With the session it is gone.
	a.send(t, http.MethodDelete, "/sessions/"+a.session.String(), "").want(t, http.StatusNoContent)
	if answer := a.send(t, http.MethodGet, path, ""); answer.status != http.StatusOK || strings.Contains(string(answer.body), "private question") {
		t.Errorf("after its session was deleted: %s", answer.body)
	}
}

func TestRequestsAreDownloadedWithoutFormulas(t *testing.T) {
	t.Parallel()
	a := setup(t).tenant(t, "ant")
	one := a.asked(t)
	answer := a.send(t, http.MethodGet, "/requests.csv?status=5xx", "")
	answer.want(t, http.StatusOK)
	rows, err := csv.NewReader(strings.NewReader(string(answer.body))).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	cell := func(name string) string { return rows[1][slices.Index(rows[0], name)] }
	for name, want := range map[string]string{
		"id": one.ID.String(), "model": "'" + one.Request.Model, "client": "'@codex", "tags": "team=+search", "modules": "ipc:noop patterns:applied",
		"net_usd": "-0.001500", "overhead_ms": "1.5", "status": "529", "session": a.session.String(), "at": one.At.Format(time.RFC3339Nano),
	} {
		if cell(name) != want {
			t.Errorf("%s is %q, want %q", name, cell(name), want)
		}
	}
	for name, want := range map[string]string{
		echo.HeaderContentType: "text/csv; charset=utf-8", echo.HeaderCacheControl: "private, no-store", echo.HeaderXContentTypeOptions: "nosniff",
	} {
		if got := answer.header.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if answer := a.send(t, http.MethodGet, "/requests.csv?limit=3", ""); answer.status == http.StatusOK {
		t.Error("a download takes a limit")
	}
}

// A download holds all pages, and also those behind a page with nothing on it.
func TestADownloadGoesThroughAllPages(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	a := setup(t).tenant(t, "ant")
	dbtest.FillExchanges(t, a.db.Owner(t), a.workspace, 21_000)
	for query, want := range map[string]int{"module=patterns:applied": 21, "client=client-0&module=ipc": 6986, "model=rare": 42} {
		answer := a.send(t, http.MethodGet, "/requests.csv?"+query, "")
		rows, err := csv.NewReader(strings.NewReader(string(answer.body))).ReadAll()
		if err != nil || len(rows)-1 != want {
			t.Errorf("%s: %d rows, %v, want %d", query, len(rows)-1, err, want)
			continue
		}
		ids := map[string]bool{}
		for _, row := range rows[1:] {
			ids[row[1]] = true
		}
		if len(ids) != want {
			t.Errorf("%s: %s", query, fmt.Sprint(len(ids), " different"))
		}
	}
}
