package search

import (
	"slices"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
)

const (
	// MostPhrased is how many of the best documents are compared with the phrases of a question.
	MostPhrased = 40
	// LeastPhrased is the score below which a document cannot contain a phrase: it lacks many words.
	LeastPhrased = 0.5
	// leastIdeograms is the minimum length of a phrase in a script without spaces. Two characters are a term.
	leastIdeograms = 3
)

// phrases returns what a short question asks for word by word, in the form of named: its quoted texts, and the
// question as a whole. Without the common words at its beginning and its end a question is a phrase only if it
// has a number, such as "What does part 2, line 40 say?", because others are seldom meant word by word.
func phrases(text string, quotations []string) []string {
	if text = strings.TrimSpace(text); len(text) >= longestName || strings.Contains(text, "\n") {
		return nil
	}
	var found []string
	add := func(words []string) {
		phrase := strings.Join(words, " ")
		if len(words) > 1 || startsIdeogram(phrase) && utf8.RuneCountInString(phrase) >= leastIdeograms {
			found = append(found, phrase)
		}
	}
	for _, quotation := range quotations {
		add(strings.Fields(named(quotation)))
	}
	words := strings.Fields(named(text))
	add(words)
	for len(words) > 0 && isCommon(words[0]) {
		words = words[1:]
	}
	for len(words) > 0 && isCommon(words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	if slices.ContainsFunc(words, isNumber) {
		add(words)
	}
	return found
}

func isNumber(word string) bool { return strings.Trim(word, "0123456789") == "" }

// WithoutPhrases returns the question in any order of its words.
func (q *Question) WithoutPhrases() Question { return Question{Wanted: q.Wanted} }

// HasPhrase reports whether the question has words to find side by side.
func (q *Question) HasPhrase() bool { return len(q.phrases) > 0 }

// QuotedIn reports whether any document of messages contains a phrase of the question.
func (q *Question) QuotedIn(messages []conversation.Message) bool {
	documents := Documents(0, messages)
	return slices.ContainsFunc(documents, func(d Document) bool { return q.quotedIn(&d) })
}

// quotedIn reports whether a document contains a phrase of the question. A text that is the question and
// nothing else does not count, because it cannot answer it.
func (q *Question) quotedIn(document *Document) bool {
	return slices.ContainsFunc(document.fields, func(f field) bool { return q.quotedBy(Bounded(f.text, 2*maxFieldBytes)) })
}

func (q *Question) quotedBy(text string) bool {
	if !q.HasPhrase() {
		return false
	}
	text = named(text)
	return text != q.whole && slices.ContainsFunc(q.phrases, func(phrase string) bool { return contains(text, phrase) })
}

// contains reports whether a text contains a phrase, both in the form of named. A phrase begins and ends where
// a word does, except in scripts without spaces.
func contains(text, phrase string) bool {
	first, size := utf8.DecodeRuneInString(phrase)
	last, _ := utf8.DecodeLastRuneInString(phrase)
	for at := strings.Index(text, phrase); at >= 0; {
		end := at + len(phrase)
		if (at == 0 || text[at-1] == ' ' || isIdeogram(first)) && (end == len(text) || text[end] == ' ' || isIdeogram(last)) {
			return true
		}
		next := strings.Index(text[at+size:], phrase)
		if next < 0 {
			return false
		}
		at += size + next
	}
	return false
}

// QuotedFirst moves documents with a phrase of the question before the others. Both keep their order.
func QuotedFirst[T any](documents []T, isQuoted func(*T) bool) {
	slices.SortStableFunc(documents, func(a, b T) int {
		switch x, y := isQuoted(&a), isQuoted(&b); {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
}
