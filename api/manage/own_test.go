package manage_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// colleagueWhoSpoke returns a member with an API key and a session of their own.
func (w *tenant) colleagueWhoSpoke(t *testing.T, name string) *tenant {
	t.Helper()
	one := *w
	one.messages = nil
	one.cookie = w.colleague(t, tenants.Regular).cookie
	one.keyID, _ = one.createKey(t, "proxy")
	one.speak(t, name)
	return &one
}

// ownRoutes returns the paths of the routes that read and that answer a member, with the ids of a tenant.
func ownRoutes(of *tenant) map[string]string {
	paths := map[string]string{}
	for _, path := range []string{
		"/usage?by=key", "/usage?by=member", "/usage?by=project", "/usage?by=model", "/usage?by=client", "/usage?by=tag:team",
		"/sessions?show=problems", "/sessions?q=wasp", "/requests?status=4xx", "/search?q=wasp",
	} {
		paths["GET "+path] = path
	}
	for name, try := range reaches() {
		method, path, _ := strings.Cut(name, " ")
		if method != http.MethodGet && !try.reads || try.ends || try.public || !strings.Contains(try.roles, "m") {
			continue
		}
		if try.path != nil {
			path = try.path(of)
		}
		paths[name] = path
	}
	for name, text := range texts() {
		if text.needs != tenants.ExportWorkspace && !strings.Contains(name, "tar") { // a tar has the time of its making
			paths[name] = text.path(of)
		}
	}
	return paths
}

// S55: every route answers a member, and their key that reads, the same whether or not another member has sessions,
// requests, keys and a budget.
func TestMemberGetsNothingOfOthers(t *testing.T) {
	t.Parallel()
	p := setup(t)
	owner := p.tenant(t, "ant")
	owner.send(t, http.MethodPut, "/budgets", `{"budgets":[{"kind":"workspace","budget_month_usd":100000}]}`).want(t, http.StatusNoContent)
	bee := owner.colleagueWhoSpoke(t, "bee")
	_, secret := bee.createKey(t, "read")
	asked := 0
	build := func(name, path string) *http.Request {
		method, _, _ := strings.Cut(name, " ")
		body := reaches()[name].body
		if path == "/pipeline/preview" { // the same question would be answered from memory
			asked++
			body = strings.TrimSuffix(body, "}") + fmt.Sprintf(`,"sessions":%d}`, 40+asked)
		}
		return p.build(t, method, path, body)
	}
	callers := map[string]func(name, path string) reply{
		"member": func(name, path string) reply { return exchange(t, withCookie(build(name, path), bee)) },
		"their key": func(name, path string) reply {
			request := build(name, path)
			request.Header.Set("Authorization", "Bearer "+secret)
			return exchange(t, request)
		},
	}
	changing := regexp.MustCompile(`"request_id":"[^"]*"|"?[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z?"?`)
	body := func(answer reply) []byte { return changing.ReplaceAll(answer.body, nil) }
	before := map[string]reply{}
	for name, path := range ownRoutes(bee) {
		for caller, call := range callers {
			before[caller+name] = call(name, path)
		}
	}

	wasp := owner.colleagueWhoSpoke(t, "wasp")
	wasp.overspend(t)
	for i := range 5 { // as many as a preview needs
		of := *wasp
		of.converse(t, fmt.Sprint("wasp", i))
	}

	for name, path := range ownRoutes(bee) {
		for caller, call := range callers {
			answer, was := call(name, path), before[caller+name]
			if answer.status != was.status || !bytes.Equal(body(answer), body(was)) {
				t.Errorf("%s changed for the %s with what another did, from %d %.700s\nto %d %.700s", name, caller, was.status, body(was), answer.status, body(answer))
			}
		}
	}
	for name, path := range ownRoutes(wasp) {
		if path == ownRoutes(bee)[name] {
			continue
		}
		for caller, call := range callers {
			answer := call(name, path)
			for _, words := range []string{"wasp", "7777", "3333", "7654321"} {
				if bytes.Contains(answer.body, []byte(words)) {
					t.Errorf("%s answers the %s with %q: %.300s", name, caller, words, answer.body)
				}
			}
			if answer.status < http.StatusBadRequest {
				t.Errorf("%s of another member answers the %s with %d", name, caller, answer.status)
			}
		}
	}
	if answer := owner.send(t, http.MethodPost, "/pipeline/preview", reaches()["POST /pipeline/preview"].body); !bytes.Contains(answer.body, []byte(`"sample":false`)) {
		t.Errorf("the owner's preview is not of the sessions of others: %.500s", answer.body)
	}
	if answer := owner.send(t, http.MethodGet, "/usage?by=key", ""); !bytes.Contains(answer.body, []byte("77777700")) {
		t.Errorf("the owner does not see what the other spent: %.500s", answer.body)
	}
}

// overspend records a request and a session that stand out in every figure.
func (w *tenant) overspend(t *testing.T) {
	t.Helper()
	exchange := tenants.Exchange{
		ID: uuid.Must(uuid.NewV7()), Workspace: w.workspace, At: time.Now().Add(-time.Minute),
		Request: tenants.ExchangeRequest{
			Session: w.session, Lane: w.lane, APIKey: uuid.MustParse(w.keyID), Endpoint: "/v1/messages", Model: "claude-sonnet-4-5", Client: "claude-code",
			Position: 3, Tags: tenants.Tags{"project": "nest"},
		},
		Answer: tenants.ExchangeAnswer{Provider: "anthropic", ProviderKey: uuid.MustParse(w.providerKey), Attempts: 1, Status: http.StatusTooManyRequests, ErrorFrom: "provider"},
		Prompt: tenants.ExchangePrompt{Compression: "epoch", TokensBefore: 7_654_321, TokensAfter: 1_234_567},
		Tokens: tenants.ExchangeTokens{Input: 1_234_567, MissCause: "ttl_expiry", MissedTokens: 65_432},
		Cost:   tenants.ExchangeCost{CostMicroUSD: 7_777_770_000, NetMicroUSD: -3_333_330_000},
	}
	if err := w.db.DB.Exchanges.RecordExchanges(t.Context(), w.workspace, []tenants.Exchange{exchange}); err != nil {
		t.Fatal(err)
	}
	statement := `UPDATE sessions SET cost_microusd = 7777770000, net_microusd = -3333330000 WHERE workspace_id = $1 AND id = $2`
	if _, err := w.db.Owner(t).Exec(t.Context(), statement, w.workspace, w.session); err != nil {
		t.Fatal(err)
	}
}
