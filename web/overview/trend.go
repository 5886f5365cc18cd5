package overview

import (
	"math"
	"strconv"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

// change is a figure compared with the range before.
type change struct {
	Mark  string // "▲", "▼"; "" if unchanged
	Said  string // the mark in words
	Text  string // "12%"
	Class string // up if better, down if worse, otherwise flat
}

// direction tells whether more of something is better.
type direction int

const (
	neither direction = iota
	moreIsBetter
	lessIsBetter
)

// changed returns a figure's change with a text for it.
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

// A comparison needs a basis: leastBasis requests in the range before, and a tenth of the current value, in
// requests and in the figure itself. Otherwise, any figure would look like growth after a range in which the
// workspace had only begun to send requests.
const (
	leastBasis = 20
	basisShare = 10
)

// trend compares the range's figures with those of the range before.
type trend struct{ now, before *tenants.Totals }

// trend returns the changes of the page's figures.
func (m *model) trend() trend { return trend{&m.Totals, &m.Before} }

// isComparable reports whether the range before has enough requests to compare with.
func (t trend) isComparable() bool {
	return t.before.Exchanges >= leastBasis && t.before.Exchanges*basisShare >= t.now.Exchanges
}

// relative returns a count's change in percent; false if the earlier count is negative or too small.
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

// points returns a share's change in percentage points; false if either whole is 0.
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
	Has    bool // Change is set
}

// against compares with the range before, if it is comparable.
func (t trend) against(c change, has bool) figure { return figure{c, has && t.isComparable()} }

func (t trend) net() figure {
	c, has := relative(t.now.NetMicroUSD, t.before.NetMicroUSD, moreIsBetter)
	return t.against(c, has)
}

func (t trend) saved() figure {
	c, has := points(t.now.Saved(), t.now.Sendable(), t.before.Saved(), t.before.Sendable(), moreIsBetter)
	return t.against(c, has)
}

func (t trend) cache() figure {
	c, has := points(t.now.CacheRead, t.now.Prompt(), t.before.CacheRead, t.before.Prompt(), moreIsBetter)
	return t.against(c, has)
}

// overhead compares p99, with the precision of histograms.
func (t trend) overhead() figure {
	now, before := t.now.Overhead, t.before.Overhead
	if now.Measured == 0 || before.Measured == 0 {
		return figure{}
	}
	by := float64(now.P99) / float64(before.P99)
	if by > 0.91 && by < 1.1 {
		return t.against(change{Text: "no change", Class: "flat"}, true)
	}
	difference := now.P99 - before.P99
	return t.against(changed(float64(difference), components.Millis(difference.Abs())+" ms at p99", lessIsBetter), true)
}

func (t trend) epochs() figure {
	c, has := relative(t.now.Epochs, t.before.Epochs, neither)
	return t.against(c, has)
}

func (t trend) requests() figure {
	c, has := relative(t.now.Exchanges, t.before.Exchanges, neither)
	return t.against(c, has)
}
