package pages_test

import (
	"strings"
	"testing"

	"palimpsest/web/webtest"
)

// What people and models wrote is rendered, what tools answered is code of the file that
// it is of, and the text as it was sent is one link away, without JavaScript.
func TestWhatWasSaidIsRenderedAndShownAsItWasSent(t *testing.T) {
	t.Parallel()
	const wide = 10_000_000
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	const prose = "# Plan\n\nIt is **urgent**, see `main.go`.\r\nNext line"
	long, deep := strings.Repeat("*word* ", 4_000), strings.Repeat("> ", 500)+"deep"
	person.TalkOnce(person.Connect(webtest.Provider(t, wide), "laptop"), wide, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[
		{"role":"user","content":`+quoted(prose)+`},
		{"role":"assistant","content":[{"type":"text","text":"*I* read it."},{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"/src/main.go"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"package main\n"},{"type":"text","text":`+quoted(deep)+`}]},
		{"role":"assistant","content":`+quoted(long)+`},
		{"role":"user","content":"user\u202egnp.exe"}]}`, claudeCode)
	address := "/sessions/" + person.Newest().ID.String()

	page := person.Get(address + "?m=0")
	if page.Text(`[data-testid="original"] h4`) != "Plan" || page.Text(`[data-testid="original"] strong`) != "urgent" {
		t.Errorf("the prose is shown as %q", page.TestID("original"))
	}
	exact := person.Get(page.Find(`[data-testid="rendering"] a:last-child`).AttrOr("href", ""))
	if got := exact.Find(`[data-testid="original"] pre`).Text(); got != strings.ReplaceAll(prose, "\r", "") || exact.Has(`[data-testid="original"] strong`) {
		t.Errorf("as it was sent it is %q", got)
	}
	if chosen := exact.Text(`[data-testid="rendering"] [aria-current]`); chosen != "As it was sent" || !strings.Contains(exact.Find(".turn").First().AttrOr("href", ""), "text=exact") {
		t.Errorf("the switch stands at %q", chosen)
	}
	result := person.Get(address + "?m=2")
	if result.Text(`[data-testid="original"] .chroma .kn, [data-testid="original"] .chroma .k`) != "package" || !strings.Contains(result.TestID("original"), "/src/main.go") {
		t.Errorf("the result is shown as %s", result.TestID("original"))
	}
	if said := result.TestID("original"); !strings.Contains(said, "Too large, too deep or too slow to be rendered: shown as it was sent.") || !strings.Contains(said, deep) {
		t.Errorf("what is too deep is shown as %q", short(said))
	}
	if said := person.Get(address + "?m=4").TestID("original"); !strings.Contains(said, "user⟦U+202E⟧gnp.exe") || !strings.Contains(said, "Hidden, reordering and control characters are spelled out.") {
		t.Errorf("what hides is shown as %q", said)
	}

	begun := person.Get(address + "?m=3")
	said := begun.TestID("original")
	if words := strings.Count(said, "word"); words < 1_000 || words > 2_000 || !strings.Contains(said, "more are not shown here") {
		t.Errorf("%d words are shown: %q", words, said[max(0, len(said)-200):])
	}
	whole := person.Get(begun.Find(`[data-testid="whole"]`).AttrOr("href", ""))
	if words := strings.Count(whole.TestID("original"), "word"); words != 4_000 || whole.Has(`[data-testid="whole"]`) {
		t.Errorf("%d words are shown of 4,000", words)
	}
	var forms []string
	for _, link := range page.Find(`[data-testid="export"] a`).EachIter() {
		forms = append(forms, strings.TrimPrefix(link.AttrOr("href", ""), "/api/v1"+address+"/export?format="))
	}
	if strings.Join(forms, " ") != "markdown tar ndjson jsonl" {
		t.Errorf("it is exported as %q", forms)
	}
}
