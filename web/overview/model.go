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

// model is the page's data.
type model struct {
	query

	Now  time.Time
	Role tenants.Role      // of the reader
	Plan *billing.Overview // nil if billing is off or the plan is unknown

	Totals  tenants.Totals
	Before  tenants.Totals // of the range before
	Points  []tenants.Point
	Rows    []tenants.UsageRow
	Misses  []tenants.Misses
	Choices tenants.UsageChoices

	Advice    cost.Advice // from the last seven days
	Advised   bool        // there is Advice
	Attention []item      // what needs attention

	Trigger *triggerAdvice // optional

	seen

	// References in the log of reads that failed; "" if none did.
	TotalsFailed, PointsFailed, RowsFailed, MissesFailed, ChoicesFailed, AttentionFailed, AnswersFailed, MonthFailed string
}

// byClients summarizes the compactions that clients made themselves.
func (m *model) byClients() string {
	own, bridged := m.Totals.Prompts.Compactions, m.Totals.Prompts.Bridged
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

// source is a line in the breakdown of net savings.
type source struct {
	Title  string
	Amount int64 // added to net; negative for costs
	Width  string
}

// class returns the CSS class of the line's bar.
func (s source) class() string {
	if s.Amount < 0 {
		return "f-minium"
	}
	return "f-verd"
}

// signed formats the amount with its sign.
func (s source) signed() string {
	if s.Amount > 0 {
		return "+" + components.Money(s.Amount)
	}
	return components.Money(s.Amount)
}

// sources returns the breakdown of net savings. The amounts add up to the net.
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

// reach counts the requests that only compression made possible.
func (m *model) reach() string {
	if m.Totals.Reach == 0 {
		return "no request was too long for its model"
	}
	return components.Plural(m.Totals.Reach, "request") + " too long for the model, answered because they were shortened"
}

// notSavings names the tokens that do not count as savings because the prompts were too long to send without
// compression.
func (m *model) notSavings() string {
	return "without " + components.Plural(m.Totals.Reach, "request") + " too long to send: " +
		components.Short(m.Totals.ReachBefore) + " in, " + components.Short(m.Totals.ReachAfter) + " sent"
}

// isLoss reports whether compression cost more than it saved.
func (m *model) isLoss() bool { return m.Totals.NetMicroUSD < 0 }

// netTitle is the heading of the breakdown of net savings.
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

// rowTitle returns the name of a row of the table.
func (m *model) rowTitle(row *tenants.UsageRow) string { return rowTitle(m.By, row) }

// rowTitle returns the name of a row of usage by a dimension.
func rowTitle(by tenants.Dimension, row *tenants.UsageRow) string {
	switch {
	case by == tenants.ByClient:
		return components.ClientName(row.Label)
	case row.Name != "":
		return row.Name
	case by == tenants.ByProject:
		return "No project"
	case by.Tag() != "":
		return "Without this tag"
	case by == tenants.ByMember && row.Label == "":
		return "No person"
	case by == tenants.ByMember:
		return "Former member " + row.Label[:8]
	case by == tenants.ByKey && row.Label == uuid.Nil.String():
		return "none"
	case row.Label != "":
		return row.Label
	default:
		return "unknown"
	}
}

// rowPath returns the address of a row's sessions; "" if the list can't show them.
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

// levels returns the share of turns at each level in a row's prompts, in thousandths.
func levels(prompts *tenants.PromptUsage) [4]int {
	total := prompts.Level0 + prompts.Level1 + prompts.Level2 + prompts.Level3
	var parts [4]int
	for i, count := range prompts.Levels() {
		if total > 0 {
			parts[i] = int(1000 * count / total)
		}
	}
	return parts
}

// levelWords returns the same in words.
func levelWords(prompts *tenants.PromptUsage) string {
	total := prompts.Level0 + prompts.Level1 + prompts.Level2 + prompts.Level3
	words := make([]string, 0, 4)
	for level := 3; level >= 0; level-- {
		words = append(words, fmt.Sprintf("L%d %s", level, components.Share(prompts.Levels()[level], total)))
	}
	return strings.Join(words, ", ")
}
