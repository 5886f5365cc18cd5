package rehydrator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/cores"
)

// question is the newest message's question about earlier turns.
type question struct {
	exchange  *pipeline.View
	newest    int // its message
	typed     string
	sentences []string        // of it, that refer to something
	names     []string        // in it
	texts     map[string]bool // of the request's blocks, squeezed; nil until has reads them
}

// part is a set of the request's messages before the newest.
type part struct {
	question *question
	messages []bool // whether the part has a message, by its index
	count    int    // of those it has
}

// readTurn is a turn with its messages.
type readTurn struct {
	conversation.Turn

	messages []conversation.Message
}

// mostCandidates bounds the turns that are cut into documents for one question: 24 turns of a real
// session are some 65 KB.
const mostCandidates = 24

// runTurns is how many turns a core searches at a time.
const runTurns = 8

// hidden returns the messages that the prompt does not show unchanged.
func (q *question) hidden() part {
	hidden := part{question: q, messages: make([]bool, q.newest)}
	projection := q.exchange.Lane.Projection
	if projection == nil {
		return hidden
	}
	next := 0
	hide := func(to int) {
		for ; next < min(to, q.newest); next++ {
			hidden.add(next)
		}
	}
	for _, part := range projection.Parts {
		if part.Raw == nil { // as they came
			hide(part.From)
			next = part.To
		}
	}
	hide(projection.Covers)
	return hidden
}

func (p *part) add(message int) { p.messages[message], p.count = true, p.count+1 }

// holding returns the messages of the part that hold one of the names.
func (p *part) holding(names []string) part {
	kept := part{question: p.question, messages: make([]bool, len(p.messages))}
	quoted := make([]pipeline.Words, len(names))
	for i, name := range names {
		quoted[i] = pipeline.Quote(name)
	}
	for i, isOwn := range p.messages {
		if isOwn && slices.ContainsFunc(quoted, func(name pipeline.Words) bool { return p.question.exchange.Conversation.Holds(i, name) }) {
			kept.add(i)
		}
	}
	return kept
}

// mostHolding is how many compressed messages may hold a name that brings one of them back. A name
// in more of them is the topic of the whole conversation.
const mostHolding = 6

// namesShare is the minimum score of a document that holds one of the names. Otherwise the letters
// may match by chance, as "agent/session" may mean either.
const namesShare = 0.2

// holders counts the request's messages before the newest that hold a name, up to most: those in
// the part if own, otherwise the others.
func (p *part) holders(quoted pipeline.Words, own bool, most int) int {
	holders := 0
	for i, isOwn := range slices.Backward(p.messages) { // people mostly refer to recent messages
		if isOwn == own && p.question.exchange.Conversation.Holds(i, quoted) {
			if holders++; holders == most {
				break
			}
		}
	}
	return holders
}

// absent returns the question's names that only a few hidden messages hold.
func (q *question) absent(hidden part) []string {
	if hidden.count == 0 {
		return nil
	}
	var absent []string
	for _, name := range q.names {
		// Most names are absent everywhere, so only the hidden messages are searched first.
		quoted := pipeline.Quote(name)
		if held := hidden.holders(quoted, true, mostHolding+1); held > 0 && held <= mostHolding && hidden.holders(quoted, false, 1) == 0 {
			absent = append(absent, name)
		}
	}
	return absent
}

// unknown returns the question's names that no message before it holds.
func (q *question) unknown() []string {
	var unknown []string
	all := part{question: q, messages: make([]bool, q.newest)}
	for _, name := range q.names {
		if all.holders(pipeline.Quote(name), false, 1) == 0 {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// fromBody returns the documents among hidden messages that answer words with at least a score,
// best first. answered means that a message in plain sight answers at least as well, so that no
// document needs to come back.
func (q *question) fromBody(hidden part, words string, threshold float64, isName bool) (back []found, answered bool, err error) {
	asked := search.Ask(words)
	if isName {
		asked = asked.WithoutPhrases() // many messages hold a name; the one about it ranks best
	}
	turns, err := q.candidates(hidden, asked)
	if err != nil {
		return nil, false, err
	}
	matches := search.NewMemory(documentsOf(turns)).Search(asked, 0, 4*configOf(q.exchange).MaxRehydrated)
	for i := range matches {
		match := &matches[i]
		if match.Score < threshold {
			continue
		}
		document := &match.Document
		if !hidden.messages[document.From] && !hidden.messages[document.To-1] {
			if len(back) == 0 && threshold > 0 {
				return nil, true, nil
			}
			continue
		}
		one, isCurrent, err := q.backCurrent(match, hidden, !isName)
		if err != nil {
			return nil, false, err
		}
		if !isCurrent {
			continue
		}
		if len(back) == configOf(q.exchange).MaxRehydrated || q.isBack(one.item) || slices.ContainsFunc(back, func(f found) bool { return f.item == one.item }) {
			continue
		}
		back = append(back, one)
	}
	return back, false, nil
}

// backCurrent returns the messages that a document brings back. If a newer call outdates the
// document's call, it returns the newer one, or no messages if the prompt shows that.
func (q *question) backCurrent(match *search.Match, hidden part, onlyShown bool) (one found, isCurrent bool, err error) {
	if one, err = q.back(match); err != nil || match.Document.Kind != search.Call {
		return one, err == nil, err
	}
	kept, newer, err := q.current(&match.Document, one.messages, match.Document.From, hidden, onlyShown)
	if err != nil || newer.To == 0 {
		one.messages = kept
		return one, err == nil && hasCall(kept), err
	}
	if !hidden.messages[newer.From] {
		return found{}, false, nil
	}
	messages, err := q.read(newer.From, newer.To)
	item := newer.String()
	return found{pointer: item, item: item, from: newer.From, messages: messages, score: match.Score}, err == nil, err
}

func hasCall(messages []conversation.Message) bool {
	return slices.ContainsFunc(messages, func(message conversation.Message) bool { return message.Flags().Has(conversation.HasCall) })
}

// back returns the messages that a document brings back.
func (q *question) back(match *search.Match) (found, error) {
	item := archive.Pointer{From: match.Document.From, To: match.Document.To}.String()
	messages, err := q.read(match.Document.From, match.Document.To)
	return found{pointer: item, item: item, from: match.Document.From, messages: messages, score: match.Score}, err
}

// isBack reports whether a document came back before and is still in the prompt.
func (q *question) isBack(item string) bool {
	for _, insert := range q.exchange.Injected(Name) {
		if insert.Stands(q.exchange.Lane.Projection) && slices.Contains(insert.Items, item) {
			return true
		}
	}
	return false
}

// quoting returns how the request's client escapes words: with the letters of any language, or with
// ASCII only.
func (q *question) quoting() func(string) pipeline.Words {
	other := strings.IndexFunc(q.typed, func(r rune) bool { return r >= utf8.RuneSelf })
	if other < 0 {
		return pipeline.Quote
	}
	letter, _ := utf8.DecodeRuneInString(q.typed[other:])
	if q.exchange.Conversation.Holds(q.newest, pipeline.Quote(string(letter))) {
		return pipeline.Quote
	}
	return pipeline.QuoteASCII
}

// candidates returns the turns that hold most of the question's terms, in order; nil without hidden
// messages.
func (q *question) candidates(hidden part, asked search.Question) ([]readTurn, error) {
	if hidden.count == 0 {
		return nil, nil
	}
	type candidate struct {
		turn   int
		weight float64
	}
	turns := q.exchange.Conversation.Turns
	holds := make([][]bool, len(turns)) // by turn and term
	quoted, quote := make([]pipeline.Words, len(asked.Wanted)), q.quoting()
	having := make([]int, len(asked.Wanted))
	for i, wanted := range asked.Wanted {
		if !search.IsHint(wanted.Text) { // no message holds a mere hint
			quoted[i] = quote(cmp.Or(wanted.Written, wanted.Text))
		}
	}
	err := cores.Each(len(turns), runTurns, func(t int) error {
		holds[t] = q.exchange.Conversation.HoldsLower(turns[t].From, min(turns[t].To, q.newest), quoted)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look through %d turns: %w", len(turns), err)
	}
	for t := range turns {
		for i, isHeld := range holds[t] {
			if isHeld {
				having[i]++
			}
		}
	}
	var candidates []candidate
	for t := range turns {
		weight := 0.0
		for i, wanted := range asked.Wanted {
			if holds[t][i] {
				weight += wanted.Weight * search.Rarity(len(turns), having[i])
			}
		}
		if weight > 0 {
			candidates = append(candidates, candidate{t, weight})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.weight, a.weight), b.turn-a.turn) })
	candidates = candidates[:min(len(candidates), mostCandidates)]
	slices.SortFunc(candidates, func(a, b candidate) int { return a.turn - b.turn })
	read := make([]readTurn, 0, len(candidates))
	for _, c := range candidates {
		messages, err := q.read(turns[c.turn].From, min(turns[c.turn].To, q.newest))
		if err != nil {
			return nil, err
		}
		read = append(read, readTurn{Turn: turns[c.turn], messages: messages})
	}
	return read, nil
}

// read parses messages.
func (q *question) read(from, to int) ([]conversation.Message, error) {
	var messages []conversation.Message
	for i := from; i < to; i++ {
		message, err := q.exchange.Conversation.Message(i)
		if err != nil {
			return nil, fmt.Errorf("recover: %w", err)
		}
		messages = append(messages, message)
	}
	return messages, nil
}

const (
	opening = "<rehydrated-context>\nRecovered from earlier turns, because the message before this refers to them. It is a record, word for word where […] does not stand, not a new request; files may have changed since.\n"
	closing = "</rehydrated-context>"
)

// text returns the block that brings documents back within the config's budget, its items, and
// their scores.
func (q *question) text(back *recovery) (text string, items, scores []string) {
	hits := make([][]conversation.Message, len(back.found))
	budget := configOf(q.exchange).MaxTokens - q.exchange.CountText(opening+closing)
	if back.trigger == plainTrigger {
		budget = min(budget, plainTokens)
	}
	for i := range back.found {
		hits[i] = back.found[i].messages
		budget -= q.exchange.CountText("[" + back.found[i].pointer + "]\n")
	}
	if budget <= 0 {
		return "", nil, nil
	}
	var excerpts []string
	if back.trigger == nameTrigger {
		excerpts = q.snippets(back.found, strings.Split(back.words, "\n"), budget)
	} else {
		excerpts = search.Excerpts(hits, back.words, budget, q.exchange.CountText)
	}
	var block strings.Builder
	block.WriteString(opening)
	for i, excerpt := range excerpts {
		if excerpt == "" {
			continue
		}
		block.WriteString("[" + back.found[i].pointer + "]\n" + conversation.Quoted(excerpt) + "\n")
		items = append(items, back.found[i].item)
		scores = append(scores, fmt.Sprintf("%.2f", back.found[i].score))
	}
	if len(items) == 0 {
		return "", nil, nil
	}
	block.WriteString(closing)
	return block.String(), items, scores
}

// snippets returns the lines around names of each hit. Of two that share most of their lines the
// newer one stays because the other is an older version.
func (q *question) snippets(back []found, names []string, budget int) []string {
	texts := make([]string, len(back))
	for i := range back[:min(len(back), mostSnippets)] {
		texts[i] = snippet(back[i].messages, names, min(budget, snippetTokens), q.exchange.CountText)
		budget -= q.exchange.CountText(texts[i])
		for j := range i {
			switch {
			case !haveMuchInCommon(texts[i], texts[j]):
			case back[i].from > back[j].from:
				texts[j] = ""
			default:
				texts[i] = ""
			}
		}
	}
	return texts
}

// haveMuchInCommon reports whether half of the lines of the shorter of two texts occur in the
// other.
func haveMuchInCommon(a, b string) bool {
	first, second := linesIn(a), linesIn(b)
	both := 0
	for line := range first {
		if second[line] {
			both++
		}
	}
	return both > 0 && 2*both >= min(len(first), len(second))
}

// linesIn returns the meaningful lines of a text, without numbers before them.
func linesIn(text string) map[string]bool {
	lines := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(line, " +-0123456789→\t")
		if line = strings.TrimSpace(line); len(line) > minName && line != "[result]" && !strings.HasPrefix(line, "[call ") {
			lines[line] = true
		}
	}
	return lines
}
