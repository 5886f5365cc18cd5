// Package layout renders every page, with its head, navigation and top bar.
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
	// Workspaces is opened through the block with the workspace's name.
	Workspaces Section = "workspaces"
	Audit      Section = "audit"
	Settings   Section = "settings"
	// Operator is for operators of the installation.
	Operator Section = "operator"
	// Docs is the documentation.
	Docs Section = "docs"
)

// Frame describes the surroundings of a page.
type Frame struct {
	Title       string // of the browser's tab, without the product's name
	Section     Section
	Breadcrumbs []Breadcrumb // the way to the page; the title if empty
	Who         tenants.Principal

	plan  *billing.Overview // nil if billing is off or the plan is unknown
	theme string            // "light" or "dark"; "" means the system's
	demo  string            // how to log in to a demo; "" if this is not one
	local bool              // mails are kept here instead of sent
	zone  *time.Location    // the page's time zone
}

// Breadcrumb is a step of the way to a page.
type Breadcrumb struct {
	Title string
	Path  string // "" for the page itself
}

// entry is a link of the navigation, for people with the permission in needs.
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
		{Pipeline, "Compression", "workflow", paths.Pipeline, tenants.ReadConfig},
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

// allowed returns the links that the reader may open.
func (f Frame) allowed() []entry {
	return slices.DeleteFunc(allEntries(), func(e entry) bool {
		isClosed := f.isVisit() && (e.section == Keys || e.section == Providers)
		return isClosed || !f.Who.Role.May(e.needs)
	})
}

// isVisit reports whether the reader looks at a public demo.
func (f Frame) isVisit() bool { return f.Who.Role == tenants.Visitor }

// parts returns the pages under Settings, for people who may see more than one.
func (f Frame) parts() []entry {
	parts := slices.DeleteFunc(f.allowed(), func(e entry) bool { return !slices.Contains([]Section{Settings, Alerts, Billing, SignOn}, e.section) })
	if len(parts) < 2 || parts[0].section != Settings {
		return nil
	}
	parts[0].title = "General"
	return parts
}

// isPart reports whether the page is under Settings.
func (f Frame) isPart() bool {
	return slices.ContainsFunc(f.parts(), func(e entry) bool { return e.section == f.Section })
}

// isAt reports whether the navigation highlights an entry for the page.
func (f Frame) isAt(e entry) bool {
	return e.section == f.Section || e.section == Settings && f.isPart()
}

// entries returns the links of the navigation. The pages of Settings list its parts, so the navigation has
// parts only for people who may see just one.
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
		Keys: "api-keys", Providers: "providers", Members: "data#who-can-read-conversations", Audit: "security#what-is-noted", Settings: "data", Billing: "billing", SignOn: "sign-on", Alerts: "alerts", Account: "sign-on",
		Operator: "operations#operators",
	}[f.Section]
	if name == "" {
		return paths.Docs
	}
	return paths.DocsPage(name)
}

// Place is a page in the navigation.
type Place struct{ Title, Path string }

// Places returns the pages that a person may open from the navigation, and their account.
func Places(who tenants.Principal) []Place {
	var places []Place
	frame := Frame{Who: who}
	parts := frame.parts()
	for _, entry := range slices.Concat(frame.entries(), parts[min(1, len(parts)):], frame.account()) {
		places = append(places, Place{Title: entry.title, Path: entry.path})
	}
	return places
}

// goKey returns the key that opens a section after g; "" if absent.
func goKey(section Section) string {
	return map[Section]string{Overview: "o", Sessions: "s", "requests": "r", Pipeline: "p", Patterns: "t", Keys: "k", Providers: "v", Spend: "m"}[section]
}

// tabs is how many links a narrow screen shows at the bottom, beside the link to the rest.
const tabs = 4

// tabEntries returns the links at the bottom of a narrow screen.
func (f Frame) tabEntries() []entry {
	all := f.entries()
	return all[:min(tabs, len(all))]
}

// moreEntries returns the remaining links. They include the account's, which wide screens show beside the
// navigation.
func (f Frame) moreEntries() []entry {
	all := f.entries()
	return append(all[min(tabs, len(all)):], f.account()...)
}

// account returns the link to the reader's account, which visitors do not have.
func (f Frame) account() []entry {
	if f.isVisit() {
		return nil
	}
	return []entry{{Account, "Account", "user", paths.Account, tenants.Enter}}
}

// isMore reports whether the page is behind the last link at the bottom.
func (f Frame) isMore() bool {
	return f.Section == More || f.Section == Workspaces || slices.ContainsFunc(f.moreEntries(), f.isAt)
}

// isUnverified reports whether the reader's address is not verified yet.
func (f Frame) isUnverified() bool { return f.Who.User.VerifiedAt == nil && f.Section != Account }

// breadcrumbs returns the way to the page, or its title by default.
func (f Frame) breadcrumbs() []Breadcrumb {
	if len(f.Breadcrumbs) > 0 {
		return f.Breadcrumbs
	}
	if f.isPart() && f.Section != Settings {
		return []Breadcrumb{{Title: "Settings", Path: paths.Settings}, {Title: f.Title}}
	}
	return []Breadcrumb{{Title: f.Title}}
}

// others returns the reader's workspaces other than the current one.
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

// MorePage answers with the links that do not fit at the bottom of a narrow screen.
func MorePage(c echo.Context, who tenants.Principal) error {
	frame := Frame{Title: "More", Section: More, Who: who}
	return Page(c, http.StatusOK, frame, more(frame))
}

// Plain answers with a page without navigation, for people without a login.
func Plain(c echo.Context, status int, title string, content templ.Component) error {
	return Fragment(c, status, plain(Frame{Title: title, theme: theme(c.Request()), demo: demoOf(c)}, content))
}

// Fragment answers with only the content, for a part of a page that htmx swaps.
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

// IsPartial reports whether htmx asks for only a part of a page.
func IsPartial(c echo.Context) bool {
	return c.Request().Header.Get("HX-Request-Type") == "partial"
}

// Redirect sends the browser to path with GET, usually after a form was processed.
func Redirect(c echo.Context, path string) error { return c.Redirect(http.StatusSeeOther, path) }

// ThemeCookie is the name of the cookie with the reader's color theme.
const ThemeCookie = "theme"

// theme returns the reader's theme; "" if not chosen.
func theme(request *http.Request) string {
	cookie, err := request.Cookie(ThemeCookie)
	if err != nil || cookie.Value != "light" && cookie.Value != "dark" {
		return ""
	}
	return cookie.Value
}
