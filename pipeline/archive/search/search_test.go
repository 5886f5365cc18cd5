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

// words counts the words of a text in place of its tokens.
func words(text string) int { return len(strings.Fields(text)) }

func said(role conversation.Role, text string) conversation.Message {
	return conversation.Message{Role: role, Blocks: []conversation.Block{{Kind: conversation.Text, Text: text}}}
}

func called(id, tool, arguments string) conversation.Block {
	return conversation.Block{Kind: conversation.ToolCall, ID: id, Name: tool, Text: arguments}
}

func answered(id, text string) conversation.Block {
	return conversation.Block{Kind: conversation.ToolResult, ID: id, Text: text}
}

func message(role conversation.Role, blocks ...conversation.Block) conversation.Message {
	return conversation.Message{Role: role, Blocks: blocks}
}

// terms are the terms of a text that a person typed.
func terms(text string) []string {
	documents := search.Documents(0, []conversation.Message{said(conversation.User, text)})
	var texts []string
	for _, term := range documents[0].Terms() {
		texts = append(texts, term.Text)
	}
	return texts
}

func TestTextIsCutIntoTheTermsOfCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"internal/proxy/handler.go": "go handler handler.go internal internal/proxy/handler.go proxy proxy/handler.go",
		`C:\src\Main.cs`:            "c cs main main.cs src src/main.cs",
		"parseHTTPRequest":          "http pars parsehttprequest request",
		"retry_budget-left":         "budget left retry retry_budget-left",
		"registryMu.RLock":          "lock mu registry registrymu registrymu.rlock rlock",
		"E0308 and 23505":           "and e0308 23505",
		"9f31ccab77e2d1":            "9f31cca 9f31ccab77e2d1",
		"Running tests, tested":     "run test",
		"漢字検索 found":                "検索 字検 漢字 found",
		"Éclair":                    "eclair",
		"(see: handler.go:123).":    "123 go handler handler.go see",
		"v1.2.3-rc4":                "rc4 v1 v1.2.3-rc4",
		strings.Repeat("x", 300):    "",
	} {
		got := terms(text)
		for term := range strings.FieldsSeq(want) {
			if !slices.Contains(got, term) {
				t.Errorf("%q lacks %q: %q", text, term, got)
			}
		}
	}
}

func TestWordsAreFoundInOtherForms(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"test", "tests", "tested", "testing"}, {"query", "queries"}, {"run", "runs", "running"}, {"time", "times", "timed", "timing"},
		{"class", "classes"}, {"fix", "fixes", "fixed", "fixing"}, {"index", "indexes", "indexed"},
	} {
		want := terms(same[0])
		for _, word := range same[1:] {
			if got := terms(word); !slices.Equal(got, want) {
				t.Errorf("%s gives %q, %s gives %q", same[0], want, word, got)
			}
		}
	}
	for _, word := range []string{"status", "analysis", "pass", "need", "feed", "string", "bus"} {
		if got := terms(word); !slices.Equal(got, []string{word}) {
			t.Errorf("%s becomes %q", word, got)
		}
	}
}

func TestACallIsOneDocumentWithItsResult(t *testing.T) {
	t.Parallel()
	documents := search.Documents(10, []conversation.Message{
		said(conversation.User, "Look."),
		message(conversation.Assistant, conversation.Block{Kind: conversation.Text, Text: "I look."},
			called("a", "Read", `{"file_path":"/src/a.go"}`), called("b", "Bash", `{"command":"cat lib/b.go","description":"Show b","timeout":5}`)),
		message(conversation.User, answered("a", "package a"), answered("b", "package b"), conversation.Block{Kind: conversation.Text, Text: "Go on."}),
		message(conversation.Assistant, called("c", "Edit", `not JSON`)),
		message(conversation.Tool, answered("z", "nobody called")),
	})
	var got []string
	for _, d := range documents {
		got = append(got, fmt.Sprintf("%d-%d.%d %d %s %v %v", d.From, d.To, d.Part, d.Kind, d.Tool, d.Paths, d.Reads))
	}
	want := []string{
		"10-11.0 0  [] false", "11-12.0 1  [] false", "11-13.1 2 Read [/src/a.go] true", "11-13.2 2 Bash [lib/b.go] false",
		"12-13.0 0  [] false", "13-14.0 2 Edit [] false", "14-15.0 2  [] false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("documents:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestACallThatMayStillBeAnsweredIsOpen(t *testing.T) {
	t.Parallel()
	call, result := message(conversation.Assistant, called("a", "Read", "{}")), message(conversation.User, answered("a", "x"))
	typed, other := said(conversation.User, "hello"), message(conversation.Assistant, called("b", "Read", "{}"))
	for name, c := range map[string]struct {
		messages []conversation.Message
		want     int
	}{
		"nothing":            {nil, -1},
		"answered":           {[]conversation.Message{typed, call, result}, -1},
		"waits":              {[]conversation.Message{typed, call}, 1},
		"one of two waits":   {[]conversation.Message{typed, call, other, result}, 2},
		"abandoned":          {[]conversation.Message{call, typed}, -1},
		"abandoned, another": {[]conversation.Message{call, typed, other}, 2},
		"only what was said": {[]conversation.Message{typed, said(conversation.Assistant, "hi")}, -1},
	} {
		if got := search.Open(c.messages); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// talk is a conversation in which the same file is read twice.
func talk() []conversation.Message {
	return []conversation.Message{
		said(conversation.User, "The login fails, please find out why."),
		message(conversation.Assistant, called("1", "Read", `{"file_path":"/src/auth/login.go"}`)),
		message(conversation.User, answered("1", "func Login() error { return ErrLocked }")),
		message(conversation.Assistant, called("2", "Bash", `{"command":"go test ./auth","description":"Run the auth tests"}`)),
		message(conversation.User, answered("2", "FAIL: TestLogin: want nil, got account locked")),
		message(conversation.Assistant, called("3", "Edit", `{"file_path":"/src/auth/login.go","old_string":"ErrLocked","new_string":"nil"}`)),
		message(conversation.User, answered("3", "updated")),
		message(conversation.Assistant, called("4", "Read", `{"file_path":"/src/auth/login.go"}`)),
		message(conversation.User, answered("4", "func Login() error { return nil }")),
		said(conversation.Assistant, "It was `ErrLocked`."),
	}
}

func TestTheRightDocumentIsTheBestMatch(t *testing.T) {
	t.Parallel()
	memory := search.NewMemory(search.Documents(0, talk()))
	for question, want := range map[string]int{
		"Earlier you ran a command to: Run the auth tests. What exactly did it print?": 3,
		"what did the auth tests print before?":                                        3,
		`where did "account locked" come from`:                                         3,
		"/src/auth/login.go":                                                           7, // the newest read
		"auth/login.go":                                                                7,
		"why does the login fail":                                                      0,
	} {
		matches := memory.Search(search.Ask(question), 0, 5)
		if len(matches) == 0 || matches[0].Document.From != want || matches[0].Score <= 0 || matches[0].Score > 1 {
			t.Errorf("%q: %+v, want message %d", question, matches, want)
		}
	}
	early := memory.Search(search.Ask("/src/auth/login.go"), 7, 5)
	if len(early) == 0 || early[0].Document.From != 1 {
		t.Errorf("before message 7: %+v", early)
	}
	for _, match := range early {
		if match.Document.To > 7 {
			t.Errorf("before message 7: %d-%d", match.Document.From, match.Document.To)
		}
	}
	for range 20 {
		if again := memory.Search(search.Ask("/src/auth/login.go"), 7, 5); again[0].Document.From != early[0].Document.From || again[0].Rank != early[0].Rank {
			t.Fatalf("another order: %+v", again)
		}
	}
}

func TestAQuestionWithoutContentAsksForNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "  \n", "and what did you do before?", "?!…", strings.Repeat("y", 5000)} {
		memory := search.NewMemory(search.Documents(0, talk()))
		if matches := memory.Search(search.Ask(text), 0, 5); len(matches) != 0 {
			t.Errorf("%.20q finds %+v", text, matches[0])
		}
	}
	if wanted := search.Ask(strings.Repeat("alpha/beta.go gammaDelta ", 9000) + fmt.Sprint(talk())).Wanted; len(wanted) > search.MaxWanted {
		t.Errorf("%d terms are wanted", len(wanted))
	}
}

// excerpt is the excerpt of one hit.
func excerpt(messages []conversation.Message, query string, budget int, count func(string) int) string {
	return search.Excerpts([][]conversation.Message{messages}, query, budget, count)[0]
}

func TestAnExcerptHoldsTheMatchingLinesWithinItsBudget(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 2000 {
		lines = append(lines, fmt.Sprintf("step %d went well", i))
	}
	lines[1200] = "step 1200 broke: quota exceeded"
	messages := []conversation.Message{
		message(conversation.Assistant, called("1", "Bash", `{"command":"make","description":"Build it"}`)),
		message(conversation.User, answered("1", strings.Join(lines, "\n"))),
	}
	for _, budget := range []int{40, 200, 1000} {
		text := excerpt(messages, "where was the quota exceeded?", budget, words)
		if !strings.Contains(text, lines[1200]) || words(text) > budget || !strings.Contains(text, "[…]") {
			t.Errorf("%d words of %d: %s", words(text), budget, text)
		}
	}
	if text := excerpt(messages, "where was the quota exceeded?", 100_000, words); !strings.Contains(text, strings.Join(lines, "\n")) || strings.Contains(text, "[…]") {
		t.Errorf("what fits is cut: %d words", words(text))
	}
	plain := excerpt(messages, "unrelated", 200, words)
	if !strings.Contains(plain, "step 0 ") || !strings.Contains(plain, lines[1999]) || words(plain) > 200 {
		t.Errorf("without a match: %s", plain)
	}
	if text := excerpt(messages, "quota", 0, words); text != "" {
		t.Errorf("without a budget: %q", text)
	}
	if text := excerpt(nil, "quota", 100, words); text != "" {
		t.Errorf("of nothing: %q", text)
	}
}

func TestExcerptsShareABudgetAndWasteNone(t *testing.T) {
	t.Parallel()
	long := []conversation.Message{said(conversation.Assistant, strings.TrimSpace(strings.Repeat("the quota was exceeded here\n", 400)))}
	short := []conversation.Message{said(conversation.Assistant, "the quota is five")}
	texts := search.Excerpts([][]conversation.Message{long, short, long}, "quota", 1000, words)
	total := 0
	for _, text := range texts {
		total += words(text)
	}
	if len(texts) != 3 || texts[1] != "the quota is five" || words(texts[0]) < 500 || texts[2] == "" || total > 1000 || total < 600 {
		t.Errorf("%d, %d and %d words", words(texts[0]), words(texts[1]), words(texts[2]))
	}
	alone := search.Excerpts([][]conversation.Message{short, long, short}, "quota", 5000, words)
	if alone[1] != long[0].Blocks[0].Text {
		t.Errorf("what fits was cut to %d words", words(alone[1]))
	}
}

func TestASnippetIsShortAndHoldsTheMatch(t *testing.T) {
	t.Parallel()
	snippet := search.Snippet(talk()[3:5], search.Ask("account locked"), 300)
	if !strings.Contains(snippet, "account locked") || len(snippet) > 300 {
		t.Errorf("%q", snippet)
	}
	if snippet := search.Snippet([]conversation.Message{said(conversation.User, strings.Repeat("é", 4000))}, search.Ask("x"), 101); len(snippet) > 101+len("[…]") {
		t.Errorf("%d bytes", len(snippet))
	}
}

func FuzzTerms(f *testing.F) {
	for _, text := range []string{"a/b.go", "漢a字_B", "\xff.\x00/", "x--y..z//", "ABCdef.GHI_jkl-9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		messages := []conversation.Message{message(conversation.Assistant, called("1", text, text)), message(conversation.User, answered("1", text))}
		for _, document := range search.Documents(0, messages) {
			for _, term := range document.Terms() {
				if term.Text == "" || term.Level < 0 || term.Level >= search.Levels {
					t.Fatalf("%q gives %+v", text, term)
				}
			}
		}
		question := search.Ask(text)
		if len(question.Wanted) > search.MaxWanted {
			t.Fatalf("%d terms", len(question.Wanted))
		}
		if some := excerpt(messages, text, 20, words); words(some) > 20 {
			t.Fatalf("%d words: %q", words(some), some)
		}
	})
}

// What a model recalled before says nothing that the archive does not say elsewhere.
func TestRecallFindsNoEarlierRecall(t *testing.T) {
	t.Parallel()
	for tool, isFound := range map[string]bool{
		"recall_search": false, "mcp__palimpsest__recall_search": false, "palimpsest_recall_get": false, "palimpsest.recall_search": false,
		"recall_searcher": true, "total_recall_search": true, "mcp__notion__recall_search": true, "recall_search_all": true, "Bash": true,
	} {
		documents := search.Documents(0, []conversation.Message{
			message(conversation.Assistant, called("c1", tool, `{"query":"retry budget"}`)),
			message(conversation.User, answered("c1", "1. k7f2m7qa#12 the retry budget is 3")),
		})
		if (len(documents) > 0) != isFound {
			t.Errorf("%s: %d documents", tool, len(documents))
		}
	}
}

// The same command runs again and again, and often prints next to nothing.
func TestNewestRunThatPrintedMuchComesFirst(t *testing.T) {
	t.Parallel()
	var messages []conversation.Message
	run := func(description, printed string) {
		id := strconv.Itoa(len(messages))
		messages = append(messages, message(conversation.Assistant, called(id, "Bash", `{"command":"make test","description":"`+description+`"}`)),
			message(conversation.User, answered(id, printed)))
	}
	much := strings.Repeat("ok  some/package\n", 30)
	run("Run the tests", much)
	run("Run the tests", much+"FAIL other/package")
	run("Run the tests", "ok")
	run("Build it", much)
	memory := search.NewMemory(search.Documents(0, messages))
	for question, want := range map[string][]int{
		"Earlier you ran a command to: Run the tests. What exactly did it print?": {2, 0, 4},
		"Earlier you ran a command to: Build it. What exactly did it print?":      {6},
	} {
		matches := memory.Search(search.Ask(question), 0, len(want))
		var got []int
		for i := range matches {
			got = append(got, matches[i].Document.From)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", question, got, want)
		}
	}
}
