package ipc

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"palimpsest/pipeline/ledger"
)

// staleShare is how much of what L1 would cut of a turn has to be stale for the turn to
// go before its time.
const staleShare = 0.75

// readLines is how many lines a read returns that does not say how many.
const readLines = 2000

// raiseStale takes the turns before end to L1 whose tool results say nothing that a
// later message does not say better, the oldest first, until the prompt has at most
// goal tokens.
func (s *selection) raiseStale(ctx context.Context, end, goal int) error {
	if s.total <= goal {
		return nil
	}
	if err := s.findStale(); err != nil {
		return err
	}
	for _, t := range s.history.turns[:end] {
		if s.total <= goal {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !s.stale[t.index] {
			continue
		}
		if err := s.raiseTurn(t, 1); err != nil {
			return err
		}
	}
	return nil
}

// findStale looks for turns whose results are stale: reads of a file that was read
// again, at least as much of it, or was changed since, and results that come again
// word for word. It depends on the originals of the request alone, and what is stale
// once stays so.
func (s *selection) findStale() error {
	if s.stale != nil {
		return nil
	}
	s.stale = make([]bool, len(s.history.turns))
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
	later := afterwards{files: map[string]*fileFate{}, results: map[string]bool{}}
	for _, t := range slices.Backward(s.history.turns) {
		cut, stale := later.turn(t)
		s.stale[t.index] = cut > 0 && float64(stale) >= staleShare*float64(cut)
	}
	return nil
}

// afterwards is what follows a turn, as far as it makes results stale.
type afterwards struct {
	files   map[string]*fileFate
	results map[string]bool
}

// fileFate is what happens to a file later.
type fileFate struct {
	isChanged bool
	reads     []extent
}

// extent is what a read returns of a file.
type extent struct {
	from, to int // lines
	bytes    int // of the result
}

// covers reports whether a read returns what an earlier one did. One that returns much
// less only points to the other ("unchanged since the last read").
func (e extent) covers(other extent) bool {
	return e.from <= other.from && e.to >= other.to && e.bytes >= other.bytes/2
}

// turn looks at the turn before what it knows. It returns how many bytes of the turn's
// results L1 would cut, and how many of them are stale.
func (a *afterwards) turn(t *turn) (cut, stale int) {
	calls := t.calls()
	for i := range slices.Backward(calls) {
		call := &calls[i]
		if call.Result == nil {
			continue
		}
		isStale := a.call(call)
		if more := len(call.Result.Text) - keptCharacters; more > 0 {
			cut += more
			if isStale {
				stale += more
			}
		}
	}
	return cut, stale
}

// call reports whether a call's result is stale, and notes what the call does.
func (a *afterwards) call(call *ledger.Made) bool {
	text := call.Result.Text
	isStale := false
	if len(text) > keptCharacters {
		isStale = a.results[text]
		a.results[text] = true
	}
	if call.HasFailed {
		return isStale
	}
	for _, file := range slices.Concat(call.Writes, call.Deletes) {
		a.file(file).isChanged = true
	}
	if call.Command != "" || len(call.Reads) == 0 || len(call.Writes) > 0 {
		return isStale // what a command prints is more than a file
	}
	read := extentOf(&call.Call, call.Block.Text, len(text))
	superseded := true
	for _, name := range call.Reads {
		file := a.file(name)
		superseded = superseded && (file.isChanged || slices.ContainsFunc(file.reads, func(later extent) bool { return later.covers(read) }))
		if len(call.Reads) == 1 {
			file.reads = append(file.reads, read)
		}
	}
	return isStale || superseded
}

func (a *afterwards) file(name string) *fileFate {
	name = path.Clean(name)
	file := a.files[name]
	if file == nil {
		file = &fileFate{}
		a.files[name] = file
	}
	return file
}

// extentOf returns what a read asks for: as Claude Code and its like say it, by offset
// and limit, or as first and last line.
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
		return extent{} // who knows
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

// numberOf returns a member of a JSON object that is a number, or a number in quotes.
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
