// Package layout is what surrounds every page: head, navigation, top bar, and the
// one way to render a page.
package layout

import (
	"net/http"
	"slices"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"palimpsest/billing"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// Section is an entry of the navigation.
type Section string

// The sections of the dashboard.
const (
	Overview  Section = "overview"
	Sessions  Section = "sessions"
	Requests  Section = "requests"
	Spend     Section = "spend"
	Pipeline  Section = "pipeline"
	Patterns  Section = "patterns"
	Keys      Section = "keys"
	Providers Section = "providers"
	Billing   Section = "billing"
	More      Section = "more"
	Account   Section = "account"
	Members   Section = "members"
	SignOn    Section = "sign-on"
	Alerts    Section = "alerts"
	// Workspaces is reached through the block with the workspace's name.
	Workspaces Section = "workspaces"
	Audit      Section = "audit"
	Settings   Section = "settings"
	// Operator is there for who runs the installation.
	Operator Section = "operator"
	// Docs is the documentation.
	Docs Section = "docs"
)

// Frame says what surrounds a page.
type Frame struct {
	Title       string // of the browser's tab, without the product's name
	Section     Section
	Breadcrumbs []Breadcrumb // the way to the page; none: its title
	Who         tenants.Principal

	plan  *billing.Overview // nil: billing is off, or is not known
	theme string            // "light", "dark"; empty: as the reader's system has it
	demo  string            // how to log in where all data was made up; empty: it was not
	local bool              // mails are kept here and not sent
	zone  *time.Location    // that the page is in
}

// Breadcrumb is a step of the way to a page.
type Breadcrumb struct {
	Title string
	Path  string // empty: the page itself
}

// entry is a link of the navigation, for anyone who is granted what it needs.
type entry struct {
	section     Section
	title, icon string
	path        string
	needs       tenants.Permission
}

func allEntries() []entry {
	return []entry{
		{Overview, "Overview", "layout-dashboard", paths.Overview, tenants.ReadMetrics},
		{Sessions, "Sessions", "scroll-text", paths.Sessions, tenants.ReadSessions},
		{Requests, "Requests", "arrow-right-left", paths.Requests, tenants.ReadMetrics},
		{Pipeline, "Pipeline", "workflow", paths.Pipeline, tenants.ReadConfig},
		{Spend, "Spend", "wallet", paths.Spend, tenants.ReadMetrics},
		{Patterns, "Patterns", "lightbulb", paths.Patterns, tenants.ReadConfig},
		{Keys, "API keys", "key-round", paths.Keys, tenants.ReadConfig},
		{Providers, "Providers", "plug", paths.Providers, tenants.ReadConfig},
		{Members, "Members", "users", paths.Members, tenants.ManageMembers},
		{Audit, "Audit", "history", paths.Audit, tenants.ReadAudit},
		{Settings, "Settings", "settings", paths.Settings, tenants.ManageSettings},
		{Alerts, "Alerts", "bell", paths.Alerts, tenants.ManageSettings},
		{Billing, "Billing", "credit-card", paths.Billing, tenants.ManageBilling},
		{SignOn, "Sign-on", "lock", paths.SignOn, tenants.ManageSignOn},
	}
}

// allowed returns the links that the reader may follow.
func (f Frame) allowed() []entry {
	return slices.DeleteFunc(allEntries(), func(e entry) bool { return !f.Who.Role.May(e.needs) })
}

// parts returns the pages that live under Settings, for those who may see more than one.
func (f Frame) parts() []entry {
	parts := slices.DeleteFunc(f.allowed(), func(e entry) bool { return !slices.Contains([]Section{Settings, Alerts, Billing, SignOn}, e.section) })
	if len(parts) < 2 || parts[0].section != Settings {
		return nil
	}
	parts[0].title = "General"
	return parts
}

// isPart reports whether the page lives under Settings.
func (f Frame) isPart() bool {
	return slices.ContainsFunc(f.parts(), func(e entry) bool { return e.section == f.Section })
}

// isAt reports whether the navigation shows an entry as the page's.
func (f Frame) isAt(e entry) bool {
	return e.section == f.Section || e.section == Settings && f.isPart()
}

// entries returns the links of the navigation. The parts of Settings stand on its pages, and
// in the navigation for those who may see one of them only.
func (f Frame) entries() []entry {
	entries, parts := f.allowed(), f.parts()
	entries = slices.DeleteFunc(entries, func(e entry) bool {
		return e.section != Settings && slices.ContainsFunc(parts, func(part entry) bool { return part.section == e.section })
	})
	if f.Who.User.Operator {
		entries = append(entries, entry{Operator, "Operator", "cpu", paths.Operator, tenants.Enter})
	}
	return append(entries, entry{Docs, "Docs", "book-open", paths.Docs, tenants.Enter})
}

// docs returns the path of the documentation about the page.
func (f Frame) docs() string {
	name := map[Section]string{
		Overview: "compaction#in-one-paragraph", Sessions: "compaction#the-levels", Requests: "requests", Spend: "spend", Pipeline: "compaction", Patterns: "memory#patterns",
		Keys: "api-keys", Providers: "providers", Members: "data#who-may-read-what-was-said", Audit: "security#what-is-noted", Settings: "data", Billing: "billing", SignOn: "sign-on", Alerts: "alerts", Account: "sign-on",
		Operator: "operations#operators",
	}[f.Section]
	if name == "" {
		return paths.Docs
	}
	return paths.DocsPage(name)
}

// Place is a page that the navigation leads to.
type Place struct{ Title, Path string }

// Places returns the pages that someone may open from the navigation, and their account.
func Places(who tenants.Principal) []Place {
	var places []Place
	frame := Frame{Who: who}
	parts := frame.parts()
	for _, entry := range slices.Concat(frame.entries(), parts[min(1, len(parts)):], []entry{{Account, "Account", "user", paths.Account, tenants.Enter}}) {
		places = append(places, Place{Title: entry.title, Path: entry.path})
	}
	return places
}

// goKey returns the key that leads to a section after g; empty if none does.
func goKey(section Section) string {
	return map[Section]string{Overview: "o", Sessions: "s", "requests": "r", Pipeline: "p", Patterns: "t", Keys: "k", Providers: "v", Spend: "m"}[section]
}

// tabs is how many links stand at the bottom of a narrow screen, beside that to
// the others.
const tabs = 4

// tabEntries returns the links at the bottom of a narrow screen.
func (f Frame) tabEntries() []entry {
	all := f.entries()
	return all[:min(tabs, len(all))]
}

// moreEntries returns the links that have no place there. The account's stands beside
// the navigation on wide screens.
func (f Frame) moreEntries() []entry {
	all := f.entries()
	return append(all[min(tabs, len(all)):], entry{Account, "Account", "user", paths.Account, tenants.Enter})
}

// isMore reports whether the page is reached through the last link at the bottom.
func (f Frame) isMore() bool {
	return f.Section == More || f.Section == Workspaces || slices.ContainsFunc(f.moreEntries(), f.isAt)
}

// isUnverified reports whether the reader has yet to prove their address.
func (f Frame) isUnverified() bool { return f.Who.User.VerifiedAt == nil && f.Section != Account }

// breadcrumbs returns the way to the page, which is its title where none is set.
func (f Frame) breadcrumbs() []Breadcrumb {
	if len(f.Breadcrumbs) > 0 {
		return f.Breadcrumbs
	}
	if f.isPart() && f.Section != Settings {
		return []Breadcrumb{{Title: "Settings", Path: paths.Settings}, {Title: f.Title}}
	}
	return []Breadcrumb{{Title: f.Title}}
}

// others returns the workspaces of the reader beside the one that they work in.
func (f Frame) others() []tenants.Membership {
	var others []tenants.Membership
	for _, membership := range f.Who.Memberships {
		if membership.Workspace.ID != f.Who.Workspace.ID {
			others = append(others, membership)
		}
	}
	return others
}

// initial returns the first letter of a workspace's name.
func initial(workspace tenants.Workspace) string {
	for _, letter := range workspace.Name {
		return string(letter)
	}
	return "?"
}

// Page answers with a page of the dashboard around content.
func Page(c echo.Context, status int, frame Frame, content templ.Component) error {
	frame.theme, frame.plan, frame.demo, frame.local, frame.zone = theme(c.Request()), Plan(c), demoOf(c), areMailsKept(c), Zone(c.Request())
	return Fragment(c, status, app(frame, content))
}

// MorePage answers with the links that have no place at the bottom of a narrow
// screen.
func MorePage(c echo.Context, who tenants.Principal) error {
	frame := Frame{Title: "More", Section: More, Who: who}
	return Page(c, http.StatusOK, frame, more(frame))
}

// Plain answers with a page without navigation: for people who are not logged in.
func Plain(c echo.Context, status int, title string, content templ.Component) error {
	return Fragment(c, status, plain(Frame{Title: title, theme: theme(c.Request()), demo: demoOf(c)}, content))
}

// Fragment answers with content alone: for a part of a page that htmx swaps.
func Fragment(c echo.Context, status int, content templ.Component) error {
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, echo.MIMETextHTMLCharsetUTF8)
	header.Set(echo.HeaderCacheControl, "no-store")
	header.Set("Vary", "HX-Request-Type")
	buffer := templ.GetBuffer()
	defer templ.ReleaseBuffer(buffer)
	if err := content.Render(components.WithZone(c.Request().Context(), Zone(c.Request())), buffer); err != nil {
		return err
	}
	return write(c, status, buffer.Bytes())
}

// IsPartial reports whether htmx asks for a part of a page only.
func IsPartial(c echo.Context) bool {
	return c.Request().Header.Get("HX-Request-Type") == "partial"
}

// Redirect sends the browser to path with GET after a form has done its work.
func Redirect(c echo.Context, path string) error { return c.Redirect(http.StatusSeeOther, path) }

// ThemeCookie is the name of the cookie with the reader's color theme.
const ThemeCookie = "theme"

// theme returns the theme that a reader has chosen; empty if none.
func theme(request *http.Request) string {
	cookie, err := request.Cookie(ThemeCookie)
	if err != nil || cookie.Value != "light" && cookie.Value != "dark" {
		return ""
	}
	return cookie.Value
}
