package web_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
	"palimpsest/web"
	"palimpsest/web/webtest"
)

// everyPage opens every page there is, of a workspace with traffic and of a new
// one, with its forms and its errors.
func everyPage(t *testing.T) map[string]webtest.Page {
	t.Helper()
	product := webtest.Start(t)
	double := webtest.Provider(t, window)
	busy, fresh, stranger := product.SignUp(t, "northbeam"), product.SignUp(t, "newcomer"), product.Stranger(t)
	busy.Talk(busy.Connect(double, "laptop"), window, webtest.LongTalk(), claudeCode)
	session := "/sessions/" + busy.Newest().ID.String()
	request := newestRequest(t, busy)
	rule := busy.Learn("We use pnpm here, not npm.")
	keys, providers := busy.Get("/keys"), busy.Get("/providers")
	member := "/members/" + busy.Colleague(tenants.Viewer).User.ID.String()
	invited := busy.Post("/members/invite", "email", "new@example.com", "role", "member")
	link := strings.TrimPrefix(invited.Find("#link-0").Text(), webtest.PublicURL)

	unverified := product.SignUpUnverified(t, "hasty")
	unverified.Post("/reset", "email", "hasty@example.com")

	keyed := product.SignUp(t, "keyed")
	passkey := "/account/passkeys/" + webtest.KeepPasskey(t, keyed)

	alerted := product.SignUp(t, "alerted")
	channel, _ := webtest.KeepAlerts(t, alerted)

	pages := map[string]webtest.Page{
		"second factor asked":     product.Stranger(t).Post("/login", "email", keyed.Email, "password", webtest.Password),
		"passkeys":                keyed.Get("/account/passkeys"),
		"passkey added":           busy.Post("/account/passkeys", "name", "Laptop", "password", webtest.Password),
		"passkey not added":       fresh.Post("/account/passkeys", "name", ""),
		"passkey not made":        fresh.Post("/account/passkeys/new", "answer", "{}"),
		"passkey renamed":         keyed.Get(passkey + "/rename"),
		"passkey not renamed":     keyed.Post(passkey+"/rename", "new_name", ""),
		"passkey removed":         keyed.Get(passkey + "/remove"),
		"passkey not removed":     keyed.Post(passkey+"/remove", "remove_password", ""),
		"codes not renewed":       keyed.Post("/account/passkeys/recovery-codes", "renew_password", ""),
		"passkey refused":         stranger.Post("/login/passkey", "answer", "{}"),
		"sign-on unknown":         stranger.Post("/login/sign-on", "email", "who@nobody.example"),
		"sign-on refused":         stranger.Get("/login/sign-on/callback?state=x&code=y"),
		"sign-on not saved":       fresh.Post("/settings/sign-on", "issuer", "ftp://x"),
		"alert channel added":     busy.Post("/settings/alerts/channels", "kind", "webhook", "name", "on call", "url", double.URL, "rules", "budget", "on", "yes"),
		"alert channel not added": fresh.Post("/settings/alerts/channels", "kind", "email", "name", "", "rules", "budget"),
		"alerts not saved":        fresh.Post("/settings/alerts", "quiet_from", "late", "time_zone", "UTC", "error_percent", "25"),
		"alerts tested":           alerted.Post("/settings/alerts/channels/" + channel + "/test"),
		"alert channel changed":   alerted.Get("/settings/alerts/channels/" + channel),
		"domain added":            fresh.Post("/settings/sign-on/domains", "domain", "corp.example"),
		"domain not proven":       fresh.Post("/settings/sign-on/domains/prove", "domain", "corp.example"),
		"app waits":               fresh.Post("/account/second-factor/start", "password", webtest.Password),
		"app not confirmed":       fresh.Post("/account/second-factor/confirm", "code", "x"),
		"unverified":              unverified.Get("/overview"),
		"unverified account":      unverified.Get("/account"),
		"verification sent":       unverified.Post("/account/verification"),
		"address asked":           unverified.Post("/account/email", "email", "other@example.com", "email_password", webtest.Password),
		"password refused":        busy.Post("/account/password", "current_password", "wrong", "password", "another long one"),
		"address refused":         busy.Post("/account/email", "email", "x", "email_password", "x"),
		"reset refused":           stranger.Post("/reset", "email", "x"),
		"reset sent":              stranger.Post("/reset", "email", "nobody@example.com"),
		"verify sent":             stranger.Post("/verify", "email", "nobody@example.com"),
		"verify link":             product.Stranger(t).Get(unverified.Link("Verify")),
		"reset link":              product.Stranger(t).Get(unverified.Link("Set a new")),
		"no link":                 stranger.Get("/reset/nothing"),
		"log in after a reset":    stranger.Get("/login?done=password"),
		"sign up refused":         stranger.Post("/signup", "email", "x"),
		"log in refused":          stranger.Post("/login", "email", "x"),
		"key created":             busy.Post("/keys", "name", "another", "expiry", ""),
		"key refused":             busy.Post("/keys", "name", "", "expiry", ""),
		"provider key refused":    busy.Post("/providers", "provider", "x"),
		"provider key tested":     busy.Post(providers.Find(`form[action$="/test"]`).AttrOr("action", "")),
		"pipeline conflict":       busy.Post("/pipeline", "version", "7", "ipc.targetUtilization", "0.5"),
		"pipeline refused":        busy.Post("/pipeline", "version", "0", "ipc.targetUtilization", "5"),
		"pipeline moved":          busy.Post("/pipeline", "version", "0", "do", "down:ipc"),
		"window refused":          busy.Post("/pipeline/windows", "model", "", "window_tokens", "many"),
		"restore conflict": func() webtest.Page {
			busy.SetPipeline(0, "ipc:\n  targetUtilization: 0.6\n")
			busy.SetPipeline(1, "# ours\nipc:\n  minClear: 0.2\n")
			return busy.Post("/pipeline/history/1/restore", "over", "1")
		}(),
		"import refused":       busy.Post("/settings/import", "config", "palimpsest: 1\nsettngs: {}\n"),
		"import asked":         busy.Post("/settings/import", "config", "palimpsest: 1\nsettings: {time_zone: Europe/Berlin}\napi_keys: [{name: nightly}]\n"),
		"settings refused":     busy.Post("/settings", "time_zone", "Mars", "managers_read", "all", "members_read", "own", "viewers_read", "none"),
		"retention refused":    busy.Post("/settings/retention", "days", "soon"),
		"deletion refused":     busy.Post("/settings/delete", "confirm", "x"),
		"steps":                fresh.Get("/overview/first-request"),
		"invite refused":       busy.Post("/members/invite", "email", "x", "role", "member"),
		"member not removed":   busy.Post(member+"/remove", "confirm", "x"),
		"role refused":         busy.Post(member+"/role", "role", "x"),
		"workspace refused":    busy.Post("/workspaces", "workspace", " "),
		"not renamed":          busy.Post("/workspaces/rename", "workspace", " "),
		"not left":             busy.Post("/workspaces/leave", "confirm", "x"),
		"invited":              invited,
		"invitation":           stranger.Get(link),
		"not signed up":        stranger.Post(link+"/signup", "password", "x"),
		"another's invitation": fresh.Get(link),
		"invitation ended":     stranger.Get("/invite/none"),
		"operator":             busy.Get("/operator"),
		"jump list":            busy.Get("/jump?q=a", "HX-Request-Type", "partial"),
		"session starred":      busy.Post(session+"/star", "starred", "true"),
		"comment added":        busy.Post(session+"/comments", "text", "Look at <b>this</b>.", "m", "2"),
		"session scored":       busy.Post(session+"/score", "score", "-1", "note", "Went <b>astray</b>."),
		"session labeled":      busy.Post(session+"/labels", "label", "<b>bad</b>"),
		"label refused":        busy.Post(session+"/labels", "label", " "),
		"comment refused":      busy.Post(session+"/comments", "text", " "),
		"rule refused":         busy.Post("/patterns", "kind", "convention", "text", " "),
		"rule edited":          busy.Get("/patterns/" + rule.ID.String() + "/edit"),
		"rule deleted":         busy.Get("/patterns/" + rule.ID.String() + "/delete"),
		"suspend":              busy.Get("/operator/workspaces/" + fresh.Workspace.ID.String() + "/suspend"),
		"not suspended":        busy.Post("/operator/workspaces/"+fresh.Workspace.ID.String()+"/suspend", "confirm", "x"),
	}
	for _, path := range []string{"/", "/signup", "/login", "/signup?sent=1", "/reset", "/verify", webtest.MailsPath} {
		pages[path] = stranger.Get(path)
	}
	for _, module := range modules.Catalog().Names() {
		path := "/pipeline?module=" + module
		pages[path] = busy.Get(path)
	}
	for _, path := range []string{
		"/overview", "/overview?range=30d&by=key", "/spend", "/spend?by=tag:team&range=last-month", "/spend?from=x", "/spend/statement", "/spend/statement?month=x", "/more", "/account", "/account/second-factor", "/account/passkeys", "/login/sign-on", "/settings/sign-on", "/settings/alerts", "/settings/alerts/channels/new?kind=email", "/settings/alerts/channels/new?kind=slack", "/members", "/members/invite", member + "/role", member + "/remove",
		"/workspaces", "/workspaces/new", "/workspaces/rename", "/workspaces/leave", "/keys", "/keys/new", keys.Find(`[data-testid="keys"] a[aria-label^="Change"]`).AttrOr("href", ""),
		strings.Replace(keys.Find(`[data-testid="keys"] a[aria-label^="Rotate"]`).AttrOr("href", ""), "/rotate", "/use", 1), keys.Find(`[data-testid="keys"] a[aria-label^="Rotate"]`).AttrOr("href", ""), keys.Find(`[data-testid="keys"] a[aria-label^="Revoke"]`).AttrOr("href", ""), "/providers", "/providers/new", "/providers/new?preset=azure",
		providers.Find(`a[href$="/edit"]`).AttrOr("href", ""), providers.Find(`a[href$="/replace"]`).AttrOr("href", ""),
		providers.Find(`a[href$="/remove"]`).AttrOr("href", ""), "/pipeline", "/pipeline?preset=aggressive", "/pipeline/history", "/pipeline/history?restored=2", "/pipeline/history/1", "/pipeline/history/2", "/pipeline/history/1/restore", "/pipeline/yaml", "/pipeline/yaml?show=all", "/pipeline/yaml/edit", "/settings/import", "/sessions", "/sessions?q=none+such", "/sessions?q=file", "/sessions?show=problems&range=7d&client=x", "/sessions/delete", "/sessions/delete?id=" + busy.Newest().ID.String(),
		"/sessions/export", "/sessions?from=2026-01-31T09:00&to=2026-02-01T09:00", "/sessions?from=x",
		"/billing", "/requests", "/requests?client=claude-code&status=2xx", "/requests?client=none", "/requests?tag=x", "/requests?cursor=x", request, "/requests?open=" + strings.TrimPrefix(request, "/requests/"),
		"/billing", "/patterns", "/patterns/new", "/jump", "/jump?q=key", "/jump?q=none+such", "/jump?q=step&in=archive",
		"/sessions?show=starred", "/sessions/compare", "/sessions/compare?a=" + busy.Newest().ID.String(), "/sessions/compare?a=" + busy.Newest().ID.String() + "&b=none",
		session, session + "?comment=2", session + "?show=compressed", session + "?view=raw", session + "?view=diff", session + "/compact", session + "/delete", "/sessions/none", "/sessions?cursor=x",
		"/audit", "/audit?action=key&actor=busy", "/audit?from=x", "/settings", "/settings?saved=yes", "/settings/delete",
	} {
		pages[path] = busy.Get(path)
	}
	for _, path := range []string{"/overview", "/spend", "/keys", "/providers", "/sessions", "/requests", "/pipeline", "/pipeline/history", "/pipeline/yaml", "/patterns", "/jump"} {
		pages["new "+path] = fresh.Get(path)
	}
	return pages
}

// newestRequest returns the path of the newest request of the person's workspace.
func newestRequest(t *testing.T, of *webtest.Person) string {
	t.Helper()
	exchanges, _, err := of.DB.Exchanges.Exchanges(tenants.OwnWork(t.Context()), of.Workspace.ID, tenants.ExchangeFilter{Limit: 1})
	if err != nil || len(exchanges) == 0 {
		t.Fatalf("%d exchanges, %v", len(exchanges), err)
	}
	return "/requests/" + exchanges[0].ID.String()
}

func TestEveryPage(t *testing.T) {
	t.Parallel()
	pages := everyPage(t)

	t.Run("HoldsNoInlineCodeAndNoForeignAddress", func(t *testing.T) { checkPurity(t, pages) })
	t.Run("HasItsHeadersOneHeadingAndATitle", func(t *testing.T) { checkFrame(t, pages) })
	t.Run("UsesTheWordsOfItsReaders", func(t *testing.T) { checkWords(t, pages) })
	t.Run("LinksToPagesThatThereAre", func(t *testing.T) { checkLinks(t, webtest.Start(t).Routes, pages) })
}

// checkPurity: the policy of every page forbids styles, scripts and handlers that
// stand in it, and everything from elsewhere; no page may need them.
func checkPurity(t *testing.T, pages map[string]webtest.Page) {
	t.Helper()
	forbidden := map[string]*regexp.Regexp{
		"style=":             regexp.MustCompile(`<[^>]*\sstyle\s*=`),
		"an inline handler":  regexp.MustCompile(`<[^>]*\son[a-z]+\s*=`),
		"an inline script":   regexp.MustCompile(`<script(?:[^>]*[^/])?>[^<]`),
		"an inline style":    regexp.MustCompile(`<style`),
		"a foreign address":  regexp.MustCompile(`<[^>]*\s(?:src|href|action|hx-get|hx-post)\s*=\s*["']?(?:https?:)?//`),
		"a data: address":    regexp.MustCompile(`<[^>]*\s(?:src|href)\s*=\s*["']?data:`),
		"javascript:":        regexp.MustCompile(`=\s*["']?javascript:`),
		"code for htmx":      regexp.MustCompile(`\shx-on|\shx-vals\s*=\s*["']?js:|\shx-trigger="[^"]*\[`),
		"an unhashed static": regexp.MustCompile(`"/static/[^"]*"`),
	}
	hashed := regexp.MustCompile(`^"/static/[^"]+\.[0-9a-f]{16}\.[a-z0-9]+"$`)
	for name, page := range pages {
		for what, pattern := range forbidden {
			for _, found := range pattern.FindAllString(page.HTML, -1) {
				if what != "an unhashed static" || !hashed.MatchString(found) {
					t.Errorf("%s holds %s: %.200s", name, what, found)
				}
			}
		}
	}
}

func checkFrame(t *testing.T, pages map[string]webtest.Page) {
	t.Helper()
	for name, page := range pages {
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff",
			"Referrer-Policy":         "same-origin",
			"Permissions-Policy":      "camera=(), geolocation=(), microphone=()",
			"Cache-Control":           "no-store",
		} {
			if got := page.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q", name, header, got)
			}
		}
		if name == "steps" || name == "jump list" {
			continue // a part of a page
		}
		if page.Find("h1").Length() != 1 || !strings.HasSuffix(page.Find("title").Text(), " · Palimpsest") || page.Find("main").Length() != 1 {
			t.Errorf("%s: %d headings, title %q", name, page.Find("h1").Length(), page.Find("title").Text())
		}
		ids := map[string]int{}
		for _, node := range page.Find("[id]").Nodes {
			for _, attribute := range node.Attr {
				if attribute.Key == "id" {
					ids[attribute.Val]++
				}
			}
		}
		for id, count := range ids {
			if count > 1 {
				t.Errorf("%s: the id %s is there %d times", name, id, count)
			}
		}
	}
}

// checkLinks: every link leads to a page or to the API.
func checkLinks(t *testing.T, routes []*echo.Route, pages map[string]webtest.Page) {
	t.Helper()
	parameter := regexp.MustCompile(`:[a-z]+`)
	known := []string{`(?:[?#].*)?`, `/api/v1/(?:sessions/.*|audit\.csv.*|requests\.csv.*|export|config/export)`}
	for _, route := range routes {
		if route.Method == http.MethodGet {
			known = append(known, parameter.ReplaceAllString(regexp.QuoteMeta(route.Path), `[^/?#]+`)+`(?:[?#].*)?`)
		}
	}
	built := regexp.MustCompile(`^(?:` + strings.Join(known, "|") + `)$`)
	for name, page := range pages {
		for _, node := range page.Find("a[href]").Nodes {
			for _, attribute := range node.Attr {
				if attribute.Key == "href" && !built.MatchString(attribute.Val) {
					t.Errorf("%s links to %s", name, attribute.Val)
				}
			}
		}
	}
}

// S10: whatever the route that changes something.
func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam") // the first, who operates the installation, too
	parameter, tried := regexp.MustCompile(`:\w+`), 0
	for _, route := range product.Routes {
		if slices.Contains([]string{http.MethodGet, http.MethodHead, echo.RouteNotFound}, route.Method) {
			continue
		}
		if route.Method != http.MethodPost {
			t.Fatalf("%s %s: this test only posts", route.Method, route.Path)
		}
		tried++
		if page := person.PostFrom(parameter.ReplaceAllString(route.Path, webtest.Nobody()), "https://evil.example"); page.Status != http.StatusForbidden {
			t.Errorf("%s answers another site with %d", route.Path, page.Status)
		}
	}
	if tried < 50 {
		t.Errorf("%d routes were tried", tried)
	}
	if page := person.Get("/overview"); page.Path != "/overview" {
		t.Error("another site logged someone out")
	}
}

// membersOnly returns pages that need a login.
func membersOnly() []string {
	return []string{"/patterns", "/jump", "/live", "/overview", "/overview/first-request", "/spend", "/spend/data.csv", "/spend/statement", "/keys", "/keys/new", "/providers", "/pipeline", "/members", "/workspaces", "/workspaces/new", "/sessions", "/sessions/" + webtest.Nobody(), "/requests", "/requests/" + webtest.Nobody(), "/account", "/account/second-factor", "/account/passkeys", "/account/passkeys/new", "/account/passkeys/" + webtest.Nobody() + "/remove", "/settings/sign-on", "/billing", "/audit", "/settings", "/settings/delete", "/operator"}
}

func TestEveryPageNeedsALogin(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	product.SignUp(t, "northbeam")
	stranger := product.Stranger(t)

	for _, path := range membersOnly() {
		if page := stranger.Get(path); !strings.HasPrefix(page.Path, "/login") {
			t.Errorf("%s leads a stranger to %s", path, page.Path)
		}
	}
	forged := stranger.Get("/overview", "Cookie", "palimpsest=eyJhbGciOiJub25lIn0.e30.")
	if !strings.HasPrefix(forged.Path, "/login") {
		t.Errorf("a forged token opens %s", forged.Path)
	}
}

func TestFirstVisitorOfAnInstallationIsLedToSignUp(t *testing.T) {
	t.Parallel()
	stranger := webtest.Start(t).Stranger(t)

	for _, path := range append(membersOnly(), "/") {
		if page := stranger.Get(path); page.Path != "/signup" || !page.Has(`input[name="workspace"]`) {
			t.Errorf("%s leads the first visitor to %s", path, page.Path)
		}
	}
}

func TestLaterVisitorsChooseBetweenSigningUpAndLoggingIn(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	member := product.SignUp(t, "northbeam")

	page := product.Stranger(t).Get("/")
	if page.Path != "/" || page.Status != http.StatusOK {
		t.Errorf("/ leads to %s with %d", page.Path, page.Status)
	}
	for _, path := range []string{"/signup", "/login"} {
		if choice := page.Find(`[data-testid="welcome"] a.btn[href="` + path + `"]`); choice.Length() != 1 {
			t.Errorf("%d buttons lead to %s", choice.Length(), path)
		}
	}
	for _, path := range []string{"/", "/signup", "/login", "/login/code"} {
		if page := member.Get(path); page.Path != "/overview" {
			t.Errorf("%s leads a member to %s", path, page.Path)
		}
	}
}

func TestThemeIsRenderedByTheServer(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).Stranger(t)

	if _, set := person.Get("/login").Find("html").Attr("data-theme"); set {
		t.Error("a theme is set that nobody chose")
	}
	person.Post("/theme", "theme", "dark")
	if theme := person.Get("/login").Find("html").AttrOr("data-theme", ""); theme != "dark" {
		t.Errorf("the theme is %q", theme)
	}
	if page := person.Post("/theme", "theme", `"><script>`); page.Status != http.StatusBadRequest {
		t.Errorf("a made-up theme answers %d", page.Status)
	}
}

func TestFormsThatAreTooLargeAreRefused(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).Stranger(t)

	if page := person.Post("/login", "email", strings.Repeat("x", 2<<20)); page.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("two megabytes answer %d", page.Status)
	}
}

func TestAnAddressWithoutAPageSaysSo(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	page := person.Get("/nothing")
	if page.Status != http.StatusNotFound || !strings.Contains(page.TestID("problem"), "Page not found") || !page.Has(".nav") {
		t.Errorf("it answers %d: %s", page.Status, page.TestID("problem"))
	}
}

func TestProgramThatAsksForNoPageGetsJSON(t *testing.T) {
	t.Parallel()
	for _, person := range []*webtest.Person{webtest.Start(t).Stranger(t), webtest.Start(t).SignUp(t, "northbeam")} {
		page := person.Get("/v3/nothing", "Accept", "application/json")
		if page.Status != http.StatusNotFound || !strings.HasPrefix(page.Header.Get("Content-Type"), "application/json") || !strings.Contains(page.HTML, `"message":"There is no such address here.`) {
			t.Errorf("it answers %d %s: %s", page.Status, page.Header.Get("Content-Type"), page.HTML)
		}
		if page := person.Get("/v3/nothing", "Accept", "text/html,application/json"); !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") {
			t.Errorf("a browser gets %s", page.Header.Get("Content-Type"))
		}
	}
}

// brokenPipelines cannot be read.
type brokenPipelines struct{ tenants.Pipelines }

func (brokenPipelines) Pipeline(context.Context, tenants.WorkspaceID) (tenants.PipelineConfig, error) {
	return tenants.PipelineConfig{}, errors.New("password authentication failed for user palimpsest_app")
}

func (brokenPipelines) SavePipeline(context.Context, tenants.Tenant, int, tenants.PipelineConfig) (tenants.PipelineConfig, error) {
	return tenants.PipelineConfig{}, errors.New("unreachable")
}

func TestFailureShowsAReferenceAndNeverItsCause(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t, func(_ *webtest.Product, deps *web.Deps) { deps.Gateway.Pipelines = brokenPipelines{} }).SignUp(t, "northbeam")

	page := person.Get("/pipeline")
	if page.Status != http.StatusInternalServerError || !strings.Contains(page.TestID("problem"), "Reference") || strings.Contains(page.HTML, "password authentication") {
		t.Errorf("status %d: %s", page.Status, page.TestID("problem"))
	}
	if !page.Has(".nav") {
		t.Error("the navigation is gone")
	}
}
