package walks_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/sessiontest"
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
	always        = `true`
	charted       = `document.querySelectorAll('[data-chart] canvas').length === [...document.querySelectorAll('[data-chart]')].filter(chart => chart.checkVisibility()).length`
	replayed      = `document.querySelector('.preview:not(.stale) [data-testid="bars"]') !== null && !document.querySelector('.figures .sk')`
	opensComments = `document.querySelector('#comments').open`
	opened        = `document.querySelector('dialog:modal') !== null`
)

// remarked has a person star a session and comment on it.
func remarked(t *testing.T, person *webtest.Person, session string) {
	t.Helper()
	for path, typed := range map[string][]string{
		"/star": {"starred", "true"}, "/comments": {"text", "The retry loop begins here; see https://github.com/northbeam/api/issues/4711\nand what comes after it.", "m", "2"},
	} {
		if page := person.Post("/sessions/"+session+path, typed...); page.Status != http.StatusOK {
			t.Fatalf("%s: status %d", path, page.Status)
		}
	}
}

func TestEveryPageLooksRightInBothThemesAndSizes(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	double := webtest.Provider(t, window)
	busy, fresh := product.SignUp(t, "northbeam"), product.SignUp(t, "newcomer")
	secret := busy.Connect(double, "laptop-mira")
	busy.Talk(secret, window, webtest.LongTalk(), claudeCode)
	busy.Talk(secret, window, shortTalk(), "codex_cli_rs/0.50")
	refused, epoch := troubled(t, busy, secret)
	limited := furnish(t, busy)
	first, second := busy.Newest().ID.String(), longID(t, busy)
	edited := busy.Get("/providers").Find(`a[href$="/edit"]`).AttrOr("href", "")
	rule := busy.Learn("Tests of this repository run with go test -race, and never sleep.").ID.String()
	busy.Post("/patterns", "kind", "convention", "text", "We use pnpm here, not npm.")
	busy.Learn("Migrations are numbered SQL files, append only, and safe for the version that runs.")
	for version, yaml := range []string{"ipc:\n  targetUtilization: 0.6\n", "# Long sessions: keep more.\nmodules: [ipc]\nipc:\n  targetUtilization: 0.75 # measured in May\n  preserveLastTurns: 8\n"} {
		busy.SetPipeline(version, yaml)
	}
	colleague := busy.Colleague(tenants.Admin)
	invited := busy.Post("/members/invite", "email", "mira.longname@research.example.com", "role", "viewer")
	link := strings.TrimPrefix(invited.Find("#link-0").Text(), webtest.PublicURL)

	keyed, halfway := product.SignUp(t, "keyed"), product.Stranger(t)
	passkey := "/account/passkeys/" + webtest.KeepPasskey(t, keyed)
	halfway.Post("/login", "email", keyed.Email, "password", webtest.Password)

	stranger := product.Stranger(t)
	unverified, resetter := product.SignUpUnverified(t, "hasty"), product.Stranger(t)
	resetter.Email = unverified.Email
	resetter.Post("/reset", "email", unverified.Email)
	resetter.Get(resetter.Link("Set a new"))
	unverified.Get(unverified.Link("Verify"))
	remarked(t, busy, second)
	visits := []visit{
		{stranger, []look{
			{"welcome", "/", always},
			{"sign up", "/signup", always},
			{"log in", "/login", always},
			{"log in after a reset", "/login?done=password", always},
			{"sign up sent", "/signup?sent=1", always},
			{"log in with sign-on", "/login/sign-on", always},
			{"reset", "/reset", always},
			{"reset sent", "/reset?sent=1", always},
			{"verify", "/verify", always},
			{"mails", webtest.MailsPath, always},
		}},
		{resetter, []look{{"reset new", "/reset/new", always}}},
		{halfway, []look{{"log in code", "/login/code", always}}},
		{keyed, []look{
			{"passkeys", "/account/passkeys", always},
			{"passkeys rename", passkey + "/rename", opened},
			{"passkeys remove", passkey + "/remove", opened},
		}},
		{unverified, []look{
			{"unverified", "/overview", always},
			{"unverified account", "/account?done=sent", always},
			{"verify confirm", "/verify/confirm", always},
			{"more with account", "/more", always},
			{"invitation", link, always},
		}},
		{fresh, []look{
			{"first steps", "/overview", always},
			{"no keys", "/keys", always},
			{"no providers", "/providers", always},
			{"no sessions", "/sessions", always},
			{"no requests", "/requests", always},
			{"no spend", "/spend", always},
			{"no patterns", "/patterns", always},
			{"another's invitation", link, always},
		}},
		{busy.Colleague(tenants.Regular), []look{
			{"overview of a member", "/overview?range=7d", charted},
			{"compression of a member", "/pipeline", replayed},
		}},
		{busy, []look{
			{"overview", "/overview?range=24h", charted},
			{"overview by model", "/overview?range=30d&by=model", charted},
			{"spend", "/spend", always},
			{"spend by project", "/spend?by=project&range=30d", always},
			{"spend statement", "/spend/statement", always},
			{"keys", "/keys", always},
			{"keys new", "/keys/new", opened},
			{"account", "/account", always},
			{"keys change", "/keys/" + limited + "/edit", opened},
			{"keys rotate", "/keys/" + limited + "/rotate", opened},
			{"keys use", "/keys/" + limited + "/use", always},
			{"sign-on", "/settings/sign-on", always},
			{"alerts", "/settings/alerts", always},
			{"alerts new", "/settings/alerts/channels/new?kind=webhook", opened},
			{"second factor", "/account/second-factor", always},
			{"passkeys none", "/account/passkeys", always},
			{"providers", "/providers", always},
			{"providers new", "/providers/new", opened},
			{"providers azure", "/providers/new?preset=azure", opened},
			{"providers cloud", "/providers/new?preset=claude-aws", opened},
			{"providers edit", edited, opened},
			{"providers remove", strings.TrimSuffix(edited, "edit") + "remove", opened},
			{"members", "/members", always},
			{"members invite", "/members/invite", opened},
			{"members remove", "/members/" + colleague.User.ID.String() + "/remove", opened},
			{"workspaces", "/workspaces", always},
			{"operator", "/operator", always},
			{"operator suspend", "/operator/workspaces/" + fresh.Workspace.ID.String() + "/suspend", opened},
			{"workspaces leave", "/workspaces/leave", opened},
			{"workspaces new", "/workspaces/new", always},
			{"patterns", "/patterns", always},
			{"patterns new", "/patterns/new", opened},
			{"patterns edit", "/patterns/" + rule + "/edit", opened},
			{"patterns delete", "/patterns/" + rule + "/delete", opened},
			{"jump", "/jump?q=key", always},
			{"jump archive", "/jump?q=npm&in=archive", always},
			{"pipeline", "/pipeline", replayed},
			{"pipeline history", "/pipeline/history", always},
			{"pipeline version", "/pipeline/history/1", always},
			{"pipeline restore", "/pipeline/history/1/restore", opened},
			{"pipeline yaml", "/pipeline/yaml", always},
			{"import", "/settings/import", always},
			{"billing off", "/billing", always},
			{"pipeline advanced", "/pipeline?module=ipc", replayed},
			{"pipeline preset", "/pipeline?preset=aggressive", replayed},
			{"pipeline bridge", "/pipeline?module=compaction-bridge", always},
			{"pipeline rehydrator", "/pipeline?module=rehydrator", always},
			{"pipeline patterns", "/pipeline?module=patterns", always},
			{"pipeline cache", "/pipeline?module=semantic-cache", always},
			{"audit", "/audit", always},
			{"audit no match", "/audit?actor=nobody+at+all", always},
			{"settings", "/settings", always},
			{"settings delete", "/settings/delete", opened},
			{"sessions", "/sessions", always},
			{"sessions range", "/sessions?from=2020-01-31T09:00&to=2040-02-01T09:00", always},
			{"requests", "/requests", always},
			{"requests filtered", "/requests?client=claude-code&status=5xx&error_from=provider&tag=team%3Dsearch&from=2020-01-01", always},
			{"requests no match", "/requests?model=nothing-is-called-this", always},
			{"requests opened", "/requests?open=" + refused, opened},
			{"request", "/requests/" + epoch, always},
			{"requests compare", "/requests/compare?a=" + epoch, always},
			{"requests compared", "/requests/compare?a=" + epoch + "&b=" + refused, always},
			{"sessions delete", "/sessions/delete?id=" + first, opened},
			{"sessions found", "/sessions?q=file&range=30d", always},
			{"sessions understood", "/sessions?q=file+today&range=", always},
			{"session continued", "/sessions/" + second + "/continue?m=4", always},
			{"sessions no match", "/sessions?q=nothing+is+called+this", always},
			{"session", "/sessions/" + second + "?m=72", charted},
			{"session compressed", "/sessions/" + second + "?show=compressed", charted},
			{"session exact", "/sessions/" + second + "?m=72&text=exact", charted},
			{"session json", "/sessions/" + second + "?m=4&view=raw", charted},
			{"session diff", "/sessions/" + second + "?view=diff", charted},
			{"session compact", "/sessions/" + second + "/compact", opened},
			{"session delete", "/sessions/" + second + "/delete", opened},
			{"session short", "/sessions/" + first, charted},
			{"session comments", "/sessions/" + second + "?m=2&comment=2", opensComments},
			{"sessions starred", "/sessions?show=starred", always},
			{"sessions compare", "/sessions/compare?a=" + second, always},
			{"sessions compared", "/sessions/compare?a=" + second + "&b=" + first, always},
			{"session table", "/sessions/" + second + "?table=1", charted},
		}},
	}
	loads, visits := browsertest.Looks(), ofThisRun(visits)
	if !fulltest.Everything() {
		loads = loads[:1] // each page then shows its other look without a second load
	}
	for _, seen := range loads {
		t.Run(fmt.Sprintf("%s %d", seen.Theme, seen.Width), func(t *testing.T) {
			t.Parallel()
			browser := browsertest.Start(t)
			for _, visit := range visits {
				tab := browser.Open(t, browsertest.View{URL: product.URL, Theme: seen.Theme, Width: seen.Width, Cookies: visit.person.Cookies()})
				for _, look := range visit.looks {
					tab.Go(look.path)
					tab.Until(look.ready)
					name := fmt.Sprintf("%s %s %d", look.name, seen.Theme, seen.Width)
					tab.CheckLoad(name)
					tab.Check(name)
					if !fulltest.Everything() {
						tab.CheckFit(look.name)
					}
				}
			}
		})
	}
}

// ofThisRun returns the visits with the looks of this run: every page once, and a tenth of its
// other states, which are its dialogs and queries. In make test-all it returns them all.
func ofThisRun(visits []visit) []visit {
	states, due := 0, map[int]bool{}
	for number := range fulltest.Part(1000) {
		due[number] = true
	}
	var chosen []visit
	for _, all := range visits {
		pages, kept := map[string]bool{}, visit{person: all.person}
		for _, look := range all.looks {
			page, _, _ := strings.Cut(look.path, "?")
			isState := look.ready == opened || pages[page]
			if isState {
				states++
			}
			if !isState || due[states-1] {
				kept.looks = append(kept.looks, look)
			}
			pages[page] = true
		}
		chosen = append(chosen, kept)
	}
	return chosen
}

// troubled returns a request with tags that the provider refuses, and one that made an
// epoch.
func troubled(t *testing.T, person *webtest.Person, secret string) (refused, epoch string) {
	t.Helper()
	_, answered := person.Exchange(secret, window, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"and this?"}]}`,
		"X-Double-Misbehave", "529", "X-Palimpsest-Tag-Team", "search", "X-Palimpsest-Tag-Ticket", "PAL-1234 rewrite the importer", "User-Agent", claudeCode)
	err := person.Database.Owner(t).QueryRow(t.Context(), "SELECT id::text FROM exchanges WHERE compression = 'epoch' ORDER BY at DESC LIMIT 1").Scan(&epoch)
	if err != nil {
		t.Fatal(err)
	}
	return answered.Get("X-Palimpsest-Request-Id"), epoch
}

// furnish gives a workspace keys in every state and returns the id of one with
// limits.
func furnish(t *testing.T, person *webtest.Person) string {
	t.Helper()
	keep := func(name string, change func(*tenants.APIKey)) tenants.APIKey {
		key, _, hash := person.Keys.Create(person.Workspace.ID, name, []tenants.Scope{tenants.ScopeProxy}, person.User.ID, nil)
		change(&key)
		if err := person.DB.APIKeys.CreateAPIKey(t.Context(), person.Workspace.ID, key, hash); err != nil {
			t.Fatal(err)
		}
		return key
	}
	soon, past := time.Now().Add(5*24*time.Hour), time.Now().Add(-time.Hour)
	limited := keep("ci-agents", func(key *tenants.APIKey) {
		key.Limits = tenants.Limits{Models: []string{"claude-*", "gpt-5.5"}, LockOverrides: true, Quota: tenants.Quota{
			RequestsPerMinute: 60, TokensPerMinute: 2_000_000, Concurrency: 8, DayMicroUSD: 25_000_000, MonthMicroUSD: 400_000_000,
		}}
	})
	rotation, _ := person.Keys.Renew(24 * time.Hour)
	if err := person.DB.APIKeys.RotateAPIKey(t.Context(), person.Workspace.ID, limited.ID, rotation); err != nil {
		t.Fatal(err)
	}
	keep("cursor-team", func(key *tenants.APIKey) { key.ExpiresAt = &soon })
	keep("trial", func(key *tenants.APIKey) { key.ExpiresAt = &past })
	revoked := keep("old-laptop", func(*tenants.APIKey) {})
	if err := person.DB.APIKeys.RevokeAPIKey(t.Context(), person.Workspace.ID, revoked.ID); err != nil {
		t.Fatal(err)
	}
	if err := person.Keys.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return limited.ID.String()
}

// shortTalk returns a session that no epoch touches.
func shortTalk() *sessiontest.Session {
	return sessiontest.Generate(11, sessiontest.Options{Format: conversation.OpenAIResponses, Turns: 6, SessionID: "short"})
}

// longID returns the id of the session with most requests.
func longID(t *testing.T, person *webtest.Person) string {
	t.Helper()
	page, err := person.Sessions.Browser().Sessions(tenants.OwnWork(t.Context()), person.Workspace.ID, session.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	longest := page.Sessions[0]
	for _, overview := range page.Sessions {
		if overview.Sums.Exchanges > longest.Sums.Exchanges {
			longest = overview
		}
	}
	return longest.ID.String()
}
