package search

import (
	"cmp"
	"runtime"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
)

// Memory is an in-memory index of documents, such as those of one conversation. It ranks as the database
// does. It is not safe for concurrent use.
type Memory struct {
	documents []Document
	postings  map[string][]posting
}

type posting struct {
	document int
	level    int
}

// NewMemory returns an index of documents in the order of their time.
func NewMemory(documents []Document) *Memory {
	memory := &Memory{documents: documents, postings: map[string][]posting{}}
	terms := make([][]Term, len(documents))
	var readers errgroup.Group
	readers.SetLimit(runtime.GOMAXPROCS(0))
	for i := range documents {
		readers.Go(func() error {
			terms[i] = documents[i].Terms()
			return nil
		})
	}
	_ = readers.Wait() // they return no errors
	for i := range documents {
		for _, term := range terms[i] {
			memory.postings[term.Text] = append(memory.postings[term.Text], posting{document: i, level: term.Level})
		}
	}
	return memory
}

// Match is a document that answers a question.
type Match struct {
	Document Document
	Rank     float64 // the order of matches before neighbors lend
	Score    float64 // share of the question's weight that the document holds, 0 to 1
}

// Recency is the newest document's maximum gain in rank over the oldest, as a share. It decides between
// similar matches.
const Recency = 0.02

// Search returns the documents before message before (0 means all) that answer a question, best first. Equal
// matches are sorted newest first.
func (m *Memory) Search(question Question, before, limit int) []Match {
	documents := len(m.documents)
	if before > 0 {
		documents, _ = slices.BinarySearchFunc(m.documents, before, func(d Document, before int) int { return cmp.Compare(d.From, before) })
	}
	ranks, shares, whole := map[int]float64{}, map[int]float64{}, 0.0
	for _, wanted := range question.Wanted {
		found := m.postings[wanted.Text]
		visible, _ := slices.BinarySearchFunc(found, documents, func(p posting, end int) int { return cmp.Compare(p.document, end) })
		if visible == 0 && IsOptional(wanted.Text) {
			continue
		}
		weight := wanted.Weight * Rarity(documents, visible)
		whole += weight
		for _, posting := range found[:visible] {
			if before > 0 && m.documents[posting.document].To > before {
				continue
			}
			ranks[posting.document] += weight * Impact(posting.level)
			shares[posting.document] += weight
		}
	}
	matches := make([]Match, 0, len(ranks))
	for i, rank := range ranks {
		newness := float64(i+1) / float64(documents)
		matches = append(matches, Match{Document: m.documents[i], Rank: rank * (1 + Recency*newness), Score: shares[i] / whole})
	}
	slices.SortFunc(matches, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(b.Document.From, a.Document.From), cmp.Compare(a.Document.Part, b.Document.Part))
	})
	Lend(matches, func(m *Match) Ranked { return Ranked{From: m.Document.From, To: m.Document.To, Rank: m.Rank} })
	return matches[:min(limit, len(matches))]
}

// IsOptional reports whether a term that no document has is ignored: a hint, or two Chinese characters, which
// may belong to two words.
func IsOptional(term string) bool {
	first, size := utf8.DecodeRuneInString(term)
	second, rest := utf8.DecodeRuneInString(term[size:])
	return IsHint(term) || unicode.Is(unicode.Han, first) && unicode.Is(unicode.Han, second) && size+rest == len(term)
}

// IsHint reports whether a term comes from a document's properties and not from its words.
func IsHint(term string) bool {
	return term != "" && (term[:1] == namedTerm || term[:1] == pathTerm || term[:1] == readTerm || term[:1] == toolTerm)
}
