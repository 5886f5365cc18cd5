package patterns

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"palimpsest/pipeline/modules/patterns"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// model is the page.
type model struct {
	Who       tenants.Principal
	MayChange bool
	Tab       patterns.Status // Candidate, Approved or Disabled
	Counts    map[patterns.Status]int
	Rows      []patterns.Pattern
	Groups    []group // of Rows, as they are shown
	First     bool    // this is the first page of the list
	Next      string  // cursor of the page that follows; "" if absent
	Held      bool    // the words of some rule are held back from the reader
	Now       time.Time
	Done      string // what was just done; empty if nothing
	Conflict  bool   // someone else was quicker
	Refused   string // why nothing was approved; "" if absent

	Form   *formModel        // the form to add or edit a rule; nil: closed
	Places *placesModel      // where a rule was learned; nil: closed
	Delete *patterns.Pattern // the rule to delete; nil if none
}

// newModel returns the page of one state; where that is not one of the tabs, of the first
// that has a rule.
func newModel(who tenants.Principal, counts map[patterns.Status]int, tab patterns.Status, now time.Time) *model {
	m := &model{Who: who, MayChange: who.Role.May(tenants.ManagePatterns), Tab: tab, Counts: counts, Now: now}
	if slices.Contains(tabs(), tab) {
		return m
	}
	m.Tab = patterns.Candidate
	for _, tab := range tabs() {
		if m.count(tab) > 0 {
			m.Tab = tab
			break
		}
	}
	return m
}

func tabs() []patterns.Status {
	return []patterns.Status{patterns.Candidate, patterns.Approved, patterns.Disabled}
}

// tabOf returns the tab on which rules of a status are.
func tabOf(status patterns.Status) patterns.Status {
	if status == patterns.Rejected {
		return patterns.Disabled
	}
	return status
}

// statusesOf returns the statuses of the rules on a tab.
func statusesOf(tab patterns.Status) []patterns.Status {
	if tab == patterns.Disabled {
		return []patterns.Status{patterns.Disabled, patterns.Rejected}
	}
	return []patterns.Status{tab}
}

func tabTitle(tab patterns.Status) string {
	return map[patterns.Status]string{patterns.Candidate: "Candidates", patterns.Approved: "Approved", patterns.Disabled: "Disabled"}[tab]
}

// count returns how many rules are on a tab.
func (m *model) count(tab patterns.Status) int {
	total := 0
	for _, status := range statusesOf(tab) {
		total += m.Counts[status]
	}
	return total
}

// isNew reports whether the workspace has no rule yet.
func (m *model) isNew() bool {
	return !slices.ContainsFunc(tabs(), func(tab patterns.Status) bool { return m.count(tab) > 0 })
}

// path returns the list of a tab from a cursor on.
func (m *model) path(tab patterns.Status, cursor string) string {
	return paths.With(paths.Patterns, "state", string(tab), "cursor", cursor)
}

// pageSize returns how many rules stand on a page.
func (m *model) pageSize() int {
	if m.Tab == patterns.Candidate {
		return candidatePage
	}
	return pageSize
}

// group fills in the groups: candidates by evidence, with those together that say almost the
// same, and other rules one by one, the newest first.
func (m *model) group() {
	if m.Tab == patterns.Candidate {
		m.Groups = grouped(m.Rows)
		return
	}
	for i := range m.Rows {
		m.Groups = append(m.Groups, group{Rules: m.Rows[i : i+1]})
	}
}

// choosing reports whether rules can be selected to be approved: only those whose words are
// shown.
func (m *model) choosing() bool {
	return m.MayChange && m.Tab == patterns.Candidate && !slices.ContainsFunc(m.Rows, func(p patterns.Pattern) bool { return p.Text == "" })
}

// columns returns how many columns the table has.
func (m *model) columns() int {
	if m.choosing() {
		return 8
	}
	return 7
}

// done says what was done.
func done(what string) string {
	if count, is := strings.CutPrefix(what, "approved-"); is {
		if n, err := strconv.ParseInt(count, 10, 64); err == nil && n > 0 && n <= maxApproved {
			return approvedWords(n)
		}
	}
	return map[string]string{
		"added": "The rule is added and approved.", "approved": "The rule is approved. It goes into prompts that it is relevant to.",
		"disabled": "The rule is disabled. It goes into no further session.", "saved": "The rule is saved.", "deleted": "The rule is deleted.",
	}[what]
}

// text returns what a row says of a rule.
func text(p *patterns.Pattern) string {
	if p.Text == "" {
		return "Not shown to you"
	}
	return p.Text
}

// named returns the words that tell a rule apart in the name of a button.
func named(p *patterns.Pattern) string {
	const long = 60
	words := []rune(p.Text)
	switch {
	case len(words) == 0:
		return "rule " + p.ID.String()[:8]
	case len(words) > long:
		return string(words[:long]) + "…"
	}
	return p.Text
}

func kindName(kind patterns.Kind) string {
	return map[patterns.Kind]string{patterns.Convention: "convention", patterns.Directive: "standing order"}[kind]
}

// state says what becomes of a rule, and the class of the tag that says it.
func state(p *patterns.Pattern) (words, tag string) {
	switch p.Status {
	case patterns.Approved:
		if !p.IsReviewed() {
			return "approved automatically", "ok"
		}
		return "approved", "ok"
	case patterns.Candidate:
		return "waits for you", "info"
	case patterns.Rejected:
		return "rejected", ""
	case patterns.Disabled, patterns.Seen:
	}
	return "disabled", ""
}

func stateWords(p *patterns.Pattern) string { words, _ := state(p); return words }

func stateTag(p *patterns.Pattern) string { _, tag := state(p); return tag }

// success is how often a rule helped where it was used.
func success(p *patterns.Pattern) string {
	if p.Injected == 0 {
		return "–"
	}
	return components.Share(int64(p.Successes), int64(p.Injected))
}

func successTitle(p *patterns.Pattern) string {
	if p.Injected == 0 {
		return "not used yet"
	}
	return strconv.Itoa(p.Successes) + " of " + strconv.Itoa(p.Injected) + " uses"
}

// order says how candidates are sorted.
func (m *model) order() string {
	if m.Tab != patterns.Candidate {
		return ""
	}
	return ", those met in most sessions first"
}

// learned says where a rule was met.
func learned(p *patterns.Pattern) string {
	if p.Source == patterns.Typed && p.Sessions == 0 {
		return "added by hand"
	}
	return components.Plural(int64(p.Sessions), "session")
}

// placesModel is where a rule was learned.
type placesModel struct {
	Rule   *patterns.Pattern
	Places []place
}

// place is a message that a rule was met in.
type place struct {
	At    time.Time
	Words string
	Path  string
}

func newPlaces(rule *patterns.Pattern, met []patterns.Place) *placesModel {
	found := &placesModel{Rule: rule}
	for _, one := range met {
		found.Places = append(found.Places, place{
			At: one.At, Words: "session " + one.Session.String()[:8] + ", message " + strconv.Itoa(one.Message+1),
			Path: paths.With(paths.Session(one.Session), "lane", one.Lane.String(), "m", strconv.Itoa(one.Message)),
		})
	}
	return found
}
