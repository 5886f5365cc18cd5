package search

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"palimpsest/pipeline/conversation"
)

// WithoutRecalls returns messages without the calls of the product's own archive tools and their results, and
// whether there were any. The messages keep their places.
func WithoutRecalls(messages []conversation.Message) (others []conversation.Message, had bool) {
	recalls := recallsIn(messages)
	if len(recalls) == 0 {
		return messages, false
	}
	others = slices.Clone(messages)
	for i := range others {
		j := -1
		others[i].Blocks = slices.DeleteFunc(slices.Clone(others[i].Blocks), func(conversation.Block) bool {
			j++
			return recalls[place{i, j}]
		})
	}
	return others, true
}

// recallsIn returns the places of recalls and of their results.
func recallsIn(messages []conversation.Message) map[place]bool {
	var recalls map[place]bool
	var results answers
	for i := range messages {
		for j := range messages[i].Blocks {
			block := &messages[i].Blocks[j]
			if block.Kind != conversation.ToolCall || !isRecall(block.Name) {
				continue
			}
			if recalls == nil {
				recalls, results = map[place]bool{}, resultsOf(messages)
			}
			recalls[place{i, j}] = true
			if at, answered := results.of(i, block.ID); answered {
				recalls[at] = true
			}
		}
	}
	return recalls
}

// isRecall reports whether a tool is one of the product's own archive tools, with or without the server's
// name that clients put in front: "mcp__palimpsest__recall_search".
func isRecall(tool string) bool {
	for _, own := range []string{"recall_search", "recall_get"} {
		if server, found := strings.CutSuffix(tool, own); found && (server == "" || strings.Contains(server, "palimpsest")) {
			return true
		}
	}
	return false
}

// In a conversation the messages around one often show its topic, so adjacent messages lend it one share of
// their rank, and those next to them another. The shares come from make bench-memory. Calls are excluded,
// because the messages next to a call are rarely about the same file.
const (
	nextShare   = 0.2
	secondShare = 0.1
)

// MostLending is how many of the best documents lend to their neighbors. The others stay after them.
const MostLending = 200

// Ranked is a document that answers a question, with its place and rank.
type Ranked struct {
	Lane     uuid.UUID
	From, To int // messages of the lane, To excluded
	Rank     float64
}

// Lend sorts documents, which come best first, in place by their ranks including those lent by neighbors.
// Only documents of a single message lend, within their lane.
func Lend[T any](documents []T, of func(*T) Ranked) {
	documents = documents[:min(MostLending, len(documents))]
	type place struct {
		lane    uuid.UUID
		message int
	}
	best := map[place]float64{}
	ranked := make([]Ranked, len(documents))
	for i := range documents {
		one := of(&documents[i])
		ranked[i] = one
		if one.isAlone() {
			at := place{one.Lane, one.From}
			best[at] = max(best[at], one.Rank)
		}
	}
	order := make([]int, len(documents))
	for i := range ranked {
		one := &ranked[i]
		order[i] = i
		if one.isAlone() {
			one.Rank += nextShare*(best[place{one.Lane, one.From - 1}]+best[place{one.Lane, one.From + 1}]) +
				secondShare*(best[place{one.Lane, one.From - 2}]+best[place{one.Lane, one.From + 2}])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ranked[b].Rank, ranked[a].Rank) })
	before := slices.Clone(documents)
	for at, i := range order {
		documents[at] = before[i]
	}
}

// isAlone reports whether the document is one message. This includes a call without a result.
func (r *Ranked) isAlone() bool { return r.To == r.From+1 }

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
	Quoted   bool    // it contains a phrase of the question word by word
}

// Recency is the newest document's maximum gain in rank over the oldest, as a share. It decides between
// similar matches.
const Recency = 0.02

// Search returns the documents before message before (0 means all) that answer a question, best first. Those
// with a phrase of the question come before the others. Equal matches are sorted newest first.
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
	if question.HasPhrase() {
		for i := range matches[:min(MostPhrased, len(matches))] {
			matches[i].Quoted = matches[i].Score >= LeastPhrased && question.quotedIn(&matches[i].Document)
		}
		QuotedFirst(matches, func(m *Match) bool { return m.Quoted })
	}
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
