package search

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// Term is a term of a document with its weight.
type Term struct {
	Text  string
	Level int // 0 to Levels-1
}

// Levels is the number of weight steps of a term in a document. A term's contribution to a score, except its
// rarity, is fixed at indexing, so that the index needs neither counts nor lengths.
const Levels = 4

// maxTerms is the maximum number of terms of a document. Later ones are dropped.
const maxTerms = 4096

// The prefixes of terms that come from a document's properties. No word begins with them.
const (
	namedTerm = "=" // a call's whole description
	pathTerm  = ">" // a file that a call names, and the ends of its path
	readTerm  = "<" // a file that a call reads, and the ends of its path
	toolTerm  = "!" // a tool's name
)

// The saturation and the normalization by length of BM25 (Robertson and Zaragoza, "The Probabilistic
// Relevance Framework: BM25 and Beyond", 2009), with the fields of BM25F weighted before they saturate. The
// length of results, contents and messages says nothing about relevance, so only these are normalized, each
// by its usual length.
const (
	saturation   = 1.2
	lengthShare  = 0.6
	averageWords = 400.0 // of results and contents
	spokenWords  = 50.0  // of messages by a person or a model
	mostCounted  = 4.0   // of one word in one long field
)

// muchPrinted is the minimum output of an informative call, in bytes. Of several runs of the same command,
// questions are more often about such a call than about one that printed a line.
const muchPrinted = 400

// Terms returns the terms of a document without duplicates, sorted by text.
func (d *Document) Terms() []Term {
	weights := map[string]float64{}
	certain := map[string]bool{}
	for _, field := range d.fields {
		d.weigh(&field, weights, certain)
	}
	if d.Tool != "" {
		certain[toolTerm+strings.ToLower(d.Tool)] = true
	}
	for _, path := range d.Paths {
		ends(folded(path), func(end string) {
			certain[pathTerm+end] = true
			if d.Reads {
				certain[readTerm+end] = true
			}
		})
	}
	terms := make([]Term, 0, len(weights)+len(certain))
	names := Levels - 1
	if d.printed() < muchPrinted {
		names--
	}
	for text := range certain {
		at := Levels - 1
		if text[:1] == namedTerm {
			at = names
		}
		terms = append(terms, Term{Text: text, Level: at})
	}
	for text, weight := range weights {
		terms = append(terms, Term{Text: text, Level: level(weight / (weight + saturation))})
	}
	slices.SortFunc(terms, func(a, b Term) int { return cmp.Compare(a.Text, b.Text) })
	return terms
}

// weigh adds a field's words to the weights of a document's terms.
func (d *Document) weigh(field *field, weights map[string]float64, certain map[string]bool) {
	if field.name {
		certain[namedTerm+named(field.text)] = true
	}
	counts, words := map[string]float64{}, 0
	eachTerm(Bounded(field.text, 2*maxFieldBytes), func(term string) {
		if words++; len(weights)+len(counts) < maxTerms {
			counts[term]++
		}
	})
	norm := 1.0
	if average := field.averageWords(); average > 0 {
		norm = max(1, 1-lengthShare+lengthShare*float64(words)/average)
	}
	for term, count := range counts {
		weights[term] += field.weight * min(count, mostCounted) / norm
	}
}

// printed returns how many bytes a call returned.
func (d *Document) printed() int {
	bytes := 0
	for i := range d.blocks {
		if d.blocks[i].Kind == conversation.ToolResult {
			bytes += len(d.blocks[i].Text)
		}
	}
	return bytes
}

// averageWords returns the usual number of words of a field like this, or 0 for a field whose length is not
// normalized.
func (f *field) averageWords() float64 {
	switch {
	case f.spoken:
		return spokenWords
	case f.weight <= inContent:
		return averageWords
	}
	return 0
}

// named returns a description in its form for comparison: folded words without punctuation.
func named(text string) string {
	var words strings.Builder
	eachRun(text, func(r run) {
		if words.Len() > 0 {
			words.WriteByte(' ')
		}
		words.WriteString(strings.ToLower(r.text))
	})
	return words.String()
}

// level returns the step of a share from 0 to 1.
func level(share float64) int { return min(Levels-1, int(share*Levels)) }

// Impact returns the weight of a level, 0 to 1.
func Impact(level int) float64 { return (float64(level) + 0.5) / Levels }

// Rarity returns the weight of a term that occurs in having of documents documents: the probabilistic inverse
// document frequency, which is above 0 for every term.
func Rarity(documents, having int) float64 {
	return math.Log1p((float64(documents-having) + 0.5) / (float64(having) + 0.5))
}

// isLetter reports whether a term is a single letter, which is hardly selective.
func isLetter(term string) bool { return len(term) == 1 && isASCIILetter(rune(term[0])|0x20) }

// Required returns the terms that restrict a search to calls of a tool, and to calls that name a path or one
// that ends with it. Empty arguments add no restriction.
func Required(tool, path string) []Term {
	var terms []Term
	if tool != "" {
		terms = append(terms, Term{Text: toolTerm + strings.ToLower(tool), Level: Levels - 1})
	}
	if path = folded(path); path != "" {
		terms = append(terms, Term{Text: pathTerm + path, Level: Levels - 1})
	}
	return terms
}
