package datasets

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kljensen/snowball/english"

	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/conversation"
)

// looked is the number of ranked units that count.
const looked = 10

// Row measures how well a ranking finds the evidence of some questions.
type Row struct {
	Ability   string // empty: of all questions
	Questions int

	Any1, Any5, Any10 float64 // share of questions with some evidence among the first 1, 5, 10
	All5, All10       float64 // share of questions with all of it among the first 5, 10
	Reciprocal        float64 // mean of 1 / place of the first evidence (MRR), 0 beyond ten
	Gain              float64 // mean of the normalized discounted cumulative gain of the first ten (nDCG@10)
}

// Ranking returns for each conversation a function that ranks its units for a question, best
// first.
type Ranking func(told *Conversation) func(question string) []int

// Measure asks all questions of a set. The first row covers all questions, the others each ability.
func Measure(set *Dataset, ranking Ranking) []Row {
	rows := []Row{{}}
	for i := range set.Conversations {
		told := &set.Conversations[i]
		if len(told.Questions) == 0 {
			continue
		}
		rank := ranking(told)
		for _, question := range told.Questions {
			found := rank(question.Text)
			rows[0].note(found, question.Evidence)
			at := slices.IndexFunc(rows, func(row Row) bool { return row.Ability == question.Ability })
			if at < 0 {
				at, rows = len(rows), append(rows, Row{Ability: question.Ability})
			}
			rows[at].note(found, question.Evidence)
		}
	}
	for i := range rows {
		rows[i].mean()
	}
	return rows
}

// note adds a question's figures.
func (r *Row) note(found, evidence []int) {
	r.Questions++
	found = found[:min(looked, len(found))]
	best, gain, ideal := 0, 0.0, 0.0
	among := func(most int) (hits int) {
		for _, unit := range found[:min(most, len(found))] {
			if slices.Contains(evidence, unit) {
				hits++
			}
		}
		return hits
	}
	for place, unit := range found {
		if slices.Contains(evidence, unit) {
			if best == 0 {
				best = place + 1
			}
			gain += 1 / math.Log2(float64(place+2))
		}
	}
	for place := range min(looked, len(evidence)) {
		ideal += 1 / math.Log2(float64(place+2))
	}
	r.Any1, r.Any5, r.Any10 = r.Any1+share(among(1) > 0), r.Any5+share(among(5) > 0), r.Any10+share(among(looked) > 0)
	r.All5, r.All10 = r.All5+share(among(5) == len(evidence)), r.All10+share(among(looked) == len(evidence))
	if best > 0 {
		r.Reciprocal += 1 / float64(best)
	}
	r.Gain += gain / ideal
}

func share(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// mean divides sums by their number.
func (r *Row) mean() {
	for _, sum := range []*float64{&r.Any1, &r.Any5, &r.Any10, &r.All5, &r.All10, &r.Reciprocal, &r.Gain} {
		*sum /= float64(max(r.Questions, 1))
	}
}

// Search ranks as the search of the archive does.
func Search(told *Conversation) func(question string) []int {
	memory := search.NewMemory(search.Documents(0, told.Messages))
	return func(question string) []int {
		var units []int
		for _, match := range memory.Search(search.Ask(question), 0, mostMatches) {
			for at := match.Document.From; at < match.Document.To; at++ {
				units = appendNew(units, told.Units[at])
			}
		}
		return units
	}
}

// mostMatches is the number of documents to ask for, because one session may have many.
const mostMatches = 200

func appendNew(units []int, unit int) []int {
	if slices.Contains(units, unit) {
		return units
	}
	return append(units, unit)
}

// The usual constants of BM25.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// BM25 ranks messages by BM25 over the stems of their words without stop words, as the baseline.
func BM25(told *Conversation) func(question string) []int {
	counts, lengths, having, total := make([]map[string]int, len(told.Messages)), make([]int, len(told.Messages)), map[string]int{}, 0
	for i := range told.Messages {
		counts[i] = map[string]int{}
		for _, word := range words(textOf(&told.Messages[i])) {
			counts[i][word]++
			lengths[i]++
		}
		total += lengths[i]
		for word := range counts[i] {
			having[word]++
		}
	}
	average := float64(total) / float64(max(len(counts), 1))
	return func(question string) []int {
		scores, order := make([]float64, len(counts)), make([]int, len(counts))
		for _, word := range words(question) {
			rarity := search.Rarity(len(counts), having[word])
			for i := range counts {
				if count := float64(counts[i][word]); count > 0 {
					scores[i] += rarity * count * (bm25K1 + 1) / (count + bm25K1*(1-bm25B+bm25B*float64(lengths[i])/average))
				}
			}
		}
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case scores[a] > scores[b]:
				return -1
			case scores[a] < scores[b]:
				return 1
			}
			return 0
		})
		var units []int
		for _, i := range order {
			if scores[i] > 0 {
				units = appendNew(units, told.Units[i])
			}
		}
		return units
	}
}

func textOf(message *conversation.Message) string {
	var text strings.Builder
	for i := range message.Blocks {
		text.WriteString(message.Blocks[i].Text + "\n")
	}
	return text.String()
}

// words returns the stems of a text's words, without stop words.
func words(text string) []string {
	var stems []string
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !isWord(r) }) {
		if !english.IsStopWord(word) {
			stems = append(stems, english.Stem(word, true))
		}
	}
	return stems
}

func isWord(r rune) bool {
	return r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || r > 127
}

// anchors are published results of others on the same sets. "M" is the set with the long histories; its
// paper measures rounds, a question with its answer.
var anchors = []struct{ set, unit, ranking, any1, any5 string }{
	{"LongMemEval s", "session", "the best lexical search", "0.882", "0.972"},
	{"LongMemEval m", "message", "BM25 on rounds, recall@5", "", "0.472"},
	{"LongMemEval m", "message", "Stella V5 on rounds, recall@5", "", "0.660"},
}

// Markdown returns rows of both rankings as a table.
func Markdown(set *Dataset, ours, plain []Row) string {
	var text strings.Builder
	fmt.Fprintf(&text, "**%s: %d questions, evidence is a %s**\n\n", set.Name, ours[0].Questions, set.Unit)
	text.WriteString("| ability | questions | ranking | any@1 | any@5 | any@10 | all@5 | all@10 | MRR | nDCG@10 |\n" + strings.Repeat("| --- ", 10) + "|\n")
	for i := range ours {
		ability := ours[i].Ability
		if ability == "" {
			ability = "all"
		}
		for _, row := range []struct {
			name string
			Row
		}{{"ours", ours[i]}, {"BM25", plain[i]}} {
			fmt.Fprintf(&text, "| %s | %d | %s | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f |\n", strings.ReplaceAll(ability, "_", " "), row.Questions, row.name,
				row.Any1, row.Any5, row.Any10, row.All5, row.All10, row.Reciprocal, row.Gain)
		}
	}
	for _, other := range anchors {
		if strings.HasPrefix(set.Name, other.set) && set.Unit == other.unit {
			fmt.Fprintf(&text, "| all |  | published: %s | %s | %s |  |  |  |  |  |\n", other.ranking, other.any1, other.any5)
		}
	}
	return text.String()
}
