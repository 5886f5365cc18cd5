package ipc

import (
	"cmp"
	"fmt"
	"palimpsest/pipeline/modules/ipc/extract"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The limits of a block of turns at L3.
const (
	blockTurns      = 8 // turns in a block, before blocks are made coarser
	saidInBlock     = 160
	subjectInBlock  = 60
	resultInBlock   = 80
	mostResults     = 3 // checks, and open failures
	namesInBlock    = 480
	mostFilesInLine = 4
	leastOfBlock    = 4 // divisor: the share of a block that a request before another one must have
)

// blockShare bounds all L3 text except typed messages, as a share of the changeable part that a
// compaction leaves. In windows of 56,000 to 200,000, 0.15 held up to 0.5 points more identifiers
// than 0.1, with as many of the texts that later edits replaced; 0.25 held 1 to 4 points fewer texts.
const blockShare = 0.15

// leastBlockTokens is the lower bound of the limit on all L3 text, in o200k tokens. The bound is
// lower in a window where it would be a large part.
const leastBlockTokens = 500

// lines renders turns at L3: an outline of each block of them.
type lines struct {
	history     *history
	budget      *budget
	blockTokens int               // bound of all L3 text
	made        map[[2]int]lineOf // lines by the messages that they replace
	firsts      map[int][]int     // by the size of blocks: the first turn of each turn's block
}

func newLines(history *history, budget *budget) *lines {
	room := budget.goal - budget.fixed
	most := max(int(blockShare*float64(room)), min(leastBlockTokens, room/4))
	return &lines{history: history, budget: budget, blockTokens: min(history.config.BlockTokens, most), made: map[[2]int]lineOf{}, firsts: map[int][]int{}}
}

// lineOf is the line of a block, followed by the typed messages. It is cached by the turns of the
// block.
type lineOf struct {
	text  string
	size  int // o200k tokens
	typed int // o200k tokens of its typed messages
}

// blockLine returns the line of a block of adjacent turns, made once.
func (l *lines) blockLine(spans []*span) lineOf {
	key := [2]int{spans[0].From, spans[len(spans)-1].To}
	line, known := l.made[key]
	if !known {
		typed := typedOf(spans)
		line.typed = l.history.countText(typed)
		line.text = outlineOf(spans, typed)
		line.size = l.history.countText(line.text)
		l.made[key] = line
	}
	return line
}

// typedOf returns the messages that people typed in a block of adjacent turns, each in a line of
// its own after the block's.
func typedOf(spans []*span) string {
	var text strings.Builder
	for _, span := range spans {
		for i := range span.record.lines {
			if line := &span.record.lines[i]; line.typed != "" && line.index >= span.record.typed.from {
				text.WriteByte('\n')
				text.WriteString(extract.Archived(line.index) + " " + line.text + " " + withoutMiddle(line.typed, span.record.typed.longest, line.index))
			}
		}
	}
	return text.String()
}

// outlineOf returns the outline of a block of adjacent turns: the typed messages, the last sentence
// said, the files, the checks with their results, the failures that nothing has solved, and the names
// that turns use.
func outlineOf(spans []*span, typed string) string {
	first, last := spans[0], spans[len(spans)-1]
	said := ""
	var changed, read []string
	var results []result
	for _, span := range spans {
		record := span.record
		if record.said != "" {
			said = record.said
		}
		changed, read = append(changed, record.changed...), append(read, record.read...)
		results = append(results, record.results...)
	}
	if said != "" {
		said = assistant + extract.Shorten(said, saidInBlock)
	}
	checks, open := endings(results)
	fields := extract.JoinNonEmpty("\n", said, listed("Changed: ", changed), listed("Read: ", read), checks, open)
	fields = extract.JoinNonEmpty("\n", fields, namesOf(spans, fields+typed))
	return extract.JoinNonEmpty("\n", fmt.Sprintf("[%s, %s–%s]", turnRange(first.turn, last.turn), extract.Archived(first.From), extract.Archived(last.To-1))+typed, fields)
}

// newResult returns the outcome of a call for an outline. Of Go's lines for passed packages, only the
// verdict is kept.
func newResult(tool, argument, outcome string, failed bool) result {
	if verdict, _, _ := strings.Cut(outcome, " "); verdict == "ok" || verdict == "PASS" {
		outcome = verdict
	}
	return result{tool + "(" + extract.Shorten(argument, subjectInBlock) + ")", extract.Shorten(outcome, resultInBlock), failed}
}

// endings returns the newest results of checks that passed, and of calls that have failed since they
// last succeeded.
func endings(results []result) (checks, open string) {
	seen := map[string]bool{}
	var passed, failed []string
	for _, one := range slices.Backward(results) {
		if seen[one.subject] {
			continue
		}
		seen[one.subject] = true
		if text := one.subject + " → " + one.text; one.failed {
			failed = append(failed, text)
		} else {
			passed = append(passed, text)
		}
	}
	return listing("Checks: ", passed), listing("Failed: ", failed)
}

// listing returns the first few texts, which come newest first, in the order of time.
func listing(title string, texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	texts = texts[:min(len(texts), mostResults)]
	slices.Reverse(texts)
	return title + strings.Join(texts, "; ")
}

// namesOf returns the names of a block that the line does not have yet, those that
// most turns use first.
func namesOf(spans []*span, line string) string {
	var all []name
	for _, span := range spans {
		all = append(all, span.record.names...)
	}
	slices.SortStableFunc(all, func(a, b name) int {
		return cmp.Or(cmp.Compare(b.turns, a.turns), cmp.Compare(b.last, a.last))
	})
	var kept []string
	left := namesInBlock
	for _, name := range all {
		if left < extract.ShortestName+2 {
			break
		}
		size := utf8.RuneCountInString(name.text) + 2
		if size > left || strings.Contains(line, name.text) {
			continue
		}
		left -= size
		kept = append(kept, name.text)
		line += " " + name.text
	}
	if len(kept) == 0 {
		return ""
	}
	return "Names: " + strings.Join(kept, ", ")
}

// turnRange names turns as people count them.
func turnRange(first, last int) string {
	if first == last {
		return "turn " + strconv.Itoa(first+1)
	}
	return fmt.Sprintf("turns %d–%d", first+1, last+1)
}

// listed returns the last few different names, newest last.
func listed(title string, names []string) string {
	var kept []string
	seen := map[string]bool{}
	for _, name := range slices.Backward(names) {
		if seen[name] {
			continue
		}
		seen[name] = true
		if len(seen) <= mostFilesInLine {
			kept = append(kept, name)
		}
	}
	if len(kept) == 0 {
		return ""
	}
	slices.Reverse(kept)
	text := title + strings.Join(kept, ", ")
	if more := len(seen) - len(kept); more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// firstsOf returns, for each turn, the first turn of its block if blocks have at most so many turns. A
// block ends before a request if it has a quarter of them. Blocks depend on the messages alone,
// regardless of when each turn was folded.
func (l *lines) firstsOf(block int) []int {
	if known := l.firsts[block]; known != nil {
		return known
	}
	firsts, first := make([]int, len(l.history.turns)), 0
	for i, t := range l.history.turns {
		if size := i - first; size >= block || size >= block/leastOfBlock && l.history.isTyped(t) {
			first = i
		}
		firsts[i] = first
	}
	l.firsts[block] = firsts
	return firsts
}

// blockLines returns the lines of adjacent spans at L3 for blocks of so many turns.
func (l *lines) blockLines(spans []*span, block int) []lineOf {
	var lines []lineOf
	firsts := l.firstsOf(block)
	for len(spans) > 0 {
		n := 1
		for n < len(spans) && firsts[spans[n].turn] == firsts[spans[0].turn] {
			n++
		}
		lines = append(lines, l.blockLine(spans[:n]))
		spans = spans[n:]
	}
	return lines
}

// blockSize returns how many turns a block needs so that all L3 text of the lane is within its
// bound.
func (l *lines) blockSize(turns []*turn) int {
	for block := blockTurns; ; block *= 2 {
		size := 0
		for _, line := range l.foldedLines(turns, block) {
			size += line.size - line.typed
		}
		if size <= l.blockTokens || block/leastOfBlock >= len(turns) {
			return block
		}
	}
}

// foldedLines returns the L3 lines of each run of turns at L3.
func (l *lines) foldedLines(turns []*turn, block int) []lineOf {
	var all []lineOf
	var run []*span
	for _, t := range turns {
		if t.written != nil {
			continue
		}
		if t.level == 3 && t.verbatim == t.From {
			run = append(run, t.span())
			continue
		}
		if len(run) > 0 {
			all = append(all, l.blockLines(run, block)...)
		}
		run = nil
		if t.level == 3 {
			run = append(run, t.span())
		}
	}
	if len(run) > 0 {
		all = append(all, l.blockLines(run, block)...)
	}
	return all
}

// coarsen halves the bound of all L3 text and reports whether that may make the
// plan smaller.
func (l *lines) coarsen() bool {
	least := min(leastBlockTokens, max(100, l.budget.limit/16))
	if l.blockTokens/2 < least {
		return false
	}
	for _, t := range l.history.turns {
		if t.level == 3 {
			l.blockTokens /= 2
			return true
		}
	}
	return false
}
