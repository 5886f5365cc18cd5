package overview

import (
	"math"
	"strconv"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

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

// trend sets the figures of the range beside those of the range before.
type trend struct{ now, before *tenants.Totals }

// trend returns how the figures of the page have changed.
func (m *model) trend() trend { return trend{&m.Totals, &m.Before} }

// isComparable reports whether the range before is a basis to compare with.
func (t trend) isComparable() bool {
	return t.before.Exchanges >= leastBasis && t.before.Exchanges*basisShare >= t.now.Exchanges
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

// overhead compares p99, to the exactness that histograms have.
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
