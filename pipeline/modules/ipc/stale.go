package ipc

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"palimpsest/pipeline/ledger"
)

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
		more := len(call.Result.Text) - keptCharacters
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
	if len(text) > keptCharacters {
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
