package extract

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func namesIn(text string, escaped bool) []string {
	var all []string
	for found := (Names{Text: text, Escaped: escaped}); found.Scan(); {
		all = append(all, text[found.From:found.To])
	}
	return all
}

// D5
func TestNamesAreWhatTextsCallThingsBy(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		text    string
		escaped bool
		want    string
	}{
		{"The parser is well-known, e.g. here.", false, ""},
		{"Look at api/login.go, and at ./web/cookie_jar.go:12.", false, "api/login.go login.go web/cookie_jar.go cookie_jar.go"},
		{"See https://go.dev/doc/faq.", false, "https://go.dev/doc/faq"},
		{"call handleLogin or session_id or ErrNotFound", false, "handleLogin session_id ErrNotFound"},
		{"pkg.HandleLogin(x)", false, "pkg.HandleLogin HandleLogin"},
		{"ENOENT: 404 of 12 in 4711", false, "ENOENT 404 4711"},
		{"error E0308 in v1.2.3 at 9f8c2d1", false, "E0308 v1.2.3 9f8c2d1"},
		{".gitignore and Änderung_1", false, ".gitignore Änderung_1"},
		{"—foo_bar— 漢字under_score漢字", false, "foo_bar under_score"},
		{`{"file_path": "a/bc.go", "old_string": "x\nfoo_bar\tbaz_qux"}`, true, "a/bc.go bc.go foo_bar baz_qux"},
		{"yes/no", false, "yes/no"},
		{"a/b", false, ""},
	} {
		if got := strings.Join(namesIn(c.text, c.escaped), " "); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

// A12: what is listed of any text is valid text of it.
func TestNamesOfAnyTextAreValid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune(`aB3_/.-:\"漢é—👍 `)), 0, 60, -1).Draw(r, "text")
		for _, name := range namesIn(text, rapid.Bool().Draw(r, "escaped")) {
			if !utf8.ValidString(name) || len(name) < ShortestName || len(name) > LongestName {
				r.Fatalf("%q of %q", name, text)
			}
		}
	})
}

func TestUsesKnowTheTurnsOfAName(t *testing.T) {
	t.Parallel()

	u := NewUses()
	for turn := range 5000 {
		u.Add(turn, AppendNames(nil, "always_here and only_"+Thousands(turn)[:1]+"_"+strings.ReplaceAll(Thousands(turn), ",", "x"), false))
	}
	everywhere, once := u.Of(HashOf("always_here")), u.Of(HashOf("only_7_7"))
	if everywhere == nil || everywhere.Turns != 5000 || everywhere.Last != 4999 {
		t.Errorf("got %+v", everywhere)
	}
	if once == nil || once.Turns != 1 || once.Last != 7 {
		t.Errorf("got %+v", once)
	}
	if unknown := u.Of(HashOf("never_seen")); unknown != nil || u.Has(ShapeOf("x")) {
		t.Errorf("got %+v", unknown)
	}
}

func TestAChangeIsToldByItsLinesAndSymbols(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ arguments, want string }{
		{`{"file_path":"a.go","old_string":"x\ny","new_string":"func (s *Store) Save() {\n}\n"}`, "−2 +2 lines: Save"},
		{`{"path":"a.ts","content":"export default async function load() {\n}\nclass Cache {\n\tget() {}\n}"}`, "+5 lines: load Cache"},
		{`{"path":"a.py","oldText":"def old_name():\n  pass","newText":""}`, "−2 lines"},
		{"*** Begin Patch\n*** Update File: a.rs\n@@\n-let a = 1;\n+pub fn area() -> u32 {\n+}\n*** End Patch", "−1 +2 lines: area"},
		{`{"file_path":"a.go"}`, ""},
	} {
		if got := ChangeOf(c.arguments); got != c.want {
			t.Errorf("%s: got %q, want %q", c.arguments, got, c.want)
		}
	}
}

// A12: the fast way to shorten a text gives what the thorough one does.
func TestShorteningPlainTextIsNoDifferent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab cé\u0301\n")), 0, 24, -1).Draw(r, "text")
		n := rapid.IntRange(1, 20).Draw(r, "characters")
		want := strings.Join(strings.Fields(text), " ")
		if cut := CutAt(want, n); cut < len(want) {
			want = strings.TrimSpace(want[:cut]) + "…"
		}
		// Only what is far beyond what is kept may make a difference.
		if got := Shorten(text, n); got != want && len(text) <= 2*n {
			r.Fatalf("%q to %d: got %q, want %q", text, n, got, want)
		}
	})
}

func TestTheVerdictOfAToolResultIsFound(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("nothing of note\n", 40)
	for _, c := range []struct{ name, text, middle, tail string }{
		{"prose", strings.Repeat("words of a page. ", 40), "", ""},
		{"source", strings.Repeat("  12→\treturn fmt.Errorf(\"error: %w\", err)\n", 20), "", ""},
		{"go test", long + "--- FAIL: TestX (0.00s)\n" + long + "FAIL\tapi\t0.2s\n", "--- FAIL: TestX (0.00s)", "FAIL\tapi\t0.2s"},
		{"jest", long + "Tests:       2 failed, 148 passed, 150 total", "", "Tests:       2 failed, 148 passed, 150 total"},
		{"pytest", long + "===== 1 failed, 3 passed in 0.12s =====", "", "===== 1 failed, 3 passed in 0.12s ====="},
		{"colored", long + "\x1b[31mFAIL\x1b[0m 3 tests", "", "\x1b[31mFAIL\x1b[0m 3 tests"},
		{"exit code", long + "[exit code: 1]", "", "[exit code: 1]"},
		{"python", long + "Traceback (most recent call last):\n  File \"a.py\", line 3\nValueError: no config", "", "ValueError: no config"},
		{"compiler", long + "src/a.ts(3,4): error TS2304: x\na.c:12:5: error: y\n" + long, "a.c:12:5: error: y", ""},
		{"search", strings.Repeat("api/login.go:12:\treturn nil\n", 30), "", ""},
	} {
		got := ExcerptOf(c.text)
		if got.Middle != c.middle || got.Tail != c.tail {
			t.Errorf("%s: got %q and %q", c.name, got.Middle, got.Tail)
		}
		if size := utf8.RuneCountInString(got.Head + got.Middle + got.Tail); size > KeptCharacters || size < KeptCharacters*3/5 {
			t.Errorf("%s: %d characters", c.name, size)
		}
	}
}

// A12
func TestAnyExcerptIsValidAndBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{
			"FAIL", "PASS", "error: é\u0301👍🏽", "ok  \ta", strings.Repeat("漢", 90), "3 failed", "", "plain words\r", "a.go:1:2: x", "panic: " + strings.Repeat("🇩🇪", 70),
		}), 30, 60).Draw(r, "lines")
		text := strings.Join(lines, "\n") + strings.Repeat(".", KeptCharacters+1)
		if rapid.Bool().Draw(r, "ends with a line") {
			text = strings.Repeat(".", KeptCharacters+1) + strings.Join(lines, "\n")
		}
		got := ExcerptOf(text)
		if all := got.Head + got.Middle + got.Tail; !utf8.ValidString(all) || utf8.RuneCountInString(all) > KeptCharacters || !strings.HasPrefix(text, got.Head) {
			r.Fatalf("%q", all)
		}
		for _, part := range []string{got.Middle, got.Tail} {
			if at := strings.Index(text, part); at < 0 || Joins(text, at+len(part)) && !slices.Contains([]byte("\r\n"), text[at+len(part)]) {
				r.Fatalf("%q is no part", part)
			}
		}
	})
}
