package search_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/conversation"
)

// parts are numbered texts whose lines all have the words of each other's numbers.
func parts(most int) []conversation.Message {
	var messages []conversation.Message
	for part := 1; part <= most; part++ {
		var text strings.Builder
		for line := 1; line <= most; line++ {
			fmt.Fprintf(&text, "Part %d, line %d: the copper weighs %d grams.\n", part, line, part*line*17%9973)
		}
		id := strconv.Itoa(part)
		messages = append(messages, message(conversation.Assistant, called(id, "Bash", `{"command":"cat next"}`)), message(conversation.User, answered(id, text.String())))
	}
	return messages
}

func TestAnExactPhraseComesFirst(t *testing.T) {
	t.Parallel()
	numbered := parts(45)
	for question, want := range map[string]int{
		"Part 2, line 40": 2, "Part 2, line 40:": 2, "part 40 line 2": 40, "what does Part 7, line 12 say?": 7, `the weight in "part 31, line 9", please`: 31,
	} {
		if got := best(numbered, question)[0]/2 + 1; got != want {
			t.Errorf("%q finds part %d, want %d", question, got, want)
		}
	}
	for question, talk := range map[string][]string{
		"quick brown fox":           {"A brown and quick fox, fox, fox.", "The quick, brown fox.", "Unrelated."},
		"the cold store":            {"Store the cold things. Store them cold.", "It is by the gate, the cold store.", "The cold store?"},
		"a sub part 2":              {"Part 2 of it has subs: a, 2. Part 2, sub 2.", "See sub part 2.", "In the part2 sub and the sub part 22, part 2."},
		"鍵の更新":                      {"更新の鍵、鍵の話、更新、更新。", "昨日の鍵の更新手順です。", "鍵。"},
		"`retry budget` in handler": {"The handler has a budget to retry, a retry handler, a budget.", "The retry budget is three; the handler reads it.", "No."},
	} {
		if got := best(spoken(talk...), question)[0]; got != 1 {
			t.Errorf("%q finds %q", question, talk[got])
		}
	}
}

func TestSnippetsBeginWithTheLineOfThePhrase(t *testing.T) {
	t.Parallel()
	snippet := search.Snippet(parts(45)[38:40], search.Ask("Part 20, line 31"), 200)
	if !strings.Contains(snippet, "Part 20, line 31:") {
		t.Errorf("the snippet is %q", snippet)
	}
	lines := strings.Split(strings.Repeat("20 31 31 part line\n", 30)+"Part 20, line 31 is here.", "\n")
	texts := search.Excerpts([][]conversation.Message{{said(conversation.User, strings.Join(lines, "\n"))}}, "Part 20, line 31", 30, words)
	if !slices.Contains(strings.Split(texts[0], "\n"), lines[len(lines)-1]) {
		t.Errorf("the excerpt is %q", texts[0])
	}
}
