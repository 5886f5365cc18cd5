package jump

import (
	"strconv"
	"strings"
	"time"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
	"palimpsest/web/render"
)

// inArchive is the address's value for searching messages.
const inArchive = "archive"

// model is the result of a search.
type model struct {
	Query     string
	Now       time.Time
	Groups    []group
	MaySearch bool // messages, too

	Archive bool // only messages were searched
	Hits    []archive.Hit
	Slow    bool // the archive did not answer
}

// group is the matches of one kind.
type group struct {
	Title string
	Items []item
	Slow  bool // it took too long, so there may be more
}

// item is a destination.
type item struct {
	Title string
	About string // a distinguishing detail; "" if absent
	Path  string
	also  string // further search words
}

// archivePath is the address of the search in messages.
func (m *model) archivePath() string {
	return paths.With(paths.Jump, "q", m.Query, "in", inArchive)
}

// count returns the number of matches.
func (m *model) count() int {
	total := 0
	for i := range m.Groups {
		total += len(m.Groups[i].Items)
	}
	return total
}

// words returns the number of matches for screen readers.
func (m *model) words() string {
	if m.count() == 0 {
		return "No matches"
	}
	return components.Plural(int64(m.count()), "result")
}

// matches reports whether every word of a query begins a word of a text or, from three letters on, occurs
// anywhere in it.
func matches(query string, texts ...string) bool {
	all := strings.ToLower(strings.Join(texts, " "))
	for word := range strings.FieldsSeq(strings.ToLower(query)) {
		if !strings.HasPrefix(all, word) && !strings.Contains(all, " "+word) && (len(word) < 3 || !strings.Contains(all, word)) {
			return false
		}
	}
	return true
}

// narrow keeps the items that match a query.
func narrow(all group, query string) group {
	kept := group{Title: all.Title}
	for _, one := range all.Items {
		if matches(query, one.Title, one.also) {
			kept.Items = append(kept.Items, one)
		}
	}
	return kept
}

func pagesOf(who tenants.Principal, query string) group {
	found := group{Title: "Pages"}
	for _, place := range layout.Places(who) {
		found.Items = append(found.Items, item{Title: place.Title, Path: place.Path})
	}
	sections := []struct {
		needs tenants.Permission
		item
	}{
		{tenants.ManageSettings, item{"Who can read conversations", "Settings", paths.Settings + "#reading", "settings privacy reading time zone"}},
		{tenants.ManageSettings, item{"Retention", "Settings", paths.Settings + "#retention", "settings keep days delete old"}},
		{tenants.ManageSettings, item{"Export the workspace", "Settings", paths.Settings + "#export", "settings download archive file data"}},
		{tenants.DeleteWorkspace, item{"Delete the workspace", "Settings", paths.Settings + "#delete", "settings remove everything close"}},
		{tenants.ReadConfig, item{"Set up a client", "API keys", paths.Keys + "#clients", "claude code codex cursor sdk curl snippet install"}},
		{tenants.Enter, item{"Password", "Account", paths.Account + "#password", "account change"}},
		{tenants.Enter, item{"Second factor", "Account", paths.SecondFactor, "account two-factor 2fa code"}},
		{tenants.Enter, item{"Logins", "Account", paths.Account + "#logins", "account devices browsers log out"}},
		{tenants.Enter, item{"Your workspaces", "", paths.Workspaces, "switch"}},
	}
	for _, section := range sections {
		if query != "" && who.Role.May(section.needs) && who.Role != tenants.Visitor {
			found.Items = append(found.Items, section.item)
		}
	}
	return narrow(found, query)
}

func actionsOf(who tenants.Principal, query string) group {
	found := group{Title: "Actions"}
	for _, action := range []struct {
		needs tenants.Permission
		item
	}{
		{tenants.CreateKeys, item{"Create an API key", "", paths.NewKey, "new token"}},
		{tenants.ManageProviders, item{"Add a provider key", "", paths.NewProvider, "new anthropic openai azure"}},
		{tenants.ManagePatterns, item{"Add a rule", "", paths.NewPattern, "new pattern"}},
		{tenants.ManageMembers, item{"Invite members", "", paths.InviteMembers, "new people colleague team"}},
		{tenants.Enter, item{"Create a workspace", "", paths.NewWorkspace, "new"}},
		{tenants.ManageSettings, item{"Rename the workspace", "", paths.RenameWorkspace, "name"}},
		{tenants.Enter, item{"Leave the workspace", "", paths.LeaveWorkspace, ""}},
	} {
		if who.Role.May(action.needs) {
			found.Items = append(found.Items, action.item)
		}
	}
	return narrow(found, query)
}

func sessionGroup(query string) group {
	if query == "" {
		return group{Title: "Newest sessions"}
	}
	return group{Title: "Sessions"}
}

func sessionItem(s *session.Overview, now time.Time) item {
	title := s.Title
	if title == "" {
		title = s.Name
	}
	if title == "" {
		title = "Untitled session"
	}
	return item{
		Title: render.Visible(title), Path: paths.Session(s.ID),
		About: s.ID.String()[:8] + " · " + components.ClientName(s.Client) + " · " + components.Ago(s.LastAt, now),
	}
}

// keyItem links to the page that changes a key if the reader may do that, otherwise to the list.
func keyItem(key *tenants.APIKey, mayChange bool) item {
	found := item{Title: key.Name, About: key.Prefix + "…" + key.Suffix, Path: paths.Keys}
	switch {
	case key.RevokedAt != nil:
		found.About += " · revoked"
	case mayChange:
		found.Path = paths.EditKey(key.ID)
	}
	return found
}

func providerItem(key *tenants.ProviderKey) item {
	return item{Title: key.Name, About: key.Provider.Title() + " · …" + key.Last4, Path: paths.Providers + "#provider-" + key.ID.String()}
}

// hitPath is the address of a hit's message.
func hitPath(hit *archive.Hit) string {
	return paths.With(paths.Session(hit.Session), "lane", hit.Lane.String(), "m", strconv.Itoa(hit.From))
}

// matched lists the words of the query in a hit.
func matched(hit *archive.Hit) string { return strings.Join(hit.Matched, ", ") }

// hitWords describes a hit's position.
func hitWords(hit *archive.Hit) string {
	words := "Session " + hit.Session.String()[:8] + ", message " + strconv.Itoa(hit.From+1)
	if len(hit.Tools) > 0 {
		words += ", " + hit.Tools[0]
	}
	return words
}
