package semanticcache_test

import (
	"os"
	"strings"
	"testing"

	"palimpsest/pipeline/modules/semanticcache"
)

// pairs reads the pairs of a file; the last two fields of a line are a pair.
func pairs(t *testing.T, name string, fields int) [][]string {
	t.Helper()
	content, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var found [][]string
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		pair := strings.Split(line, " | ")
		if len(pair) != fields {
			t.Fatalf("%s: %q has %d fields, want %d", name, line, len(pair), fields)
		}
		found = append(found, pair)
	}
	return found
}

// hits reports whether one text's answer may be given to the other, whatever their
// embeddings say.
func hits(one, other string) bool {
	first, ok := semanticcache.Meaning(one)
	second, also := semanticcache.Meaning(other)
	return ok && also && first == second
}

// Wrong hits are the failure to fear: 0 of the near misses, at any similarity.
func TestNoNearMissHasTheSameMeaning(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	all := pairs(t, "nearmisses.txt", 3)
	for _, pair := range all {
		kinds[pair[0]]++
		if hits(pair[1], pair[2]) {
			meaning, _ := semanticcache.Meaning(pair[1])
			t.Errorf("%s: %q and %q both mean %q", pair[0], pair[1], pair[2], meaning)
		}
		// Courtesy around them makes them no more alike.
		if hits("Hi, could you please tell me "+pair[1], pair[2]+", thanks") || hits(pair[1], "Please "+pair[2]) {
			t.Errorf("%s: with courtesy, %q and %q mean the same", pair[0], pair[1], pair[2])
		}
	}
	if len(all) < 150 || len(kinds) < 12 {
		t.Errorf("%d pairs of %d kinds; at least 150 of 12 are needed", len(all), len(kinds))
	}
}

// Different questions of the two lists mean different things, each against each.
func TestNoTwoQuestionsOfDifferentPairsHaveTheSameMeaning(t *testing.T) {
	t.Parallel()
	var texts []string
	seen := map[string]bool{}
	for _, pair := range pairs(t, "nearmisses.txt", 3) {
		for _, text := range pair[1:] {
			if !seen[text] {
				seen[text], texts = true, append(texts, text)
			}
		}
	}
	for i, one := range texts {
		for _, other := range texts[:i] {
			if hits(one, other) {
				t.Errorf("%q and %q mean the same", one, other)
			}
		}
	}
}

func TestParaphrasesHaveTheSameMeaning(t *testing.T) {
	t.Parallel()
	for _, pair := range pairs(t, "paraphrases.txt", 2) {
		if !hits(pair[0], pair[1]) {
			one, _ := semanticcache.Meaning(pair[0])
			other, _ := semanticcache.Meaning(pair[1])
			t.Errorf("%q means %q, %q means %q", pair[0], one, pair[1], other)
		}
		if one, _ := semanticcache.Meaning(pair[0]); one != again(t, pair[0]) {
			t.Errorf("%q means something else the second time", pair[0])
		}
	}
}

func again(t *testing.T, text string) string {
	t.Helper()
	meaning, ok := semanticcache.Meaning(text)
	if !ok {
		t.Errorf("%q has no meaning", text)
	}
	return meaning
}

func TestTextsWhoseWordingMattersHaveNoMeaning(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "Fix this:\nx = 1", "Say hello", "What does \"x\" do?", "How many letters has banana?", "Is this polite", "a  b", "What is (x)?",
		"What does `ls` do?", strings.Repeat("word ", 200), "What is \xff?", "Fix: x", "Summarize War and Peace", "a;b", "don't say 'no'",
	} {
		if meaning, ok := semanticcache.Meaning(text); ok {
			t.Errorf("%q means %q", text, meaning)
		}
	}
}

// Whatever surrounds it, another number is another question.
func FuzzAnotherNumberIsAnotherMeaning(f *testing.F) {
	for _, seed := range []string{"How do I sort?", "What's up", "in go, what is x", "tell me what a is", "hi", "please", "explain", "please, thanks", "explain how works", "how do i"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, pair := range [][2]string{{text + " 7", text + " 8"}, {"7 " + text, "8 " + text}, {"in 7, " + text, "in 8, " + text}, {text + " 7, please", text + " 8, please"}} {
			if hits(pair[0], pair[1]) {
				t.Errorf("%q and %q mean the same", pair[0], pair[1])
			}
		}
		if meaning, ok := semanticcache.Meaning(text); ok && strings.TrimSpace(meaning) == "" {
			t.Errorf("%q means nothing", text)
		}
	})
}
