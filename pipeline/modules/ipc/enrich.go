package ipc

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

// What L2 keeps of a turn beyond its first sentences and calls, in characters.
const (
	sentencesCharacters = 400
	namesCharacters     = 160
	longestText         = 16 << 10 // bytes of one text that are searched for sentences
)

// What a sentence is worth for what it holds, and a name in it that a later turn uses
// and no record has.
const (
	worthDirective = 8
	worthDecision  = 6
	worthError     = 4
	worthName      = 2
	mostNames      = 3 // in a sentence that count
)

// name is a name that turns use.
type name struct {
	text  string
	hash  uint64
	last  int // newest turn that uses it
	turns int // turns that use it
}

// noteAll makes the records of all turns that may go to L2, the newest first: what a
// newer one has an older one need not repeat.
func (p *planner) noteAll() error {
	if p.uses != nil {
		return nil
	}
	p.uses = newUses()
	for _, t := range p.turns {
		if err := p.read(t); err != nil {
			return err
		}
		p.uses.addTurn(t.index, t.messages)
	}
	for _, t := range slices.Backward(p.turns) {
		if t.deepest >= 2 && t.record == nil {
			t.record = p.newRecord(t)
		}
	}
	return nil
}

// enrich adds to a turn's record what it leaves out and should not: the sentences that
// hold a directive, a decision, an error or a name that later turns use, and such
// names of calls and results.
func (u *uses) enrich(turn int, r *record) {
	for i := range r.lines {
		u.show(r, r.lines[i].text)
	}
	u.addSentences(turn, r)
	u.addNames(turn, r)
}

// show notes the names that a record has.
func (u *uses) show(r *record, text string) {
	for found := (names{text: text}); found.scan(); {
		if use := u.of(found.hash); use != nil && !use.shown {
			use.shown = true
			r.names = append(r.names, name{text[found.from:found.to], found.hash, use.last, use.turns})
		}
	}
}

// candidate is a sentence that may be kept.
type candidate struct {
	line, order int
	worth       int
	text        string
}

// addSentences adds the sentences that are worth most, in the order in which they
// were said.
func (u *uses) addSentences(turn int, r *record) {
	var all []candidate
	for _, source := range r.texts {
		text := conversation.WithoutReminders(source.text[:cutBytes(source.text, longestText)])
		for len(text) > 0 {
			end := sentenceEnd(text)
			one := strings.TrimSpace(text[:end])
			text = text[end:]
			if worth := u.worth(turn, source.role, one); worth > 0 {
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
		r.lines[one.line].text += " … " + one.text
		u.show(r, one.text)
	}
}

// worth says how much a sentence is worth keeping; 0: not at all.
func (u *uses) worth(turn int, role conversation.Role, sentence string) int {
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
	for found := (names{text: sentence}); found.scan() && count < mostNames; {
		if use := u.of(found.hash); use != nil && use.last > turn && !use.shown {
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
func (u *uses) addNames(turn int, r *record) {
	type mention struct {
		name
		line int
	}
	var all []mention
	collect := func(source source) {
		for found := (names{text: source.text, escaped: source.json}); found.scan(); {
			use := u.of(found.hash)
			if use == nil || use.last <= turn || use.shown || use.found == turn {
				continue
			}
			use.found = turn
			all = append(all, mention{name{source.text[found.from:found.to], found.hash, use.last, use.turns}, source.line})
		}
	}
	for _, source := range r.texts {
		collect(source)
	}
	for _, source := range r.details {
		collect(source)
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
		r.lines[one.line].names = append(r.lines[one.line].names, one.text)
		u.show(r, one.text)
	}
}

// cutBytes returns the length of the first bytes of a text without splitting a
// character.
func cutBytes(text string, bytes int) int {
	if len(text) <= bytes {
		return len(text)
	}
	for bytes > 0 && !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return bytes
}
