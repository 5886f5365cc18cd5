package compactionbench

import (
	"fmt"
	"math"
	"strings"
)

// Markdown returns the results of a vast window as tables.
func (v *Vast) Markdown() string {
	if len(v.Rows) == 0 {
		return ""
	}
	return "### A window of a million\n\n" + v.costTable() +
		"\n### Cost against fidelity\n\n" + v.curveTable() +
		"\n### The worst moment to end\n\n" + v.worstTable() +
		"\n### Against the best decisions in hindsight\n\n" + v.hindsightTable()
}

// vastSum sums rows of one policy.
type vastSum struct {
	cost, none, longCost, longNone float64

	sessions, dearer, epochs, requests, failing int
	dearest, worst                              float64 // percent
	held, directives, modified                  Share
}

func (s *vastSum) add(row *Row, none float64) {
	s.sessions++
	s.cost, s.none = s.cost+row.Cost, s.none+none
	if row.IsLong {
		s.longCost, s.longNone = s.longCost+row.Cost, s.longNone+none
	}
	const rounding = 0.05 // percent
	if row.None > rounding {
		s.dearer++
	}
	s.dearest, s.worst = max(s.dearest, row.None), max(s.worst, row.Worst)
	s.epochs, s.requests = s.epochs+row.Epochs, s.requests+row.Requests
	s.failing += row.Failures
	s.held, s.directives, s.modified = s.held.and(row.Held), s.directives.and(row.Directives), s.modified.and(row.Modified)
}

func (s *vastSum) all() string  { return percent(100 * (s.cost/s.none - 1)) }
func (s *vastSum) long() string { return percent(100 * (s.longCost/s.longNone - 1)) }

// summed sums the rows that match a condition, by policy, in order.
func (v *Vast) summed(holds func(*Row) bool) (policies []string, sums map[string]*vastSum) {
	sums = map[string]*vastSum{}
	none := 0.0
	for i := range v.Rows {
		row := &v.Rows[i]
		if row.Policy == NoCompression {
			none = row.Cost // it comes first of each session
		}
		if !holds(row) {
			continue
		}
		if sums[row.Policy] == nil {
			policies, sums[row.Policy] = append(policies, row.Policy), &vastSum{dearest: math.Inf(-1), worst: math.Inf(-1)}
		}
		sums[row.Policy].add(row, none)
	}
	return policies, sums
}

// costTable has a row for each policy and condition.
func (v *Vast) costTable() string {
	var text strings.Builder
	head(&text, "prices", "pace", "policy", "cost, long sessions", "cost, all sessions", "sessions that cost more", "the dearest", "epochs", "requests", "failing")
	for _, under := range conditions() {
		policies, sums := v.summed(func(row *Row) bool { return row.Prices == under.Prices.Name && row.Pace == under.Pace.Name })
		for _, policy := range policies {
			if strings.HasSuffix(policy, "by hand") {
				continue
			}
			s := sums[policy]
			line(&text, under.Prices.Name, under.Pace.Name, policy, s.long(), s.all(), fmt.Sprintf("%d of %d", s.dearer, s.sessions), percent(s.dearest),
				number(s.epochs), number(s.requests), number(s.failing))
		}
	}
	return text.String()
}

// curveTable lists each way's cost and the content that its prompts still hold.
func (v *Vast) curveTable() string {
	var text strings.Builder
	head(&text, "way", "cost, long sessions", "cost, all sessions", "identifiers held", "epochs", "standing orders kept", "modified files kept")
	policies, sums := v.summed(func(row *Row) bool { return row.Prices == Anthropic().Name && row.Pace == Warm().Name })
	for _, policy := range policies {
		s := sums[policy]
		line(&text, policy, s.long(), s.all(), fmt.Sprintf("%s of %d", s.held, s.held.Of), number(s.epochs), s.directives.String(), s.modified.String())
	}
	return text.String()
}

// worstTable lists the extra cost of a session that ends at the worst moment.
func (v *Vast) worstTable() string {
	var text strings.Builder
	head(&text, "prices", "pace", "policy", "worst against no compression")
	for _, under := range conditions() {
		policies, sums := v.summed(func(row *Row) bool { return row.Prices == under.Prices.Name && row.Pace == under.Pace.Name })
		for _, policy := range policies {
			if policy != NoCompression && !strings.HasSuffix(policy, "by hand") {
				line(&text, under.Prices.Name, under.Pace.Name, policy, percent(sums[policy].worst))
			}
		}
	}
	return text.String()
}

// hindsightTable compares the rule's cost with the optimum.
func (v *Vast) hindsightTable() string {
	var text strings.Builder
	head(&text, "prices", "pace", "sessions", "mean", "worst", "session of the worst", "worst at any length", "mean, below minContext too", "worst, below minContext too")
	for _, under := range conditions() {
		sum, free, n, atAnyLength, freest, worst := 0.0, 0.0, 0, 0.0, 0.0, &Hindsight{Optimum: 1}
		for i := range v.Hindsight {
			one := &v.Hindsight[i]
			if one.Prices != under.Prices.Name || one.Pace != under.Pace.Name {
				continue
			}
			sum, free, n = sum+one.Ratio(), free+one.RatioFree(), n+1
			atAnyLength, freest = max(atAnyLength, one.Worst), max(freest, one.RatioFree())
			if one.Ratio() > worst.Ratio() {
				worst = one
			}
		}
		if n == 0 {
			continue // of a quick run
		}
		line(&text, under.Prices.Name, under.Pace.Name, number(n), times(sum/float64(n)), times(worst.Ratio()), worst.Session,
			times(atAnyLength), times(free/float64(n)), times(freest))
	}
	return text.String()
}

func times(ratio float64) string { return fmt.Sprintf("%.3f×", ratio) }
