package overview

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

// seen is what the reader may see of the workspace, and how its requests were answered.
type seen struct {
	Mine bool // the reader sees only their own figures

	Answered tenants.Answered   // all of the newest requests
	Answers  []tenants.Answered // by provider and model

	Spent  int64   // this month, in millionths of a dollar
	Budget *budget // this month's of the workspace; optional
}

// see narrows a page to what the reader may see.
func see(m *model, who tenants.Principal) {
	m.Mine = !who.Role.May(tenants.ReadSpend)
	m.Filter = m.Filter.SeenBy(who.User.ID, who.Role.May)
}

// month reads this month's spend, and the workspace's budget for people who see its whole spend.
func (h *Handler) month(ctx context.Context, who tenants.Principal, m *model) error {
	_, month := tenants.SpendSpan(m.Now)
	totals, err := h.deps.Usage.Totals(ctx, who.Workspace.ID, tenants.UsageFilter{From: month, To: m.Now}.SeenBy(who.User.ID, who.Role.May))
	m.Spent = totals.CostMicroUSD
	if err != nil || m.Mine {
		return err
	}
	set, err := h.deps.Readers.Budgets(ctx, who.Workspace.ID)
	if at := slices.IndexFunc(set, func(b tenants.Budget) bool { return b.Kind == tenants.WorkspaceSpends }); at >= 0 {
		m.Budget = newBudget(set[at].Quota, m.Spent, month, m.Now)
	}
	return err
}

// health is the state of the workspace's requests.
type health struct{ *model }

// broken returns what does not work, the first of it to be fixed first.
func (m health) broken() []item {
	return slices.DeleteFunc(slices.Clone(m.Attention), func(one item) bool { return one.Dot != "bad" })
}

// brokenWords counts what does not work.
func (m health) brokenWords() string {
	count := len(m.broken())
	if count == 1 {
		return "1 thing is broken:"
	}
	return strconv.Itoa(count) + " things are broken, first:"
}

// words tell how requests were answered, in one sentence.
func (m health) words() string {
	all := m.Answered
	if all.Requests == 0 {
		return "No request in the " + m.Span.Words + "."
	}
	good := all.Requests - all.Failed
	text := fmt.Sprintf("%s of %s answered", components.Share(good, all.Requests), components.Plural(all.Requests, "request"))
	if all.Requests == tenants.MaxAnswered {
		text = fmt.Sprintf("%s of the newest %s requests answered", components.Share(good, all.Requests), components.Count(all.Requests))
	}
	if all.P50 > 0 {
		text += fmt.Sprintf(". Models take %s (p50) and %s (p95)", took(all.P50), took(all.P95))
		if m.Totals.Overhead.Measured > 0 {
			text += ", and Palimpsest adds " + components.Millis(m.Totals.Overhead.P50) + " ms"
		}
	}
	return text + "."
}

// took formats the time that a model took: "840 ms", "3.1 s".
func took(d time.Duration) string {
	switch {
	case d == 0:
		return "–"
	case d < time.Second:
		return components.Millis(d) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}

func (m *seen) answersSheet() *sheet {
	s := &sheet{Title: "Errors and latency", Columns: []string{"Model", "Provider", "Requests", "Failed", "Failed share", "First token p50 (ms)", "Answer p50 (ms)", "Answer p95 (ms)"}}
	for _, one := range m.Answers {
		good := one.Requests - one.Failed
		s.Rows = append(s.Rows, []cell{
			nameCell(one.Model), nameCell(one.Provider.Title()), countCell(one.Requests), countCell(one.Failed), shareCell(one.Failed, one.Requests),
			millisCell(one.First, good), millisCell(one.P50, good), millisCell(one.P95, good),
		})
	}
	return s
}

// without returns what requests would have cost without compression.
func without(totals *tenants.Totals) int64 { return totals.CostMicroUSD + totals.NetMicroUSD }
