package search_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/conversation"
)

// spoken is a conversation in which the user begins.
func spoken(texts ...string) []conversation.Message {
	messages := make([]conversation.Message, len(texts))
	for i, text := range texts {
		messages[i] = conversation.Message{Role: []conversation.Role{conversation.User, conversation.Assistant}[i%2], Blocks: []conversation.Block{{Kind: conversation.Text, Text: text}}}
	}
	return messages
}

// best returns the first messages of what answers a question, best first.
func best(messages []conversation.Message, question string) []int {
	var found []int
	for _, match := range search.NewMemory(search.Documents(0, messages)).Search(search.Ask(question), 0, len(messages)) {
		found = append(found, match.Document.From)
	}
	return found
}

// Of two answers with the same words the one of few words is more about them.
func TestLongAnswersAreNotBetterForTheirLength(t *testing.T) {
	t.Parallel()
	long := "The deadline of the sprint may matter. " + strings.Repeat("Consider structure, colors, layout, fonts, and many other things as well. ", 40)
	got := best(spoken("My deadline for the sprint is April 5.", long), "What is the deadline of the sprint?")
	if !slices.Equal(got, []int{0, 1}) {
		t.Errorf("found %v", got)
	}
}

func TestNeighborsLendToEachOther(t *testing.T) {
	t.Parallel()
	first, answer, other := "Which color did you choose for the kitchen?", "Sage, and the color goes with the tiles.", "Any color will do."
	fill := []string{"Good.", "Something else.", "It is."}
	for distance, next := range [][]string{{first, answer}, {first, "Well.", answer}} {
		messages := spoken(slices.Concat(next, fill, []string{other}, fill)...)
		if got := best(messages, "color of the kitchen"); !slices.Equal(got[:2], []int{0, distance + 1}) {
			t.Errorf("found %v, want the answer at %d behind the question", got, distance+1)
		}
	}
	messages := spoken(slices.Concat([]string{first}, fill, []string{answer}, fill, []string{other})...)
	if got := best(messages, "color of the kitchen"); !slices.Equal(got[:2], []int{0, 8}) {
		t.Errorf("found %v although nothing stands next to it", got)
	}
}

// Only the best lend, in their order where nothing is lent.
func TestWhatRanksTooLowLendsNothing(t *testing.T) {
	t.Parallel()
	documents := make([]search.Ranked, search.MostLending+2)
	for i := range documents {
		documents[i] = search.Ranked{From: 10 * i, To: 10*i + 1, Rank: float64(len(documents) - i)}
	}
	last := len(documents) - 1
	documents[last].From, documents[last].To = documents[0].From+1, documents[0].To+1
	before := fmt.Sprint(documents)
	search.Lend(documents, func(one *search.Ranked) search.Ranked { return *one })
	if fmt.Sprint(documents) != before {
		t.Error("the order has changed")
	}
	documents[1].From, documents[1].To = documents[5].From+1, documents[5].To+1
	want := documents[5]
	search.Lend(documents, func(one *search.Ranked) search.Ranked { return *one })
	if documents[1] != want && documents[0] != want && documents[2] != want {
		t.Errorf("what stands next to a good document is not among %v", documents[:3])
	}
}
