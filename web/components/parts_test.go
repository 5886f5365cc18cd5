package components_test

import (
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"

	"palimpsest/tenants"
	"palimpsest/web/components"
)

func render(t *testing.T, component templ.Component) *goquery.Document {
	t.Helper()
	var out strings.Builder
	if err := component.Render(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	document, err := goquery.NewDocumentFromReader(strings.NewReader(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestCodeIsMarkedAndEscaped(t *testing.T) {
	t.Parallel()
	const snippet = "# a comment <b>\nexport KEY=\"<script>\"\necho $PALIMPSEST_KEY & importer"

	code := render(t, components.Code("c", "label", snippet)).Find("#c")
	if code.Text() != snippet {
		t.Errorf("the text became %q", code.Text())
	}
	for class, want := range map[string]string{".hl-c": "# a comment <b>", ".hl-k": "export", ".hl-s": `"<script>"`, ".hl-v": "$PALIMPSEST_KEY"} {
		if got := code.Find(class).Text(); got != want {
			t.Errorf("%s marks %q, want %q", class, got, want)
		}
	}
	if code.Find("script, b").Length() > 0 {
		t.Error("the snippet became markup")
	}
}

func TestFieldSaysWhatIsWrongToScreenReadersToo(t *testing.T) {
	t.Parallel()
	field := components.FieldModel{Label: "Name", Name: "ipc.name", Value: `"x"`, Hint: "hint", Error: components.FieldError("Name", "must be shorter")}

	page := render(t, components.Field(field, templ.Attributes{"type": "text"}))
	input := page.Find("input")
	if input.AttrOr("value", "") != `"x"` || input.AttrOr("aria-invalid", "") != "true" || page.Find("label").AttrOr("for", "") != input.AttrOr("id", "-") {
		t.Errorf("the input is %v", input.Nodes[0].Attr)
	}
	for id := range strings.FieldsSeq(input.AttrOr("aria-describedby", "")) {
		if page.Find("#"+id).Length() != 1 {
			t.Errorf("nothing has the id %s", id)
		}
	}
	if got := page.Find(".error").Text(); got != "Name must be shorter." {
		t.Errorf("the error is %q", got)
	}
	fine := render(t, components.Field(components.FieldModel{Label: "Name", Name: "name"}, nil)).Find("input")
	if _, set := fine.Attr("aria-describedby"); set {
		t.Error("a field without notes names some")
	}
}

func TestLevelBarIsAsWideAsItsParts(t *testing.T) {
	t.Parallel()

	bars := render(t, components.LevelBar([4]int{2, 1, 0, 1})).Find("rect")
	if bars.Length() != 3 || bars.First().AttrOr("class", "") != "f-l3" || bars.Last().AttrOr("x", "") != "50.0" {
		t.Errorf("%d bars, the last at %s", bars.Length(), bars.Last().AttrOr("x", ""))
	}
	if none := render(t, components.LevelBar([4]int{})).Find("rect").Length(); none != 0 {
		t.Errorf("%d bars for nothing", none)
	}
}

func TestStepsSayWhatIsLeft(t *testing.T) {
	t.Parallel()
	anthropic := []tenants.ProviderKey{{Provider: tenants.ProviderAnthropic}, {Provider: tenants.ProviderAnthropic}, {Provider: tenants.ProviderOpenAI}}

	open := render(t, components.Steps(components.NewSteps(nil, 0, nil))).Find("ol")
	if open.AttrOr("data-done", "") != "0" || open.AttrOr("hx-trigger", "") == "" || open.Find(".done").Length() != 0 {
		t.Errorf("a new workspace has %s steps behind it", open.AttrOr("data-done", ""))
	}
	newest := &tenants.Exchange{Request: tenants.ExchangeRequest{Client: "codex", Model: "gpt-5.1-codex"}, Answer: tenants.ExchangeAnswer{Status: 200}, Times: tenants.ExchangeTimes{Duration: 212 * time.Millisecond}}
	done := render(t, components.Steps(components.NewSteps(anthropic, 2, newest))).Find("ol")
	if done.AttrOr("data-done", "") != "3" || done.AttrOr("hx-trigger", "") != "" {
		t.Errorf("%s steps are done", done.AttrOr("data-done", ""))
	}
	for _, want := range []string{"Anthropic, OpenAI", "2 active", "From Codex to gpt-5.1-codex, answered with 200 in 212 ms."} {
		if !strings.Contains(done.Text(), want) {
			t.Errorf("the steps lack %q: %s", want, done.Text())
		}
	}
}

func TestNetMarksLosses(t *testing.T) {
	t.Parallel()

	if loss := render(t, components.Saving(-420_000)).Find(".down"); loss.Text() != "−$0.4200" || loss.AttrOr("title", "") != "−$0.420000" {
		t.Errorf("a loss is %q", loss.Text())
	}
	if gain := render(t, components.Saving(420_000)); gain.Find(".down").Length() != 0 {
		t.Error("a gain is marked as a loss")
	}
}

// Only the icons that pages ask for are part of the program, and all of them.
func TestIconsAreThoseThatPagesAskFor(t *testing.T) {
	t.Parallel()

	asked, there := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "_templ.go") {
			return err
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if entry.Name() == "icons.templ" {
			for _, match := range regexp.MustCompile(`case "([a-z0-9-]+)"`).FindAllSubmatch(source, -1) {
				there[string(match[1])] = true
			}
			return nil
		}
		for _, match := range regexp.MustCompile(`(?:Icon\(|Callout\("[a-z]*", |Empty\()"([a-z0-9-]+)"|"[^"]+", "([a-z0-9-]+)", paths\.`).FindAllSubmatch(source, -1) {
			asked[string(match[1])+string(match[2])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(asked, there) {
		t.Errorf("pages ask for %v, there are %v", slices.Sorted(maps.Keys(asked)), slices.Sorted(maps.Keys(there)))
	}
	for name := range there {
		if render(t, components.Icon(name)).Find("svg > *").Length() == 0 {
			t.Errorf("the icon %s is empty", name)
		}
	}
}

func TestChartLeavesGapsEmpty(t *testing.T) {
	t.Parallel()
	chart := components.Chart{Kind: components.InOrder, X: []int64{1, 2}, Series: []components.Line{{Label: "Limit", Values: []*int64{nil, new(int64(7))}}}}

	if got := chart.JSON(); !strings.Contains(got, `"values":[null,7]`) || strings.Contains(got, "marks") {
		t.Errorf("the chart is %s", got)
	}
}

// A range has a length, at most five years. A day without a time counts whole, in the reader's zone.
func TestRangeIsReadInTheReadersZone(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("east", 5*3600)
	for name, c := range map[string]struct {
		from, to string
		length   time.Duration // 0 if refused
	}{
		"a moment":          {"2027-03-01T12:00", "2027-03-01T12:00", 0},
		"backwards":         {"2027-03-01T12:00", "2027-03-01T11:00", 0},
		"an hour":           {"2027-03-01T12:00", "2027-03-01T13:00", time.Hour},
		"a day":             {"2027-03-01", "2027-03-01", 24 * time.Hour},
		"with its own zone": {"2027-03-01T00:00", "2027-03-01T00:00:00Z", 5 * time.Hour},
		"from a day":        {"2027-03-01", "2027-03-01T06:00:00+05:00", 6 * time.Hour},
		"too long":          {"2020-01-01", "2027-01-01", 0},
		"no time":           {"yesterday", "2027-03-01", 0},
	} {
		asked := components.NewRange(url.Values{"from": {c.from}, "to": {c.to}})
		from, to, ok := asked.Read(east)
		if ok != (c.length > 0) || asked.IsWrong() == ok || ok && to.Sub(from) != c.length {
			t.Errorf("%s: %s to %s, %t", name, from, to, ok)
		}
	}
}
