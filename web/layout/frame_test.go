package layout_test

import (
	"net/http"
	"net/http/httptest"
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
		Title: "Refactor <webhooks>", Section: layout.Sessions, Crumbs: []layout.Crumb{{Title: "Sessions", Path: "/sessions"}, {Title: "0198c2f0"}},
		Who: tenants.Principal{User: tenants.User{Email: "mira@example.com"}, Workspace: tenants.Workspace{Name: "Ökonorm"}, Role: tenants.Admin},
	}

	page, answer := render(t, frame, "Cookie", "theme=dark")
	if answer.Code != http.StatusTeapot || answer.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, Cache-Control %q", answer.Code, answer.Header().Get("Cache-Control"))
	}
	for selector, want := range map[string]string{
		"title": "Refactor <webhooks> · Palimpsest", "main h1": "content", ".wsw .av": "Ö", ".wsw b": "Ökonorm", ".wsw small": "admin",
		".who .mail": "mira@example.com", ".crumbs a": "Sessions", ".crumbs b": "0198c2f0",
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
