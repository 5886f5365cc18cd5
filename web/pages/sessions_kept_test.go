package pages_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// kept is a session of one request as tests want it; the zero value has an epoch of
// none, cost nothing and was active now.
type kept struct {
	title, client, model string
	key                  uuid.UUID
	ago                  time.Duration
	net                  int
	status               int
	compression          string
}

// keep records sessions, all with one statement, and returns their ids.
func keep(t *testing.T, person *webtest.Person, wanted ...kept) []uuid.UUID {
	t.Helper()
	var seen []session.Update
	var exchanges []tenants.Exchange
	var ids []uuid.UUID
	for i := range wanted {
		of, id, lane := wanted[i], uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
		if of.key == uuid.Nil {
			of.key = uuid.New()
		}
		at := time.Now().Add(-of.ago)
		seen = append(seen, session.Update{
			Scope:   session.Scope{Workspace: person.Workspace.ID, APIKey: of.key, Format: conversation.Anthropic},
			Session: id, Lane: lane, Naming: session.Naming{Source: "header"},
			Increment: session.Increment{
				Continued: true, Exchanges: 1, TokensBefore: 1000, TokensAfter: 600, NetMicroUSD: int64(of.net),
			},
			Title: of.title, Client: of.client, Model: of.model,
			At: at, Messages: session.Messages{Position: 1, Head: conversation.Hash{1}},
		})
		exchanges = append(exchanges, tenants.Exchange{
			ID: uuid.Must(uuid.NewV7()), At: at,
			Request: tenants.ExchangeRequest{
				Session: id, Lane: lane, APIKey: of.key, Endpoint: "/v1/messages", Model: of.model, Client: of.client,
			},
			Answer: tenants.ExchangeAnswer{Provider: tenants.ProviderAnthropic, Status: max(of.status, http.StatusOK)},
			Prompt: tenants.ExchangePrompt{
				Compression: of.compression, TokensBefore: 1000, TokensAfter: 600, Window: 10_000,
			},
		})
		ids = append(ids, id)
	}
	if err := person.Sessions.Record(t.Context(), person.Workspace.ID, seen); err != nil {
		t.Fatal(err)
	}
	if err := person.DB.Exchanges.RecordExchanges(t.Context(), person.Workspace.ID, exchanges); err != nil {
		t.Fatal(err)
	}
	return ids
}

// change runs a statement as the database's owner.
func change(t *testing.T, person *webtest.Person, statement string, values ...any) {
	t.Helper()
	if _, err := person.Database.Owner(t).Exec(t.Context(), statement, values...); err != nil {
		t.Fatal(err)
	}
}

// titles returns the titles of the sessions that a page lists, in order.
func titles(page webtest.Page) string {
	var all []string
	for _, node := range page.Find(`[data-testid="sessions"] a.ttl`).EachIter() {
		all = append(all, node.Text())
	}
	return strings.Join(all, ", ")
}

// newKey creates an API key of a person and returns its id.
func newKey(t *testing.T, person *webtest.Person, name string) (id uuid.UUID, secret string) {
	t.Helper()
	key, secret, err := person.Credentials(true).CreateAPIKey(t.Context(), person.Workspace.ID, tenants.APIKey{
		Name: name, Scopes: []tenants.Scope{tenants.ScopeProxy}, CreatedBy: person.User.ID,
	})
	if err != nil {
		t.Fatal(err)
	}
	return key.ID, secret
}
