package web_test

import (
	"fmt"
	"testing"
	"time"

	"palimpsest/tenants"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// look is a page that is looked at.
type look struct {
	name, path string
	ready      string // what is true once the page has drawn itself
}

// visit is what one person looks at.
type visit struct {
	person *webtest.Person
	looks  []look
}

const (
	always  = `true`
	charted = `document.querySelectorAll('[data-chart] canvas').length === document.querySelectorAll('[data-chart]').length`
	opened  = `document.querySelector('dialog:modal') !== null`
)

func TestEveryPageLooksRightInBothThemesAndSizes(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	double := webtest.Provider(t, window)
	busy, fresh := product.SignUp(t, "northbeam"), product.SignUp(t, "newcomer")
	secret := busy.Connect(double, "laptop-mira")
	busy.Talk(secret, window, longTalk(), claudeCode)
	busy.Talk(secret, window, shortTalk(), "codex_cli_rs/0.50")
	furnish(t, busy)
	first, second := busy.Newest().ID.String(), longID(t, busy)
	browser := browsertest.Start(t)

	stranger := product.Stranger(t)
	visits := []visit{
		{stranger, []look{
			{"welcome", "/", always},
			{"sign up", "/signup", always},
			{"log in", "/login", always},
		}},
		{fresh, []look{
			{"first steps", "/overview", always},
			{"no keys", "/keys", always},
			{"no providers", "/providers", always},
			{"no sessions", "/sessions", always},
		}},
		{busy, []look{
			{"overview", "/overview?range=24h", charted},
			{"overview by model", "/overview?range=30d&by=model", charted},
			{"keys", "/keys", always},
			{"keys new", "/keys/new", opened},
			{"providers", "/providers", always},
			{"providers new", "/providers/new", opened},
			{"pipeline", "/pipeline", always},
			{"billing off", "/billing", always},
			{"pipeline preset", "/pipeline?preset=aggressive", always},
			{"sessions", "/sessions", always},
			{"sessions no match", "/sessions?q=nothing+is+called+this", always},
			{"session", "/sessions/" + second + "?m=72", charted},
			{"session compressed", "/sessions/" + second + "?show=compressed", charted},
			{"session json", "/sessions/" + second + "?m=4&view=raw", charted},
			{"session short", "/sessions/" + first, charted},
		}},
	}
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{browsertest.Desktop, browsertest.Phone} {
			t.Run(fmt.Sprintf("%s %d", theme, width), func(t *testing.T) {
				for _, visit := range visits {
					tab := browser.Open(t, browsertest.View{URL: product.URL, Theme: theme, Width: width, Cookies: visit.person.Cookies()})
					for _, look := range visit.looks {
						tab.Go(look.path)
						tab.Until(look.ready)
						tab.Check(fmt.Sprintf("%s %s %d", look.name, theme, width))
					}
				}
			})
		}
	}
}

// furnish gives a workspace keys in every state.
func furnish(t *testing.T, person *webtest.Person) {
	t.Helper()
	keep := func(name string, change func(*tenants.APIKey)) tenants.APIKey {
		key, _, hash := person.Keys.Create(person.Workspace.ID, name, []tenants.Scope{tenants.ScopeProxy}, person.User.ID, nil)
		change(&key)
		if err := person.DB.CreateAPIKey(t.Context(), person.Workspace.ID, key, hash); err != nil {
			t.Fatal(err)
		}
		return key
	}
	soon, past := time.Now().Add(5*24*time.Hour), time.Now().Add(-time.Hour)
	keep("ci-agents", func(*tenants.APIKey) {})
	keep("cursor-team", func(key *tenants.APIKey) { key.ExpiresAt = &soon })
	keep("trial", func(key *tenants.APIKey) { key.ExpiresAt = &past })
	revoked := keep("old-laptop", func(*tenants.APIKey) {})
	if err := person.DB.RevokeAPIKey(t.Context(), person.Workspace.ID, revoked.ID); err != nil {
		t.Fatal(err)
	}
	if err := person.Keys.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}
