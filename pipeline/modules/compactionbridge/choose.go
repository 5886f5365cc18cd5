package compactionbridge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// The parameters for choosing content of active files. With these values, the block held most of
// the lines that were read again after 53 recorded compactions: see make bench-memory, which
// measures it.
const (
	lineAge    = 60.0 // messages after which lines that were read or written count half
	fileAge    = 60.0 // messages after which a touched file counts half
	changed    = 2.0  // factor of a changed file compared with a read one
	passage    = 900  // tokens of lines that were read or written together
	around     = 3    // lines kept on both sides of them
	fileHeader = 30   // tokens of the head of a piece of a file
	least      = 60   // tokens below which no more content is added
)

// piece is a run of lines of a stretch that were last seen together.
type piece struct {
	file     *file
	stretch  int
	from, to int // lines of the stretch, to excluded
	score    float64
}

// chosen is the shown part of a file: the lines of each stretch that are shown.
type chosen struct {
	file  *file
	lines map[int]map[int]bool
}

// choose returns the content of files that fits in so many tokens, the file most likely needed
// first. newest is the last message of the lane. It leaves out files that skip reports.
func choose(files []*file, newest, budget int, count func(string) int, skip func(*file) bool) []chosen {
	var all []chosen
	for _, next := range ranked(files, newest, skip) {
		at := slices.IndexFunc(all, func(c chosen) bool { return c.file == next.file })
		cost := fileHeader
		if at >= 0 && all[at].lines[next.stretch] != nil {
			cost = 0
		}
		if budget-cost < least {
			break
		}
		if at < 0 {
			at, all = len(all), append(all, chosen{file: next.file, lines: map[int]map[int]bool{}})
		}
		if all[at].lines[next.stretch] == nil {
			all[at].lines[next.stretch] = map[int]bool{}
		}
		budget -= cost + next.take(all[at].lines[next.stretch], min(budget-cost, passage), count)
	}
	return all
}

// ranked returns the known content of files in pieces, those most likely needed first.
func ranked(files []*file, newest int, skip func(*file) bool) []piece {
	var pieces []piece
	for _, known := range files {
		if len(known.stretches) == 0 || skip(known) {
			continue
		}
		weight := known.weight(newest)
		for i := range known.stretches {
			lines := known.stretches[i].lines
			for from := 0; from < len(lines); {
				to := from
				for to < len(lines) && lines[to].at == lines[from].at {
					to++
				}
				score := weight * math.Exp2(-float64(newest-lines[from].at)/lineAge)
				pieces = append(pieces, piece{file: known, stretch: i, from: from, to: to, score: score})
				from = to
			}
		}
	}
	slices.SortStableFunc(pieces, func(a, b piece) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.file.path, b.file.path), a.stretch-b.stretch, a.from-b.from)
	})
	return pieces
}

// weight estimates how likely a file is needed again: touched late, often, and changed.
func (f *file) weight(newest int) float64 {
	weight := math.Exp2(-float64(newest-f.touched)/fileAge) * (1 + math.Log1p(float64(f.reads+f.changes)))
	if f.changes > 0 {
		weight *= changed
	}
	return weight
}

// take adds the lines of a piece, and some around them, to the shown lines, as many as fit in so
// many tokens. It returns the tokens used.
func (p piece) take(shown map[int]bool, budget int, count func(string) int) int {
	lines := p.file.stretches[p.stretch].lines
	spent := 0
	for i := max(0, p.from-around); i < min(len(lines), p.to+around); i++ {
		if shown[i] {
			continue
		}
		cost := count(lines[i].text) + 1
		if spent+cost > budget {
			break
		}
		shown[i], spent = true, spent+cost
	}
	return spent
}

// write adds the shown part of the file to a text.
func (c chosen) write(text *strings.Builder) {
	for i := range c.file.stretches {
		shown := c.lines[i]
		known := &c.file.stretches[i]
		for from := 0; from < len(known.lines); {
			to := from
			for to < len(known.lines) && shown[to] {
				to++
			}
			if to == from {
				from++
				continue
			}
			part := stretch{lines: known.lines[from:to], doubt: known.doubt}
			if known.from > 0 {
				part.from = known.from + from
			}
			fmt.Fprintf(text, "--- %s%s\n%s\n", conversation.Quoted(c.file.path), part.where(), conversation.Quoted(part.text()))
			from = to
		}
	}
}

// where returns which lines of its file a stretch has, and their place in the archive.
func (s *stretch) where() string {
	where := ", part"
	if s.from > 0 {
		where = fmt.Sprintf(", lines %d-%d", s.from, s.from+len(s.lines)-1)
	}
	where += fmt.Sprintf(" (#%d)", s.newest())
	if s.doubt != "" {
		where += ", as it was before `" + conversation.Quoted(s.doubt) + "` ran"
	}
	return where
}
