package overview

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/billing"
	"palimpsest/pipeline/cost"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
)

// model is the page.
type model struct {
	query

	Now  time.Time
	Role tenants.Role      // of the reader
	Plan *billing.Overview // nil: billing is off, or the plan is not known

	Totals  tenants.Totals
	Before  tenants.Totals // of the range before
	Points  []tenants.Point
	Rows    []tenants.UsageRow
	Misses  []tenants.Misses
	Choices tenants.UsageChoices

	Advice    cost.Advice // by the last seven days
	Advised   bool        // there is Advice
	Attention []item      // what people should look at

	Trigger *triggerAdvice // optional

	// References in the log of what could not be read; empty: fine.
	TotalsFailed, PointsFailed, RowsFailed, MissesFailed, ChoicesFailed, AttentionFailed string
}

// change is a figure against that of the range before.
type change struct {
	Mark  string // "▲", "▼"; empty: as before
	Said  string // the mark in words
	Text  string // "12%"
	Class string // up where it is better, down where it is worse, flat where it is neither
}

// direction says whether more of something is better.
type direction int

const (
	neither direction = iota
	moreIsBetter
	lessIsBetter
)

// changed returns how a figure has changed, in words of its own.
func changed(by float64, text string, better direction) change {
	if by == 0 {
		return change{Text: "no change", Class: "flat"}
	}
	c := change{Mark: "▲", Said: "up ", Text: text, Class: "flat"}
	if by < 0 {
		c.Mark, c.Said = "▼", "down "
	}
	if better != neither {
		c.Class = "down"
		if (by > 0) == (better == moreIsBetter) {
			c.Class = "up"
		}
	}
	return c
}

// A comparison needs a basis: leastBasis requests in the range before, and a tenth of what
// there is now, in requests and in the figure itself. A range that had only just begun to be
// used would make any figure look like growth.
const (
	leastBasis = 20
	basisShare = 10
)

// isComparable reports whether the range before is a basis to compare with.
func (m *model) isComparable() bool {
	return m.Before.Exchanges >= leastBasis && m.Before.Exchanges*basisShare >= m.Totals.Exchanges
}

// relative returns how much a count has changed in per cent; false where what there was
// before is no basis, or less than nothing.
func relative(now, before int64, better direction) (change, bool) {
	if before <= 0 || now < 0 || before*basisShare < now {
		return change{}, false
	}
	percent := 100 * float64(now-before) / float64(before)
	text := strconv.FormatFloat(math.Abs(percent), 'f', 0, 64) + "%"
	switch size := math.Abs(percent); {
	case size < 0.05:
		percent = 0
	case size < 9.5:
		text = strconv.FormatFloat(size, 'f', 1, 64) + "%"
	}
	return changed(percent, text, better), true
}

// points returns how much a share has changed in percentage points; false where one of
// both is of nothing.
func points(part, whole, partBefore, wholeBefore int64, better direction) (change, bool) {
	if whole == 0 || wholeBefore == 0 {
		return change{}, false
	}
	by := 100 * (float64(part)/float64(whole) - float64(partBefore)/float64(wholeBefore))
	by = math.Round(by*10) / 10
	return changed(by, strconv.FormatFloat(math.Abs(by), 'f', 1, 64)+" pt", better), true
}

// figure is a column of the ledger.
type figure struct {
	Change change
	Has    bool // there is a Change
}

// against returns a comparison with the range before, which needs a basis.
func (m *model) against(c change, has bool) figure { return figure{c, has && m.isComparable()} }

func (m *model) netChange() figure {
	c, has := relative(m.Totals.NetMicroUSD, m.Before.NetMicroUSD, moreIsBetter)
	return m.against(c, has)
}

func (m *model) savedChange() figure {
	c, has := points(m.Totals.Saved(), m.Totals.TokensBefore, m.Before.Saved(), m.Before.TokensBefore, moreIsBetter)
	return m.against(c, has)
}

func (m *model) cacheChange() figure {
	c, has := points(m.Totals.CacheRead, m.Totals.Prompt(), m.Before.CacheRead, m.Before.Prompt(), moreIsBetter)
	return m.against(c, has)
}

// overheadChange compares p99, to the exactness that histograms have.
func (m *model) overheadChange() figure {
	now, before := m.Totals.Overhead, m.Before.Overhead
	if now.Measured == 0 || before.Measured == 0 {
		return figure{}
	}
	by := float64(now.P99) / float64(before.P99)
	if by > 0.91 && by < 1.1 {
		return m.against(change{Text: "no change", Class: "flat"}, true)
	}
	difference := now.P99 - before.P99
	return m.against(changed(float64(difference), components.Millis(difference.Abs())+" ms at p99", lessIsBetter), true)
}

func (m *model) epochsChange() figure {
	c, has := relative(m.Totals.Epochs, m.Before.Epochs, neither)
	return m.against(c, has)
}

func (m *model) requestsChange() figure {
	c, has := relative(m.Totals.Exchanges, m.Before.Exchanges, neither)
	return m.against(c, has)
}

// byClients says what became of the compactions that clients made themselves.
func (m *model) byClients() string {
	own, bridged := m.Totals.Compactions, m.Totals.Bridged
	switch {
	case own == 0 && bridged == 0:
		return "none by clients themselves"
	case own == 0:
		return components.Count(bridged) + " of clients bridged"
	case bridged >= own:
		return components.Count(own) + " by clients, all bridged"
	default:
		return fmt.Sprintf("%s by clients, %s bridged", components.Count(own), components.Count(bridged))
	}
}

// source is a line of what net savings are made of.
type source struct {
	Title  string
	Amount int64 // added to net; negative: taken off
	Width  string
}

// class returns the color of the line's bar.
func (s source) class() string {
	if s.Amount < 0 {
		return "f-minium"
	}
	return "f-verd"
}

// signed writes the amount with its sign.
func (s source) signed() string {
	if s.Amount > 0 {
		return "+" + components.Money(s.Amount)
	}
	return components.Money(s.Amount)
}

// sources returns what net savings are made of: their sum is net.
func (m *model) sources() []source {
	sources := []source{
		{Title: "Input tokens not sent", Amount: m.Totals.NotSentMicroUSD()},
		{Title: "Cached input not read", Amount: m.Totals.UnreadMicroUSD},
		{Title: "Cache rewritten after compression", Amount: -m.Totals.RewrittenMicroUSD},
		{Title: "Summarizer and embedding calls", Amount: -m.Totals.OwnMicroUSD},
	}
	largest := int64(1)
	for _, source := range sources {
		largest = max(largest, source.Amount, -source.Amount)
	}
	for i := range sources {
		part := 100 * math.Abs(float64(sources[i].Amount)) / float64(largest)
		sources[i].Width = strconv.FormatFloat(part, 'f', 1, 64) + "%"
	}
	return sources
}

// reach says what compression made possible beside what it saved.
func (m *model) reach() string {
	if m.Totals.Reach == 0 {
		return "no prompt was longer than its model takes"
	}
	return components.Plural(m.Totals.Reach, "request") + " longer than the model takes, answered"
}

// isLoss reports whether compression cost more than it saved.
func (m *model) isLoss() bool { return m.Totals.NetMicroUSD < 0 }

// netTitle is the heading of what net savings are made of.
func (m *model) netTitle() string {
	if m.isLoss() {
		return "Where the loss of " + components.Money(-m.Totals.NetMicroUSD) + " comes from"
	}
	return "Where the " + components.Money(m.Totals.NetMicroUSD) + " comes from"
}

// groupTitle returns the heading of the table's first column.
func (m *model) groupTitle() string {
	for _, group := range groups() {
		if group.By == m.By {
			return group.Title
		}
	}
	return ""
}

// rowTitle returns what a row of the table is called.
func (m *model) rowTitle(row *tenants.UsageRow) string {
	switch {
	case m.By == tenants.ByClient:
		return components.ClientName(row.Label)
	case row.Name != "":
		return row.Name
	case m.By == tenants.ByKey && row.Label == uuid.Nil.String():
		return "none"
	case row.Label != "":
		return row.Label
	default:
		return "unknown"
	}
}

// rowPath returns the sessions of a row; empty where the list cannot show them.
func (m *model) rowPath(row *tenants.UsageRow) string {
	switch {
	case row.Label == "" || row.Exchanges == 0 || !m.Role.May(tenants.ReadSessions):
		return ""
	case m.By == tenants.ByClient:
		return paths.With(paths.Sessions, "client", row.Label)
	case m.By == tenants.ByModel:
		return paths.With(paths.Sessions, "model", row.Label)
	default:
		return ""
	}
}

// levels returns how many turns were at each level in the prompts of a row, in parts
// of a thousand.
func levels(row *tenants.UsageRow) [4]int {
	total := row.Levels[0] + row.Levels[1] + row.Levels[2] + row.Levels[3]
	var parts [4]int
	for i, count := range row.Levels {
		if total > 0 {
			parts[i] = int(1000 * count / total)
		}
	}
	return parts
}

// levelWords says the same.
func levelWords(row *tenants.UsageRow) string {
	total := row.Levels[0] + row.Levels[1] + row.Levels[2] + row.Levels[3]
	words := make([]string, 0, 4)
	for level := 3; level >= 0; level-- {
		words = append(words, fmt.Sprintf("L%d %s", level, components.Share(row.Levels[level], total)))
	}
	return strings.Join(words, ", ")
}

// filters returns what the page is narrowed to, each with the page without it.
func (m *model) filters() []filtered {
	var list []filtered
	if m.Filter.Client != "" {
		list = append(list, filtered{components.ClientName(m.Filter.Client), m.page("client", "")})
	}
	if m.Filter.Model != "" {
		list = append(list, filtered{m.Filter.Model, m.page("model", "")})
	}
	if m.Filter.APIKey != uuid.Nil {
		name := m.Filter.APIKey.String()[:8]
		for _, key := range m.Choices.APIKeys {
			if key.ID == m.Filter.APIKey && key.Name != "" {
				name = key.Name
			}
		}
		list = append(list, filtered{"key " + name, m.page("key", "")})
	}
	return list
}

// filtered is something that the page is narrowed to.
type filtered struct{ Title, Without string }

// filterTitle says what the page is of.
func (m *model) filterTitle() string {
	if count := len(m.filters()); count > 0 {
		return components.Plural(int64(count), "filter")
	}
	return "All clients, all models"
}

// options returns the choices of a select, "all" first.
func options(all string, names []string, title func(string) string, chosen string) []components.Option {
	list := []components.Option{{Value: "", Label: all}}
	known := chosen == ""
	for _, name := range names {
		list = append(list, components.Option{Value: name, Label: title(name)})
		known = known || name == chosen
	}
	if !known {
		list = append(list, components.Option{Value: chosen, Label: title(chosen)})
	}
	return list
}

func (m *model) clientOptions() []components.Option {
	return options("All clients", m.Choices.Clients, components.ClientName, m.Filter.Client)
}

func (m *model) modelOptions() []components.Option {
	return options("All models", m.Choices.Models, func(name string) string { return name }, m.Filter.Model)
}

func (m *model) keyOptions() []components.Option {
	ids, names := make([]string, 0, len(m.Choices.APIKeys)), map[string]string{}
	for _, key := range m.Choices.APIKeys {
		ids, names[key.ID.String()] = append(ids, key.ID.String()), key.Name
	}
	return options("All keys", ids, func(id string) string {
		if names[id] == "" {
			return id[:8] + "…"
		}
		return names[id]
	}, m.keyID())
}

// keyID returns the id of the API key that the page is narrowed to; empty: of none.
func (m *model) keyID() string {
	if m.Filter.APIKey == uuid.Nil {
		return ""
	}
	return m.Filter.APIKey.String()
}
