package compactionbench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"palimpsest/pipeline/pipelinetest"
)

// Markdown returns a result as tables.
func (r *Result) Markdown() string {
	var text strings.Builder
	text.WriteString("### Generated sessions\n\n" + policyTable(r.Generated))
	if len(r.Real) > 0 {
		text.WriteString("\n### Real sessions together\n\n" + fieldTable(r.Real))
		text.WriteString("\n### Each real session\n\n" + sessionTable(r.Real))
	}
	text.WriteString("\n### Identifier recall\n\n" + recallTable(slices.Concat(r.Generated, r.Real)))
	fmt.Fprintf(&text, "\n### The engine's time\n\nA body of %d KB at an epoch: p50 %s ms, p99 %s ms where its messages are known, %s ms where none is.\n",
		r.Engine.Bytes>>10, milliseconds(r.Engine.P50), milliseconds(r.Engine.P99), milliseconds(r.Engine.First))
	return text.String()
}

// policyTable has a row for each policy and session.
func policyTable(rows []Row) string {
	var text strings.Builder
	head(&text, "session", "prices", "policy", "requests", "failing", "epochs", "busts", "million tokens sent", "cost against none", "against self-compacting",
		"directives kept", "modified files kept", "newest message intact", "originals back", "ms a request p50 / p99")
	for i := range rows {
		row := &rows[i]
		policy, speed := row.Policy, ""
		switch {
		case row.Policy == Ours:
			policy = "**ours, " + row.Pace + "**"
			speed = milliseconds(row.P50) + " / " + milliseconds(row.P99)
		case row.Pace != Warm().Name:
			policy += ", " + row.Pace
		}
		line(&text, row.Session, row.Prices, policy, number(row.Requests), number(row.Failing()), row.epochs(), number(row.Busts),
			fmt.Sprintf("%.2f", row.Tokens/1e6), percent(row.None), percent(row.Self), row.Directives.String(), row.Modified.String(),
			row.Intact.String(), row.Originals.String(), speed)
		if row.Directives30.Of > 0 {
			line(&text, row.Session, row.Prices, policy+" after 30 epochs", "", "", "30", "", "", "", "", row.Directives30.String(), row.Modified30.String(), "", "", "")
		}
	}
	return text.String()
}

// kind classifies sessions by the size of their prompts without a policy.
type kind int

const (
	tooLong kind = iota
	aboveTarget
	belowTarget
)

func (k kind) String() string {
	return [...]string{"longer than the window", "above the target", "below the target"}[k]
}

// kindOf returns the kind of a session from its largest prompt as a share of the limit.
func kindOf(largest float64) kind {
	switch {
	case largest > 1:
		return tooLong
	case largest > statelessShare:
		return aboveTarget
	default:
		return belowTarget
	}
}

// fieldTable sums real sessions by kind, window, pace and policy.
func fieldTable(rows []Row) string {
	type key struct {
		window       int
		pace, policy string
		kind         kind
	}
	type sum struct {
		Bill

		sessions, ends, failing, epochs int
		none, self                      float64
		intact, originals, untouched    Share
	}
	sums := map[key]*sum{}
	var order []key
	for _, group := range grouped(rows) {
		size := kindOf(group[0].Largest)
		costs := map[string]float64{}
		for i := range group {
			costs[group[i].Policy] = group[i].Cost
		}
		for i := range group {
			row := &group[i]
			k := key{row.Window, row.Pace, row.Policy, size}
			if sums[k] == nil {
				sums[k] = &sum{}
				order = append(order, k)
			}
			s := sums[k]
			s.sessions++
			if row.Failing() == 0 {
				s.ends++
			}
			s.failing += row.Failing()
			s.epochs += row.Epochs
			s.Requests, s.Busts, s.Cost = s.Requests+row.Requests, s.Busts+row.Busts, s.Cost+row.Cost
			s.none, s.self = s.none+costs[NoCompression], s.self+costs[SelfCompacting]
			s.intact = s.intact.and(row.Intact)
			s.originals = s.originals.and(row.Originals)
			s.untouched = s.untouched.and(row.Untouched)
		}
	}
	var text strings.Builder
	head(&text, "window", "sessions", "pace", "policy", "requests failing", "sessions that reach the end", "cost against none", "against self-compacting", "epochs", "busts",
		"newest message intact", "originals back", "requests untouched")
	for _, size := range []kind{tooLong, aboveTarget, belowTarget} {
		for _, k := range order {
			if k.kind != size {
				continue
			}
			s := sums[k]
			line(&text, number(k.window), fmt.Sprintf("%d %s", s.sessions, size), k.pace, emphasized(k.policy),
				fmt.Sprintf("%d of %d", s.failing, s.Requests), fmt.Sprintf("%d of %d", s.ends, s.sessions),
				percent(100*(s.Cost/s.none-1)), percent(100*(s.Cost/s.self-1)), number(s.epochs), number(s.Busts), s.intact.String(), s.originals.String(), s.untouched.String())
		}
	}
	return text.String()
}

// grouped groups rows by comparison.
func grouped(rows []Row) [][]Row {
	var groups [][]Row
	start := 0
	for i := range rows {
		if rows[i].Policy == Ours {
			groups = append(groups, rows[start:i+1])
			start = i + 1
		}
	}
	return groups
}

// sessionTable has a row for each real session that does not fit its window.
func sessionTable(rows []Row) string {
	var text strings.Builder
	head(&text, "session", "window", "pace", "requests", "failing: none / self / ours", "epochs: self / ours", "busts", "tokens sent: none / self / ours, million",
		"cost against none", "against self-compacting", "directives kept", "modified files kept", "ms a request p50 / p99")
	for _, group := range grouped(rows) {
		by := map[string]*Row{}
		for i := range group {
			by[group[i].Policy] = &group[i]
		}
		none, self, ours := by[NoCompression], by[SelfCompacting], by[Ours]
		if none.TooLong == 0 {
			continue
		}
		line(&text, ours.Session, number(ours.Window), ours.Pace, number(ours.Requests),
			fmt.Sprintf("%d / %d / %d", none.Failing(), self.Failing(), ours.Failing()), fmt.Sprintf("%d / %d", self.Epochs, ours.Epochs), number(ours.Busts),
			fmt.Sprintf("%.1f / %.1f / %.1f", none.Tokens/1e6, self.Tokens/1e6, ours.Tokens/1e6), percent(ours.None), percent(ours.Self),
			ours.Directives.String(), ours.Modified.String(), milliseconds(ours.P50)+" / "+milliseconds(ours.P99))
	}
	return text.String()
}

// recallTable compares our recall with that of first sentences.
func recallTable(rows []Row) string {
	var text strings.Builder
	head(&text, "session", "window", "identifiers looked for", "first sentences of the same size", "ours", "gain in points")
	var all pipelinetest.Recall
	row := func(session, window string, recall pipelinetest.Recall) {
		kept, first := recall.Share()
		line(&text, session, window, number(recall.Wanted), Share{recall.First, recall.Wanted}.String(), Share{recall.Kept, recall.Wanted}.String(), fmt.Sprintf("%+.1f", 100*(kept-first)))
	}
	for i := range rows {
		ours := &rows[i]
		if ours.Policy != Ours || ours.Pace != Warm().Name || ours.Recall.Wanted == 0 {
			continue
		}
		all = all.Add(ours.Recall)
		row(ours.Session, number(ours.Window), ours.Recall)
	}
	row("**together**", "", all)
	return text.String()
}

// epochs returns the number of epochs, and of those on a cold cache.
func (r *Row) epochs() string {
	if r.Cold == 0 {
		return number(r.Epochs)
	}
	return fmt.Sprintf("%d, %d cold", r.Epochs, r.Cold)
}

func head(text *strings.Builder, columns ...string) {
	line(text, columns...)
	text.WriteString(strings.Repeat("| --- ", len(columns)) + "|\n")
}

func line(text *strings.Builder, cells ...string) {
	text.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func emphasized(policy string) string {
	if policy == Ours {
		return "**" + policy + "**"
	}
	return policy
}

func number(n int) string { return strconv.Itoa(n) }

func percent(p float64) string { return fmt.Sprintf("%+.1f %%", p) }

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond))
}
