package layout_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// render returns the page that a request with a header gets.
func render(t *testing.T, frame layout.Frame, name, value string) (*goquery.Document, *httptest.ResponseRecorder) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	request.Header.Set(name, value)
	recorder := httptest.NewRecorder()
	c := echo.New().NewContext(request, recorder)
	if err := layout.Page(c, http.StatusTeapot, frame, templ.Raw("<h1>content</h1>")); err != nil {
		t.Fatal(err)
	}
	document, err := goquery.NewDocumentFromReader(strings.NewReader(recorder.Body.String()))
	if err != nil {
		t.Fatal(err)
	}
	return document, recorder
}

func TestPageSurroundsItsContent(t *testing.T) {
	t.Parallel()
	frame := layout.Frame{
		Title: "Refactor <webhooks>", Section: layout.Sessions, Breadcrumbs: []layout.Breadcrumb{{Title: "Sessions", Path: "/sessions"}, {Title: "0198c2f0"}},
		Who: tenants.Principal{User: tenants.User{Email: "mira@example.com"}, Workspace: tenants.Workspace{Name: "Ökonorm"}, Role: tenants.Admin},
	}

	page, answer := render(t, frame, "Cookie", "theme=dark")
	if answer.Code != http.StatusTeapot || answer.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, Cache-Control %q", answer.Code, answer.Header().Get("Cache-Control"))
	}
	for selector, want := range map[string]string{
		"title": "Refactor <webhooks> · Palimpsest", "main h1": "content", ".wsw .av": "Ö", ".wsw b": "Ökonorm", ".wsw small": "admin",
		".who .mail": "mira@example.com", ".breadcrumbs a": "Sessions", ".breadcrumbs b": "0198c2f0",
	} {
		if got := strings.TrimSpace(page.Find(selector).Text()); got != want {
			t.Errorf("%s says %q, want %q", selector, got, want)
		}
	}
	if theme := page.Find("html").AttrOr("data-theme", ""); theme != "dark" {
		t.Errorf("the theme is %q", theme)
	}
	for _, nav := range []string{".nav", ".tabbar"} {
		if current := page.Find(nav + ` a[aria-current="page"]`); current.Length() != 1 || current.AttrOr("href", "") != "/sessions" {
			t.Errorf("%s marks %d links, %s", nav, current.Length(), current.AttrOr("href", ""))
		}
	}
}

func TestMadeUpThemeIsIgnored(t *testing.T) {
	t.Parallel()

	page, _ := render(t, layout.Frame{Title: "x"}, "Cookie", "theme=pink")
	if theme, set := page.Find("html").Attr("data-theme"); set {
		t.Errorf("the theme is %q", theme)
	}
}

func TestOnlyHtmxAsksForAPart(t *testing.T) {
	t.Parallel()

	for kind, want := range map[string]bool{"partial": true, "full": false, "": false} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.Header.Set("HX-Request-Type", kind)
		if got := layout.IsPartial(echo.New().NewContext(request, httptest.NewRecorder())); got != want {
			t.Errorf("%q: %v", kind, got)
		}
	}
}

// Billing and sign-on live under Settings: the navigation shows those to nobody who sees the
// pages of Settings, and the billing role finds its one page in the navigation.
func TestBillingAndSignOnLiveUnderSettings(t *testing.T) {
	t.Parallel()
	links := func(of *goquery.Selection) string {
		return strings.Join(of.Map(func(_ int, link *goquery.Selection) string { return link.AttrOr("href", "") }), " ")
	}
	for _, test := range []struct {
		role              tenants.Role
		section           layout.Section
		tabs, now, parted string // of the navigation: the page, and the parts of Settings in it
		breadcrumbs       int    // that lead back
	}{
		{tenants.Owner, layout.Settings, "/settings /settings/alerts /billing /settings/sign-on", "/settings", "/settings", 0},
		{tenants.Owner, layout.Alerts, "/settings /settings/alerts /billing /settings/sign-on", "/settings", "/settings", 1},
		{tenants.Owner, layout.Billing, "/settings /settings/alerts /billing /settings/sign-on", "/settings", "/settings", 1},
		{tenants.Owner, layout.SignOn, "/settings /settings/alerts /billing /settings/sign-on", "/settings", "/settings", 1},
		{tenants.Owner, layout.Keys, "", "/keys", "/settings", 0},
		{tenants.Admin, layout.Settings, "/settings /settings/alerts", "/settings", "/settings", 0},
		{tenants.Billing, layout.Billing, "", "/billing", "/billing", 0},
	} {
		page, _ := render(t, layout.Frame{Title: "x", Section: test.section, Who: tenants.Principal{Role: test.role}}, "Cookie", "")
		parted := page.Find(`.nav a`).FilterFunction(func(_ int, link *goquery.Selection) bool {
			href := link.AttrOr("href", "")
			return strings.HasPrefix(href, "/settings") || href == "/billing"
		})
		if tabs, now := links(page.Find(`main .tabs a`)), links(page.Find(`.nav a[aria-current]`)); tabs != test.tabs || now != test.now || links(parted) != test.parted {
			t.Errorf("%s on %s: tabs %q, the navigation is at %q and has %q", test.role, test.section, tabs, now, links(parted))
		}
		if back := page.Find(".breadcrumbs a").Length(); back != test.breadcrumbs {
			t.Errorf("%s on %s: %d breadcrumbs lead back", test.role, test.section, back)
		}
	}
	places := layout.Places(tenants.Principal{Role: tenants.Owner})
	for _, path := range []string{"/billing", "/settings/alerts", "/settings/sign-on", "/docs"} {
		if !slices.ContainsFunc(places, func(place layout.Place) bool { return place.Path == path }) {
			t.Errorf("the palette does not lead to %s", path)
		}
	}
}
