package render_test

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/chroma/v2/lexers"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"palimpsest/web/render"
)

var update = flag.Bool("update", false, "write static/css/code.css")

// corpus returns texts that try to be more than text.
func corpus(t testing.TB) []string {
	t.Helper()
	lines, err := os.ReadFile("testdata/hostile.txt")
	if err != nil {
		t.Fatal(err)
	}
	texts := strings.Split(strings.TrimSpace(string(lines)), "\n")
	return append(texts, string(lines), strings.Join(texts, "\n\n"), strings.Join(texts, " "), "> "+strings.Join(texts, "\n> "),
		"java\tscript:\x00alert(1) \x1b[2J\x1b]0;title\x07\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07",
		"[x](java\x00script:alert(1))", "<img\x0csrc=x\x0bonerror=alert(1)>", "\xff\xfe<script>\x80alert(1)</script>", "user\u202egnp.exe", "pass\u200bword")
}

// htmlOf returns what a text is shown as.
func htmlOf(kind render.Kind, name, text string) string {
	shown, _ := render.HTML(kind, name, text)
	return shown
}

// kinds returns each kind with a name that a text of it may have.
func kinds() map[render.Kind][]string {
	return map[render.Kind][]string{
		render.Plain: {""}, render.Prose: {""}, render.JSON: {""}, render.Diff: {""},
		render.Code: {"", "x.html", `"><script>`}, render.Result: {"", "page.md", "app.js"},
	}
}

// allowed is what may be there, apart from the list that the product itself uses.
func allowed() map[string]string {
	return map[string]string{
		"a": "href rel", "p": "", "br": "", "hr": "", "h4": "", "h5": "", "h6": "", "ul": "", "ol": "start", "li": "", "blockquote": "",
		"em": "", "strong": "", "del": "", "pre": "class", "code": "", "table": "", "thead": "", "tbody": "", "tr": "",
		"th": "align", "td": "align", "span": "class", "div": "class tabindex role aria-label",
	}
}

// faults returns what of rendered HTML is not on the list.
func faults(t testing.TB, shown string) []string {
	t.Helper()
	var found []string
	around := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
	nodes, err := html.ParseFragment(strings.NewReader(shown), around)
	if err != nil || len(nodes) != 1 {
		found = append(found, "it is not one element")
	}
	classes := regexp.MustCompile(`^(text|chroma|host|picture|scroll|[a-z][a-z0-9]{0,2})$`)
	links := regexp.MustCompile(`^(https?://[^/?#]|mailto:)`)
	var walk func(node *html.Node)
	walk = func(node *html.Node) {
		attributes, known := allowed()[node.Data]
		if node.Type == html.ElementNode && !known || node.Type == html.CommentNode || node.Type == html.DoctypeNode {
			found = append(found, "there is a "+node.Data)
		}
		for _, attribute := range node.Attr {
			if !slices.Contains(strings.Fields(attributes), attribute.Key) {
				found = append(found, node.Data+" has "+attribute.Key)
			}
			if attribute.Key == "class" && !classes.MatchString(attribute.Val) || attribute.Key == "href" && !links.MatchString(attribute.Val) ||
				attribute.Key == "rel" && attribute.Val != "noopener noreferrer nofollow" {
				found = append(found, attribute.Key+" is "+attribute.Val)
			}
		}
		if node.Type == html.ElementNode && node.Data == "a" && len(node.Attr) != 2 {
			found = append(found, "a link lacks rel or href")
		}
		for child := node.FirstChild; child != nil; child = child.NextSibling {
			walk(child)
		}
	}
	for _, node := range nodes {
		walk(node)
	}
	for _, r := range shown {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == '\u202e' || r == '\u200b' || r == '\ufeff' || r == '\u2066' {
			found = append(found, "a mark that nobody sees is left")
		}
	}
	return found
}

func TestHostileTextComesOutAsTextOnly(t *testing.T) {
	t.Parallel()

	for kind, names := range kinds() {
		for _, name := range names {
			for _, text := range corpus(t) {
				if found := faults(t, htmlOf(kind, name, text)); len(found) > 0 {
					t.Errorf("kind %d, name %q: %.120q: %q", kind, name, text, found)
				}
			}
		}
	}
}

// Nothing is taken away from what was said: tags are shown, not dropped.
func TestHostileTextIsShownWhole(t *testing.T) {
	t.Parallel()

	for _, text := range []string{"<script>alert(1)</script>", "before <b onclick=x>bold</b> after", "<style>a{}</style>", "<!-- note -->\n\nafter", "a <x-y z> b"} {
		shown := htmlOf(render.Prose, "", text)
		said := words(t, shown)
		for part := range strings.FieldsSeq(text) {
			if !strings.Contains(said, part) {
				t.Errorf("%q lacks %q: %s", text, part, shown)
			}
		}
	}
}

// words returns the text of HTML.
func words(t testing.TB, shown string) string {
	t.Helper()
	var out strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(shown))
	for tokens.Next() != html.ErrorToken {
		if token := tokens.Token(); token.Type == html.TextToken {
			out.WriteString(token.Data)
		}
	}
	return out.String()
}

func TestMarkdownIsShownAsItIsMeant(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"# Title":                             "<h4>Title</h4>",
		"### Third":                           "<h6>Third</h6>",
		"**b** ~~d~~":                         "<strong>b</strong> <del>d</del>",
		"a\nb":                                "a<br",
		"- [x] done":                          "☑ done",
		"| a |\n| -: |\n| 1 |":                `<td align="right">1</td>`,
		"```go\nfunc x() {}\n```":             `<span class="k">func</span>`,
		"    indented <b>":                    "indented &lt;b&gt;",
		"![chart](https://a.example/c.png)":   `<span class="picture">image: chart, https://a.example/c.png</span>`,
		"[docs](https://a.example/d?x=1&y)":   `<a rel="noopener noreferrer nofollow" href="https://a.example/d?x=1&amp;y">docs</a><span class="host"> (a.example)</span>`,
		"[x](https://bank.example@e.example)": "(e.example)",
		"[x](https://аpple.com/)":             "(xn--pple-43d.com)",
		"see https://a.example/x.":            `href="https://a.example/x">https://a.example/x</a>`,
		"<mira@example.com>":                  `href="mailto:mira@example.com"`,
		"[x](/logout)":                        "x (/logout)",
		"&#x202E;text":                        "⟦U+202E⟧text",
	} {
		if shown := htmlOf(render.Prose, "", text); !strings.Contains(shown, want) {
			t.Errorf("%q is shown as %s, want %s", text, shown, want)
		}
	}
}

func TestCodeIsHighlightedByItsFile(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		kind             render.Kind
		name, text, want string
	}{
		{render.Result, "/home/mira/main.go", "package main", `<span class="k`},
		{render.Result, `C:\src\app.py`, "def f(): pass", `<span class="k`},
		{render.Result, "", `{"b":1.50,"a":[true]}`, "\n  <span"},
		{render.Result, "", "diff --git a/x b/x\n-old\n+new\n", `<span class="gi">`},
		{render.Result, "notes.unknown", "a < b", "a &lt; b"},
		{render.JSON, "", `{"n":12345678901234567890}`, "12345678901234567890"},
		{render.JSON, "", `{"n":`, "{<span class=\"nt\">&#34;n&#34;</span>:"},
		{render.Code, "go", "var x = 1", `<span class="k`},
	} {
		shown := htmlOf(test.kind, test.name, test.text)
		if !strings.Contains(strings.ReplaceAll(shown, `<span class="p">`, ""), test.want) {
			t.Errorf("%s %q is shown as %s", test.name, test.text, shown)
		}
		if found := faults(t, shown); len(found) > 0 {
			t.Errorf("%s: %q", test.name, found)
		}
	}
}

func TestWhatHidesIsShown(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"user\u202egnp.exe":     "user⟦U+202E⟧gnp.exe",
		"pass\u200bword":        "pass⟦U+200B⟧word",
		"\x1b[31mred\x1b[0m":    "␛[31mred␛[0m",
		"nul\x00 bell\x07 \x7f": "nul␀ bell␇ ␡",
		"a\r\nb\rc\td":          "a\nb␍c\td",
		"x\xffy":                "x\uFFFDy",
		"\U000E0041":            "⟦U+E0041⟧",
		"👩\u200d💻":              "👩\u200d💻",
		"a\u200db":              "a⟦U+200D⟧b",
		"❤\uFE0F plain ü 日本":    "❤\uFE0F plain ü 日本",
	} {
		if got := render.Visible(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
		if got := words(t, htmlOf(render.Plain, "", text)); got != want {
			t.Errorf("%q is shown on a page as %q, want %q", text, got, want)
		}
	}
}

// What is too large, too deep or takes too long is shown as plain text, and soon.
func TestTextBeyondTheBoundsIsPlain(t *testing.T) {
	t.Parallel()

	for name, text := range map[string]string{
		"large":       strings.Repeat("**a** ", 1<<14),
		"quotes":      strings.Repeat(">", 50_000) + "a",
		"lists":       strings.Repeat("- + ", 5_000) + "a",
		"more quotes": strings.Repeat("> ", 60) + "a",
	} {
		shown, whole := render.HTML(render.Prose, "", text)
		if whole || !strings.HasPrefix(shown, `<pre class="chroma">`) || len(words(t, shown)) != len(text) {
			t.Errorf("%s: %v, %.80s", name, whole, shown)
		}
	}
	for name, text := range map[string]string{
		"brackets": strings.Repeat("[", 60_000), "pictures": strings.Repeat("![[]()", 15_000), "links": strings.Repeat("[a](", 15_000),
		"emphasis": strings.Repeat("*a_ ", 20_000), "ticks": strings.Repeat("`a``b", 12_000), "tags": strings.Repeat("<a", 30_000),
		"stars": strings.Repeat("a**b", 20_000), "tables": strings.Repeat("|a", 5_000) + "\n" + strings.Repeat("|-", 5_000) + "\n" + strings.Repeat("|b\n", 2_000),
		"references": strings.Repeat("[a]: b\n", 9_000) + strings.Repeat("[a]", 9_000), "entities": strings.Repeat("&", 60_000),
	} {
		began := time.Now()
		shown := htmlOf(render.Prose, "", text)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s took %s", name, took)
		}
		if found := faults(t, shown); len(found) > 0 || len(shown) > 40*len(text) {
			t.Errorf("%s: %d bytes of %d, %.200q", name, len(shown), len(text), found)
		}
	}
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	if shown := htmlOf(render.JSON, "", deep); strings.Contains(words(t, shown), "\n") {
		t.Errorf("deep JSON is indented: %.80s", shown)
	}
	line := strings.Repeat("var a=1;", 4_000)
	if shown, whole := render.HTML(render.Code, "x.js", line); whole || strings.Contains(shown, "<span") {
		t.Errorf("a minified line is highlighted: %.80s", shown)
	}
}

func TestStyleSheetOfCodeIsTheOneThatIsServed(t *testing.T) {
	t.Parallel()
	const path = "../../static/css/code.css"

	if *update {
		if err := os.WriteFile(path, render.Sheet(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	served, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(served, render.Sheet()) {
		t.Error("static/css/code.css differs from web/render/style.go; run this test with -update")
	}
	colors, err := os.ReadFile("../../static/css/app.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`var\((--[a-z0-9-]+)\)`).FindAllSubmatch(served, -1) {
		if !bytes.Contains(colors, []byte(string(name[1])+": light-dark(")) {
			t.Errorf("app.css gives %s no value for light and dark", name[1])
		}
	}
}

func FuzzTextStaysText(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add(text, "main.go")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		if len(text) > 8<<10 {
			t.Skip("long texts are TestTextBeyondTheBoundsIsPlain")
		}
		for _, kind := range []render.Kind{render.Plain, render.Prose, render.Code, render.Result, render.JSON, render.Diff} {
			if found := faults(t, htmlOf(kind, name, text)); len(found) > 0 {
				t.Errorf("kind %d, name %q: %q: %q", kind, name, text, found)
			}
		}
	})
}

// Names are not tried with the endings of backup copies first, and still have the language that chroma finds.
func TestFilesHaveTheirLanguages(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"main.go", "Makefile", "page.blade.php", "CMakeLists.txt", "config.yaml", "main.go.orig", "Makefile.in", ".bashrc", "x.h", "x.m", "notes.txt"} {
		if got, want := render.LexerOf(name), lexers.Match(name).Config().Name; got != want {
			t.Errorf("%s is read as %q, chroma says %q", name, got, want)
		}
	}
	for name, want := range map[string]string{`C:\src\main.go`: "Go", "python": "Python", "no such language": ""} {
		if got := render.LexerOf(name); got != want {
			t.Errorf("%s is read as %q, not %q", name, got, want)
		}
	}
}
