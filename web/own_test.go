package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// ownPages are the pages that a member may open, at one or several paths each.
func ownPages(product *webtest.Product, of *tenant) []string {
	replace := strings.NewReplacer(":id", of.session, ":request", of.request)
	texts, reaches := texts(), reaches()
	var pages []string
	for _, route := range product.Routes {
		name := route.Method + " " + route.Path
		try := reaches[name]
		if route.Method != http.MethodGet || !strings.Contains(try.roles, "m") || try.streams {
			continue
		}
		path := route.Path
		if try.path != nil {
			path = try.path(of)
		}
		pages = append(pages, path)
		for _, more := range texts[name].paths {
			pages = append(pages, replace.Replace(more))
		}
	}
	return append(pages, "/sessions?show=problems", "/sessions?show=compressed", "/requests?status=4xx", "/requests?sort=cost",
		"/overview?range=7d&by=key", "/overview?by=model", "/spend?by=key", "/spend?by=project", "/spend?by=client", "/spend?by=tag:team",
		"/overview/data.csv?card=totals", "/overview/data.csv?card=rows&by=key", "/spend/data.csv?by=key", "/jump?q=key", "/jump?q=wasp", "/jump?q=session")
}

// previews are the paths of forms that a member may send, and that only read.
func previews() []string {
	return []string{"/pipeline/preview", "/pipeline/preview?part=1", "/pipeline/preview/csv"}
}

// changing matches what differs between two loads of the same page: times and ids of elements.
func changing() *regexp.Regexp {
	return regexp.MustCompile(`<time[^>]*>[^<]*</time>|datetime="[^"]*"|Updated[^<]*|\d\d:\d\d(:\d\d)?|[0-9.]+ (s|ms|min) ago|just now|\b[0-9]+ (second|minute)s? ago`)
}

// overspend records requests of someone's API key that stand out in every figure and need attention.
func (of *tenant) overspend(t *testing.T, key uuid.UUID) {
	t.Helper()
	provider, session := uuid.MustParse(of.provider), uuid.MustParse(of.session)
	var exchanges []tenants.Exchange
	for i, compression := range []string{"epoch", "truncated", "unreachable", "none", "none", "none"} {
		exchange := tenants.Exchange{
			ID: uuid.Must(uuid.NewV7()), Workspace: of.Workspace.ID, At: time.Now().Add(-time.Minute),
			Request: tenants.ExchangeRequest{
				Session: session, APIKey: key, Endpoint: "/v1/messages", Model: "claude-sonnet-4-5", Client: "claude-code", Position: 3,
				Tags: tenants.Tags{"team": "wasps", "project": "nest"},
			},
			Answer: tenants.ExchangeAnswer{Provider: "anthropic", ProviderKey: provider, Attempts: 1, Status: http.StatusOK},
			Prompt: tenants.ExchangePrompt{Compression: compression, TokensBefore: 7_654_321, TokensAfter: 1_234_567, Reach: i == 0},
			Tokens: tenants.ExchangeTokens{Input: 1_234_567, CacheRead: 45_678, Output: 9_876, MissCause: "ttl_expiry", MissedTokens: 65_432},
			Cost:   tenants.ExchangeCost{CostMicroUSD: 7_777_770_000, NetMicroUSD: -3_333_330_000},
			Times:  tenants.ExchangeTimes{Overhead: time.Millisecond, TTFB: time.Second, Duration: 7 * time.Second},
		}
		if i > 3 {
			exchange.Answer.Status, exchange.Answer.ErrorFrom = []int{http.StatusUnauthorized, http.StatusTooManyRequests}[i-4], "provider"
		}
		exchanges = append(exchanges, exchange)
	}
	if err := of.DB.Exchanges.RecordExchanges(t.Context(), of.Workspace.ID, exchanges); err != nil {
		t.Fatal(err)
	}
	statement := `UPDATE sessions SET name = 'nest-of-wasps', cost_microusd = 7777770000, net_microusd = -3333330000, epochs = 2, model = 'claude-3-opus-20240229' WHERE workspace_id = $1 AND id = $2`
	if _, err := of.Database.Owner(t).Exec(t.Context(), statement, of.Workspace.ID, session); err != nil {
		t.Fatal(err)
	}
}

// S55: a member sees no figure, text or name of others anywhere: every page is the same whether or not a second
// member has sessions, requests and keys. Owners do see them.
func TestMemberSeesNothingOfOthers(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	owner := newTenant(t, product, "ant")
	bees, wasps := *owner, *owner
	bee, wasp := owner.Colleague(tenants.Regular), owner.Colleague(tenants.Regular)
	bees.speak(t, bee, "bee")
	pages := ownPages(product, &bees)
	before := map[string]webtest.Page{}
	for _, path := range pages {
		before[path] = bee.Get(path)
	}
	preview := func(path string) webtest.Page {
		return bee.Post(path, bee.Get("/pipeline").Form("form[data-tuning]", "ipc.targetUtilization", "0.61")...)
	}
	for i := range 6 { // as many as a preview needs
		wasps.speak(t, wasp, "wasp"+strings.Repeat("s", i))
	}
	keys, err := product.DB.APIKeys.APIKeys(tenants.OwnWork(t.Context()), owner.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if key.Name == wasps.name {
			wasps.overspend(t, key.ID)
		}
	}

	volatile := changing()
	for _, path := range previews() { // nothing asked before, because the answer is remembered
		if page := preview(path); !page.Has(`[data-testid="sample"]`) && !strings.Contains(page.HTML, "prompts_micro_usd,,") {
			t.Errorf("%s is of the sessions of others: %.300s", path, page.HTML)
		}
	}
	for _, path := range pages {
		page := bee.Get(path)
		if was := before[path]; page.Status != was.Status || volatile.ReplaceAllString(page.HTML, "") != volatile.ReplaceAllString(was.HTML, "") {
			t.Errorf("%s changed for a member with what another did: %s", path, difference(volatile.ReplaceAllString(was.HTML, ""), volatile.ReplaceAllString(page.HTML, "")))
		}
	}
	for _, path := range ownPages(product, &wasps) {
		if _, same := before[path]; same {
			continue // compared above
		}
		page := bee.Get(path)
		for _, words := range []string{"wasp", "nest-of", "7,777", "7777", "3,333", "7654321", "7.6M"} {
			if holds(page, words) && !strings.Contains(path, words) {
				t.Errorf("%s shows a member %q", path, words)
			}
		}
		isTheirs := strings.HasPrefix(path, "/sessions/"+wasps.session) || strings.HasPrefix(path, "/requests/"+wasps.request)
		if isTheirs && page.Status != http.StatusNotFound {
			t.Errorf("%s of another member: status %d", path, page.Status)
		}
	}
	if page := owner.Get("/sessions"); !holds(page, "7,777") {
		t.Error("the owner's list of sessions does not show what the other's cost")
	}
	if page := owner.Get("/requests"); !holds(page, wasps.name) {
		t.Error("the owner's list of requests does not show the other key's name")
	}
}

// difference returns the first difference of two texts with some of its surroundings.
func difference(was, is string) string {
	at := 0
	for at < len(was) && at < len(is) && was[at] == is[at] {
		at++
	}
	around := func(text string) string { return text[max(0, min(at, len(text))-80):min(len(text), at+120)] }
	return "\nwas " + around(was) + "\nis  " + around(is)
}
