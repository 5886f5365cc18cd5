package ipc

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/excerpts"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/modules/ipc/extract"
)

// The limits, in characters, of the additions to a turn's first sentences and calls at L2.
const (
	sentencesCharacters = 400
	namesCharacters     = 320
	longestText         = 16 << 10 // bytes of one text that are searched for sentences
)

// The worth of a sentence by its content, and of each name in it that a later turn uses and no
// record has.
const (
	worthDirective = 8
	worthDecision  = 6
	worthError     = 4
	worthName      = 2
	mostNames      = 3 // names that count in a sentence, at most
)

// name is a name that turns use.
type name struct {
	text  string
	last  int // newest turn that uses it
	turns int // turns that use it
}

// enricher adds important content to the record of a turn: the sentences that hold a directive, a
// decision, an error or a name that later turns use, and such names of calls and results.
type enricher struct {
	*extract.Uses

	turn   int
	end    int // of its band
	record *record
	base   base
}

func (e *enricher) enrich() {
	for i := range e.record.lines {
		if e.record.lines[i].isLook && !e.isUsed(e.record.lines[i].text) {
			continue // shown only with a name in its result
		}
		if e.record.lines[i].isCall && e.base != "" {
			e.showBelow(e.record.lines[i].text)
		}
		e.show(e.record.lines[i].text)
		e.show(e.record.lines[i].typed)
	}
	e.addSentences()
	e.addNames()
	for i := range e.record.lines {
		if line := &e.record.lines[i]; line.isLook && len(line.names) == 0 && !e.isUsed(line.text) {
			line.text = ""
		}
	}
}

// isUsed reports whether a later turn uses a name in the text of a call. It looks for the name of a
// file both relative to the base and in full.
func (e *enricher) isUsed(text string) bool {
	for found := (extract.Names{Text: text}); found.Scan(); {
		use := e.Of(found.Hash)
		if use == nil && e.base != "" {
			use = e.Of(e.base.hashBelow(text[found.From:found.To]))
		}
		if use != nil && use.Last > e.turn {
			return true
		}
	}
	return false
}

// show notes the names that the record already shows.
func (e *enricher) show(text string) {
	for found := (extract.Names{Text: text, Among: e.Uses}); found.Scan(); {
		e.note(found.Hash, text[found.From:found.To])
	}
}

// showBelow notes the names of files below the base that the record shows relative to it.
func (e *enricher) showBelow(text string) {
	for found := (extract.Names{Text: text}); found.Scan(); {
		if one := text[found.From:found.To]; one[0] != '/' {
			e.note(e.base.hashBelow(one), one)
		}
	}
}

// note notes a name that the record has.
func (e *enricher) note(hash uint64, text string) {
	if use := e.Of(hash); use != nil && use.Shown != e.end {
		use.Shown = e.end
		if use.Before < e.end {
			e.record.names = append(e.record.names, name{text, use.Last, use.Turns})
		}
	}
}

// isWanted reports whether a later turn uses a name and no record shows it: neither a record of
// this band, nor one of a later band. A later band has the name if one of its turns uses it and
// another turn uses it after the band.
func (e *enricher) isWanted(hash uint64) bool {
	use := e.Of(hash)
	return use != nil && use.Last > e.turn && use.Before < e.end && use.Shown != e.end
}

// candidate is a sentence that may be kept.
type candidate struct {
	line, order int
	worth       int
	text        string
}

// addSentences adds the sentences with the highest worth, in the order in which they were said.
func (e *enricher) addSentences() {
	var all []candidate
	for _, source := range e.record.texts {
		text := conversation.WithoutReminders(excerpts.Bytes(source.text, longestText))
		for len(text) > 0 {
			end := extract.SentenceEnd(text)
			one := strings.TrimSpace(text[:end])
			text = text[end:]
			if worth := e.worth(source.role, one); worth > 0 {
				all = append(all, candidate{source.line, len(all), worth, one})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.worth, a.worth) })
	left := sentencesCharacters
	kept := all[:0]
	for _, one := range all {
		one.text = extract.Shorten(one.text, saidCharacters)
		if size := utf8.RuneCountInString(one.text); size <= left {
			left -= size
			kept = append(kept, one)
		}
	}
	slices.SortFunc(kept, func(a, b candidate) int { return cmp.Compare(a.order, b.order) })
	for _, one := range kept {
		e.record.lines[one.line].text += " … " + one.text
		e.show(one.text)
	}
}

// worth returns how much a sentence is worth keeping; 0 drops it.
func (e *enricher) worth(role conversation.Role, sentence string) int {
	if len(sentence) < 8 {
		return 0
	}
	worth := 0
	switch {
	case role == conversation.User && ledger.IsDirective(sentence):
		worth = worthDirective
	case ledger.IsDecision(sentence):
		worth = worthDecision
	case tellsOfError(sentence):
		worth = worthError
	}
	count := 0
	for found := (extract.Names{Text: sentence, Among: e.Uses}); count < mostNames && found.Scan(); {
		if e.isWanted(found.Hash) {
			count++
		}
	}
	return worth + count*worthName
}

// tellsOfError reports whether a sentence is about a failure.
func tellsOfError(sentence string) bool {
	for _, word := range []string{"rror", "fail", "Fail", "FAIL", "panic", "xception", "bug", "crash"} {
		if strings.Contains(sentence, word) {
			return true
		}
	}
	return false
}

// addNames adds to the lines the names that later turns use, those that most turns
// use first.
func (e *enricher) addNames() {
	type mention struct {
		name
		line int
	}
	var all []mention
	for _, source := range slices.Concat(e.record.texts, e.record.details) {
		for found := (extract.Names{Text: source.text, Escaped: source.json, Among: e.Uses}); found.Scan(); {
			use := e.Of(found.Hash)
			if use == nil || use.Found == e.turn || !e.isWanted(found.Hash) {
				continue
			}
			use.Found = e.turn
			all = append(all, mention{name{e.base.below(source.text[found.From:found.To]), use.Last, use.Turns}, source.line})
		}
	}
	slices.SortStableFunc(all, func(a, b mention) int {
		return cmp.Or(cmp.Compare(b.turns, a.turns), cmp.Compare(b.last, a.last))
	})
	left := namesCharacters
	for _, one := range all {
		size := utf8.RuneCountInString(one.text) + 2
		if size > left {
			continue
		}
		left -= size
		line := &e.record.lines[one.line]
		line.names = append(line.names, one.text)
		if e.base != "" {
			e.showBelow(one.text)
		}
		e.show(one.text)
	}
}

// enrich completes the record of a turn; end is the end of its band.
func (r *records) enrich(t *turn, end int) {
	adding := enricher{Uses: r.uses, turn: t.index, end: end, record: t.record, base: r.base}
	adding.enrich()
	t.record.texts, t.record.details = nil, nil
}

// leastBelow is how many bytes a base must save before a record names it.
const leastBelow = 200

// base is the directory that contains most paths in the calls of a conversation. Records name it
// once and write paths below it relative to it. If it is "", they write all paths in full.
type base string

// baseOf returns the base of turns that have been read. It depends on the originals alone.
func baseOf(turns []*turn) base {
	uses := map[string]int{}
	for _, t := range turns {
		calls := t.calls()
		for i := range calls {
			for _, names := range [][]string{calls[i].Reads, calls[i].Writes, calls[i].Deletes} {
				for _, name := range names {
					for dir := path.Dir(path.Clean(name)); path.IsAbs(dir) && dir != "/"; dir = path.Dir(dir) {
						uses[dir]++
					}
				}
			}
		}
	}
	best, most := "", leastBelow
	for dir, count := range uses {
		if saved := count * len(dir); saved > most || saved == most && dir < best {
			best, most = dir, saved
		}
	}
	return base(best)
}

// below returns a text with the paths below the base made relative to it.
func (b base) below(text string) string {
	if b == "" || !strings.Contains(text, string(b)) {
		return text
	}
	text = strings.ReplaceAll(text, "cd "+string(b)+" && ", "")
	var short strings.Builder
	for {
		at := strings.Index(text, string(b))
		if at < 0 {
			short.WriteString(text)
			return short.String()
		}
		end := at + len(b)
		isStart := at == 0 || extract.KindOf[text[at-1]] == 0
		switch {
		case isStart && end+1 < len(text) && text[end] == '/' && extract.KindOf[text[end+1]] != 0:
			short.WriteString(text[:at])
			end++
		default:
			short.WriteString(text[:end])
		}
		text = text[end:]
	}
}

// hashBelow returns the hash of the path that a name is below the base.
func (b base) hashBelow(name string) uint64 {
	return extract.HashOn(extract.HashOn(extract.HashOf(string(b)), "/"), name)
}

// told returns the sentence that explains relative paths in a record, or "" without a base.
func (b base) told() string {
	if b == "" {
		return ""
	}
	return "Paths below " + string(b) + " are written without it.\n"
}
