package ipc

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/excerpts"
	"palimpsest/pipeline/ledger"
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
	*uses

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
	for found := (names{text: text}); found.scan(); {
		use := e.of(found.hash)
		if use == nil && e.base != "" {
			use = e.of(e.base.hashBelow(text[found.from:found.to]))
		}
		if use != nil && use.last > e.turn {
			return true
		}
	}
	return false
}

// show notes the names that the record already shows.
func (e *enricher) show(text string) {
	for found := (names{text: text, among: e.uses}); found.scan(); {
		e.note(found.hash, text[found.from:found.to])
	}
}

// showBelow notes the names of files below the base that the record shows relative to it.
func (e *enricher) showBelow(text string) {
	for found := (names{text: text}); found.scan(); {
		if one := text[found.from:found.to]; one[0] != '/' {
			e.note(e.base.hashBelow(one), one)
		}
	}
}

// note notes a name that the record has.
func (e *enricher) note(hash uint64, text string) {
	if use := e.of(hash); use != nil && use.shown != e.end {
		use.shown = e.end
		if use.before < e.end {
			e.record.names = append(e.record.names, name{text, use.last, use.turns})
		}
	}
}

// isWanted reports whether a later turn uses a name and no record shows it: neither a record of
// this band, nor one of a later band. A later band has the name if one of its turns uses it and
// another turn uses it after the band.
func (e *enricher) isWanted(hash uint64) bool {
	use := e.of(hash)
	return use != nil && use.last > e.turn && use.before < e.end && use.shown != e.end
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
			end := sentenceEnd(text)
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
		one.text = shorten(one.text, saidCharacters)
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
	for found := (names{text: sentence, among: e.uses}); count < mostNames && found.scan(); {
		if e.isWanted(found.hash) {
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
		for found := (names{text: source.text, escaped: source.json, among: e.uses}); found.scan(); {
			use := e.of(found.hash)
			if use == nil || use.found == e.turn || !e.isWanted(found.hash) {
				continue
			}
			use.found = e.turn
			all = append(all, mention{name{e.base.below(source.text[found.from:found.to]), use.last, use.turns}, source.line})
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
	adding := enricher{uses: r.uses, turn: t.index, end: end, record: t.record, base: r.base}
	adding.enrich()
	t.record.texts, t.record.details = nil, nil
}
