package ipc

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/modules/ipc/extract"
)

// The worth of each token of a turn that a level removes, by its content. In recorded sessions,
// nearly all replaced text of edits came from a file's newest view or from the edit before it. A
// record names in few tokens the things that later turns use.
const (
	worthResult   = 1.0  // of a result, which L1 cuts
	worthView     = 3.0  // of the newest view of a file
	worthWork     = 2.0  // factor if the file is changed later
	worthCall     = 4.0  // of words and calls, which L2 leaves out
	worthChange   = 8.0  // of a call that changes a file
	worthRecorded = 16.0 // of a record, which L3 reduces to a line
)

// worth is the worth of a turn's tokens at levels 0, 1 and 2: those that the next level removes.
type worth [3]float64

// move takes a turn one level deeper.
type move struct {
	turn, level int
	worth       float64 // per token that it frees
}

// weighTurns computes the worth of each turn. It depends only on the originals of the request and
// the budget.
func (s *selection) weighTurns() error {
	if s.worths != nil {
		return nil
	}
	err := s.history.each(s.history.turns, func(t *turn) error {
		if err := s.history.read(t); err != nil {
			return err
		}
		t.calls()
		return nil
	})
	if err != nil {
		return err
	}
	s.isSpare = make([]bool, len(s.history.turns))
	s.worths = make([]worth, len(s.history.turns))
	later, age := newAfterwards(), 0
	for _, t := range slices.Backward(s.history.turns) {
		found := later.turn(t, age)
		s.worths[t.index] = found.worth(age, float64(max(1, s.room)))
		s.isSpare[t.index] = found.views+found.worked == 0
		age += t.original
	}
	return nil
}

// moves returns the possible moves of the turns before a tail and of those in it that go to L1, those
// with the least worth first. A turn goes down level by level.
func (s *selection) moves(tail tail) []move {
	var moves []move
	for _, t := range s.history.turns[:tail.first] {
		least := 0.0
		for level := t.level + 1; level <= t.deepest; level++ {
			least = max(least, s.worths[t.index][level-1])
			moves = append(moves, move{t.index, level, least})
		}
	}
	for _, index := range slices.Backward(tail.cut) {
		if s.history.turns[index].level == 0 {
			moves = append(moves, move{index, 1, s.worths[index][0]})
		}
	}
	slices.SortStableFunc(moves, func(a, b move) int { return cmp.Compare(a.worth, b.worth) })
	return moves
}

// goDeeper returns which moves can be skipped because a later one surely takes the same turn
// deeper: those before the first that the prompt may not need even if turns had no tokens at L2.
func (s *selection) goDeeper(moves []move, goal int) []bool {
	least, sure := float64(s.total), 0
	size := make([]int, len(s.history.turns))
	for i := range size {
		size[i] = s.history.turns[i].original
	}
	for sure < len(moves) && least > float64(goal) {
		t, after := s.history.turns[moves[sure].turn], 0
		if moves[sure].level == 1 {
			after = min(size[t.index], s.forms.cuts.leastAt1(t.From, t.To))
		}
		least -= float64(size[t.index] - after)
		size[t.index] = after
		sure++
	}
	skipped := make([]bool, len(moves))
	deepest := map[int]bool{}
	for i := sure - 1; i >= 0; i-- {
		skipped[i] = deepest[moves[i].turn]
		deepest[moves[i].turn] = true
	}
	return skipped
}

// holding is the content of a turn that decides its worth.
type holding struct {
	tokens  int  // of the turn
	cut     int  // bytes of results that L1 would cut
	stale   int  // of them, results that a later message replaces
	views   int  // newest views of files
	worked  int  // newest views of files that are changed later
	changes bool // a call changes a file

	viewAge   int // tokens after the newest use of the files in view
	changeAge int // and of the files changed
}

// worth returns the worth of a turn with an age in tokens, in a conversation with so much room. A file
// is as old as its newest use.
func (h holding) worth(age int, room float64) worth {
	file := perToken(h.tokens)
	call := worthCall / older(age, room)
	if h.changes {
		call = worthChange * file / older(h.changeAge, room)
	}
	recorded := worthRecorded / older(age, room)
	if h.cut == 0 {
		return worth{call, call, recorded}
	}
	if float64(h.stale) >= staleShare*float64(h.cut) {
		return worth{0, call, recorded}
	}
	rest, views := h.cut-h.stale-h.views-h.worked, float64(h.views)+worthWork*float64(h.worked)
	result := (worthResult*float64(rest) + worthView*file*views) / float64(h.cut) / older(h.viewAge, room)
	return worth{result, call, recorded}
}

// older returns the divisor of worth at an age in tokens. The odds that something is needed again fall
// as a power of its age: Anderson and Schooler, "Reflections of the environment in memory",
// Psychological Science 2 (1991), 396–408.
func older(age int, room float64) float64 { return 1 + float64(age)/room }

// The turn whose content of files has the worth of the table above, and the smallest that counts, in
// o200k tokens.
const (
	usualTurn    = 1000
	smallestTurn = 25
)

// perToken returns the factor for content of files in a turn of so many tokens. An edit replaces a few
// lines, so each token of a large file is worth less.
func perToken(tokens int) float64 {
	return math.Sqrt(usualTurn / float64(max(smallestTurn, tokens)))
}

// staleShare is how much of the text that L1 would cut from a turn must be stale for the turn's
// results to be worth nothing.
const staleShare = 0.75

// readLines is how many lines a read returns if it gives no count.
const readLines = 2000

// afterwards holds the later events that decide a turn's worth.
type afterwards struct {
	files   map[string]*fileFate
	results map[string]bool
}

func newAfterwards() afterwards {
	return afterwards{files: map[string]*fileFate{}, results: map[string]bool{}}
}

// fileFate is the later history of a file.
type fileFate struct {
	isChanged  bool // in part
	isReplaced bool // as a whole
	reads      []extent
	lastUse    int // tokens after its newest use; -1 before it is known
}

// shows reports whether a later message shows the lines of a read.
func (f *fileFate) shows(read extent) bool {
	return f.isReplaced || slices.ContainsFunc(f.reads, func(later extent) bool { return later.covers(read) })
}

// extent is the part of a file that a read returns.
type extent struct {
	from, to int // lines
	bytes    int // of the result
}

// covers reports whether a read returns the lines of an earlier one. One that returns much less
// only refers to the other ("unchanged since the last read").
func (e extent) covers(other extent) bool {
	return e.from <= other.from && e.to >= other.to && e.bytes >= other.bytes/2
}

// turn classifies the turn before those already seen. age is how many tokens follow it.
func (a *afterwards) turn(t *turn, age int) holding {
	found := holding{tokens: t.original, viewAge: age, changeAge: age}
	calls := t.calls()
	for i := range slices.Backward(calls) {
		call := &calls[i]
		if call.Result == nil {
			continue
		}
		of, used := a.call(call), a.use(call, age)
		switch of {
		case changing:
			found.changes, found.changeAge = true, min(found.changeAge, used)
		case viewing, working:
			found.viewAge = min(found.viewAge, used)
		}
		more := len(call.Result.Text) - extract.KeptCharacters
		if more <= 0 {
			continue
		}
		found.cut += more
		switch of {
		case stale:
			found.stale += more
		case viewing:
			found.views += more
		case working:
			found.worked += more
		}
	}
	return found
}

// The relation of a call and its result to later turns.
const (
	other    = iota // any other call
	stale           // a later message replaces the result
	viewing         // the result is the newest view of a file
	working         // and the file is changed later
	changing        // the call changes a part of a file, and no newer message shows the whole file
)

// call classifies a call and notes its effects. A result is stale if it comes again word for word,
// or if it is a read of a file that was later read again, at least as much of it, or written as a
// whole or deleted. A file that was changed in part is still seen best in its last read and the
// changes.
func (a *afterwards) call(call *ledger.Made) int {
	text := call.Result.Text
	of := other
	if len(text) > extract.KeptCharacters {
		if a.results[text] {
			of = stale
		}
		a.results[text] = true
	}
	if call.HasFailed {
		return of
	}
	for _, name := range call.Writes {
		file := a.file(name)
		if !file.shows(extent{from: 1, to: readLines}) {
			of = changing
		}
		file.isChanged = true
		file.isReplaced = file.isReplaced || call.Content != ""
	}
	for _, name := range call.Deletes {
		a.file(name).isReplaced = true
	}
	switch {
	case of == stale || len(call.Reads) == 0 || len(call.Writes) > 0:
		return of
	case call.Command != "":
		return a.printed(call)
	}
	return a.read(call)
}

// printed is call for a command that reads files. Its output may be more than a file, or less.
func (a *afterwards) printed(call *ledger.Made) int {
	for _, name := range call.Reads {
		if a.file(name).isChanged {
			return working
		}
	}
	return viewing
}

// read is call for a tool that reads files.
func (a *afterwards) read(call *ledger.Made) int {
	read := extentOf(&call.Call, call.Block.Text, len(call.Result.Text))
	isStale, isChanged := true, false
	for _, name := range call.Reads {
		file := a.file(name)
		isStale, isChanged = isStale && file.shows(read), isChanged || file.isChanged
		if len(call.Reads) == 1 {
			file.reads = append(file.reads, read)
		}
	}
	switch {
	case isStale:
		return stale
	case isChanged:
		return working
	}
	return viewing
}

// use notes that a call uses its files, and returns how many tokens follow the newest use of any of
// them.
func (a *afterwards) use(call *ledger.Made, age int) int {
	newest := age
	for _, name := range slices.Concat(call.Reads, call.Writes) {
		file := a.file(name)
		if file.lastUse < 0 {
			file.lastUse = age
		}
		newest = min(newest, file.lastUse)
	}
	return newest
}

func (a *afterwards) file(name string) *fileFate {
	name = path.Clean(name)
	file := a.files[name]
	if file == nil {
		file = &fileFate{lastUse: -1}
		a.files[name] = file
	}
	return file
}

// extentOf returns the extent that a read asks for: by offset and limit, as Claude Code and similar
// tools write it, or as first and last line.
func extentOf(call *ledger.Call, arguments string, bytes int) extent {
	read := extent{1, readLines, bytes}
	if !call.Partial {
		return read
	}
	if from, to, isRange := rangeOf(arguments); isRange {
		return extent{from, to, bytes}
	}
	from, isOffset := numberOf(arguments, "offset")
	limit, isLimit := numberOf(arguments, "limit")
	if !isOffset && !isLimit {
		return extent{} // unknown
	}
	if isOffset {
		read.from, read.to = from, from+readLines-1
	}
	if isLimit {
		read.to = read.from + limit - 1
	}
	return read
}

// rangeOf returns the first and the last line that a read asks for.
func rangeOf(arguments string) (from, to int, isRange bool) {
	if _, list, found := strings.Cut(arguments, `"view_range"`); found {
		first, last, _ := strings.Cut(strings.TrimLeft(list, ": ["), ",")
		from, isFirst := leadingNumber(first)
		to, isLast := leadingNumber(last)
		return from, to, isFirst && isLast
	}
	from, isFirst := numberOf(arguments, "start_line")
	to, isLast := numberOf(arguments, "end_line")
	return from, to, isFirst && isLast
}

// numberOf returns a member of a JSON object if it is a number, or a number in quotes.
func numberOf(object, member string) (int, bool) {
	_, value, found := strings.Cut(object, `"`+member+`"`)
	if !found {
		return 0, false
	}
	return leadingNumber(strings.TrimLeft(value, `: "`))
}

func leadingNumber(text string) (int, bool) {
	text = strings.TrimLeft(text, " \t\r\n")
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	number, err := strconv.Atoi(text[:end])
	return number, err == nil
}
