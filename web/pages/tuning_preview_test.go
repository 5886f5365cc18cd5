package pages_test

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
	"palimpsest/web/browsertest"
	"palimpsest/web/components"
	"palimpsest/web/webtest"
)

const tuningWindow = 30_000

// figures returns the cells of the preview by the names of their rows.
func figures(page webtest.Page) map[string][]string {
	cells := map[string][]string{}
	for _, row := range page.Find("table.figures tbody tr:not(.basis)").EachIter() {
		var texts []string
		for _, cell := range row.Find("td").EachIter() {
			texts = append(texts, strings.TrimSpace(cell.Text()))
		}
		name := row.Find("th").Clone()
		name.Find("small").Remove()
		cells[strings.TrimSpace(name.Text())] = texts
	}
	return cells
}

// talkedOften is the database of talkedFive.
var talkedOften dbtest.Template

// talkedFive returns someone in whose workspace as many sessions were held as a preview needs.
func talkedFive(t *testing.T) *webtest.Person {
	t.Helper()
	product := webtest.StartFrom(t, &talkedOften, func(t testing.TB, product *webtest.Product) {
		t.Helper()
		talked(t, product, 5)
	})
	return product.LogIn(t, "northbeam@example.com")
}

// talked signs someone up in whose workspace some sessions were held.
func talked(t testing.TB, product *webtest.Product, sessions int) *webtest.Person {
	t.Helper()
	person := product.SignUp(t, "northbeam")
	secret := person.Connect(webtest.Provider(t, tuningWindow), "laptop")
	for seed := range sessions {
		talk := sessiontest.Generate(uint64(seed), sessiontest.Options{Format: conversation.Anthropic, Turns: 40, TargetTokens: 26_000})
		person.Talk(secret, tuningWindow, talk, "claude-cli/2.1.0 (external, cli)")
	}
	return person
}

func TestPreviewSaysWhatAnotherTargetWouldHaveMade(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	person := talkedFive(t)

	for name, path := range map[string]string{"the whole page": "/pipeline/preview", "the card alone": "/pipeline/preview?part=1"} {
		page := person.Post(path, form(person.Get("/pipeline"), "ipc.targetUtilization", "0.40")...)
		rows := figures(page)
		if page.Status != http.StatusOK || len(rows) != 11 || page.Has(`[data-testid="sample"]`) {
			t.Fatalf("%s: status %d, %v", name, page.Status, rows)
		}
		if sent := rows["Tokens sent"]; sent[1] == sent[2] || !strings.HasPrefix(sent[3], "−") {
			t.Errorf("%s: a lower target sends %v", name, sent)
		}
		if whole := page.Has("h1"); whole != (path == "/pipeline/preview") {
			t.Errorf("%s has a heading: %t", name, whole)
		}
	}
	if version, _ := saved(t, person); version.Version != 0 {
		t.Errorf("a preview saved version %d", version.Version)
	}
	page := person.Post("/pipeline/preview", form(person.Get("/pipeline"), "ipc.targetUtilization", "0.40")...)
	if typed := page.Find(`input[name="ipc.targetUtilization"]`).AttrOr("value", ""); typed != "0.40" {
		t.Errorf("what was typed became %q", typed)
	}
}

// The file of the preview has the figures of the table, exactly, for the same form.
func TestFileOfThePreviewHasItsFigures(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	person := webtest.Start(t).SignUp(t, "northbeam")
	typed := form(person.Get("/pipeline"), "ipc.targetUtilization", "0.40")
	shown := figures(person.Post("/pipeline/preview?part=1", typed...))
	file := person.Post("/pipeline/preview/csv", typed...)
	if as := file.Header.Get("Content-Disposition"); file.Status != http.StatusOK || as != `attachment; filename="palimpsest-preview.csv"` {
		t.Fatalf("status %d, %q", file.Status, as)
	}
	rows, err := csv.NewReader(strings.NewReader(file.HTML)).ReadAll()
	if err != nil || len(rows) != len(shown)+2 { // the head, and what the share of details is of
		t.Fatalf("%d rows for %d figures: %v", len(rows), len(shown), err)
	}
	exact := map[string][]int64{}
	for _, row := range rows[1:] {
		if row[1] != "" {
			t.Errorf("%s happened in a sample: %s", row[0], row[1])
		}
		if slices.Contains([]string{"identifiers_taken_up", "identifiers_held", "messages_again"}, row[0]) {
			if row[2]+row[3]+row[4] != "" {
				t.Errorf("a sample without text has %v", row)
			}
			continue
		}
		for _, cell := range row[2:] {
			n, err := strconv.ParseInt(cell, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", row[0], err)
			}
			exact[row[0]] = append(exact[row[0]], n)
		}
		if of := exact[row[0]]; of[2] != of[1]-of[0] {
			t.Errorf("%s changes by %d: %v", row[0], of[2], of)
		}
	}
	for name, words := range map[string]struct {
		row string
		of  func(int64) string
	}{
		"prompts_micro_usd": {"Paid for prompts", components.Money}, "net_micro_usd": {"Net saved", components.Money}, "tokens_sent": {"Tokens sent", components.Short}, "epochs": {"Compactions", components.Count},
		"tokens_received": {"Tokens received", components.Short}, "tokens_at_l3": {"History reduced to an outline", func(n int64) string { return components.Share(n, exact["tokens_received"][0]) }},
		"cache_rewrites": {"Times the cache was paid for again", components.Count}, "sessions_past_window": {"Sessions cut off", components.Count},
		"tokens_verbatim": {"Read word for word", func(n int64) string { return components.Share(n, exact["tokens_received"][0]) }},
	} {
		for i, cell := range shown[words.row][1:3] {
			if said := words.of(exact[name][i]); said != cell {
				t.Errorf("%s is %s on the page and %s in the file", words.row, cell, said)
			}
		}
	}
	if exact["tokens_sent"][2] >= 0 {
		t.Errorf("a lower target sends %v", exact["tokens_sent"])
	}
	wrong := person.Post("/pipeline/preview/csv", form(person.Get("/pipeline"), "ipc.targetUtilization", "7")...)
	if wrong.Status != http.StatusUnprocessableEntity || !strings.Contains(wrong.Text(`[data-testid="preview"]`), "No preview") {
		t.Errorf("a wrong value: status %d", wrong.Status)
	}
}

func TestPreviewOfAWorkspaceWithoutSessionsIsOfASample(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")

	page := person.Post("/pipeline/preview?part=1", form(person.Get("/pipeline"))...)
	if !page.Has(`[data-testid="sample"]`) || len(figures(page)) != 11 {
		t.Errorf("no sample:\n%s", page.HTML)
	}
	whole := person.Post("/pipeline/preview", form(person.Get("/pipeline"))...)
	if said := whole.Text(`[data-testid="preview"]`); !strings.Contains(said, "On 6 invented sessions") || strings.Contains(said, "your last") {
		t.Errorf("the card says %q", said)
	}
	if change := figures(page)["Net saved"][3]; change != "" {
		t.Errorf("the saved setting differs from itself by %s", change)
	}
	viewer := person.As(tenants.Viewer)
	if page := viewer.Post("/pipeline/preview?part=1", form(viewer.Get("/pipeline"))...); page.Status != http.StatusOK || len(figures(page)) != 11 {
		t.Errorf("who may not change it gets %d", page.Status)
	}
}

func TestPreviewSaysWhatIsWrongWithAValue(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")

	for _, path := range []string{"/pipeline/preview", "/pipeline/preview?part=1"} {
		page := person.Post(path, form(person.Get("/pipeline"), "ipc.targetUtilization", "7")...)
		if page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.HTML, "No preview") {
			t.Errorf("%s: status %d", path, page.Status)
		}
	}
}

func TestMovingTheSliderShowsAnotherPreview(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Width: browsertest.Desktop, Cookies: person.Cookies()})

	tab.Go("/pipeline")
	tab.Until(`document.querySelectorAll('table.figures tbody tr').length === 12 && !document.querySelector('.figures .sk')`)
	before := time.Now()
	tab.Run(`(() => { const slider = document.querySelector('[data-slider]'); slider.value = '0.35'; slider.dispatchEvent(new Event('input', {bubbles: true})); })()`)
	tab.Until(`!document.querySelector('.preview.stale') && document.querySelector('table.figures tbody tr:nth-child(5) td:last-child').textContent.startsWith('−')`)
	t.Logf("after %v", time.Since(before))
	tab.Check("pipeline with a preview")
	file := tab.Download(func() { tab.Click(`.preview [data-download]`) })
	if !strings.HasPrefix(file, "figure,happened,saved_setting,this_setting,change") {
		t.Errorf("the file is %.200q", file)
	}
	if typed := browsertest.Evaluate[string](tab, `document.querySelector('[name="ipc.targetUtilization"]').value`); typed != "0.35" {
		t.Errorf("after the download the target is %q", typed)
	}
}

func TestPreviewIsDrawnAsABarForEachSession(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	person := talkedFive(t)

	page := person.Post("/pipeline/preview", form(person.Get("/pipeline"), "ipc.targetUtilization", "0.40")...)
	bars := page.Find(`[data-testid="bars"] a[href^="/sessions/"]`)
	if bars.Length() != 5 || bars.Find("title").Length() != 5 || bars.Find("rect.f-gap").Length() == 0 || bars.Find("rect.f-l0, rect.f-l1, rect.f-l2, rect.f-l3").Length() != 5 {
		t.Errorf("%d bars: %s", bars.Length(), page.Find(`[data-testid="bars"]`).Text())
	}
	if lines := page.Text(`[data-testid="bars"] text`); lines != "window full target 0.40" {
		t.Errorf("the lines are %q", lines)
	}
	if words := page.Find(`[data-testid="bars"] [role="group"]`).AttrOr("aria-label", ""); !strings.Contains(words, "each of 5 sessions") {
		t.Errorf("a screen reader hears %q", words)
	}
	if said := page.Text("[data-consequence]"); !strings.HasPrefix(said, "On your last 5 sessions (200 requests), this setting costs $") || !strings.Contains(said, " less than the saved one. ") {
		t.Errorf("the consequence is %q", said)
	}
	same := person.Post("/pipeline/preview", form(person.Get("/pipeline"))...)
	if said := same.Text("[data-consequence]"); !strings.Contains(said, "this setting costs as much as the saved one. ") {
		t.Errorf("of the saved setting it is %q", said)
	}
	for name, cells := range figures(same) {
		if len(cells) != 4 || cells[3] != "" {
			t.Errorf("%s of the saved setting: %v", name, cells)
		}
	}
}

func TestPreviewIsNarrowedToAClient(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	person := talked(t, webtest.Start(t), 5) // not a copy, whose first provider has ended
	other := sessiontest.Generate(9, sessiontest.Options{Format: conversation.Anthropic, Turns: 4, TargetTokens: 2_000})
	person.Talk(person.Connect(webtest.Provider(t, tuningWindow), "second"), tuningWindow, other, "codex_cli_rs/0.50")
	page := person.Get("/pipeline")

	if options := page.Text(`select[name="preview.client"] option`); options != "All clients Claude Code Codex" {
		t.Errorf("the clients are %q", options)
	}
	for client, want := range map[string]string{"": "On your last 6 sessions (", "claude-code": "On your last 5 sessions with Claude Code (", "codex": "(a preview of those with Codex needs 5 sessions"} {
		page := person.Post("/pipeline/preview", form(page, "preview.client", client)...)
		if said := page.Text(`[data-testid="preview"]`); !strings.Contains(said, want) {
			t.Errorf("of %q: %s", client, said)
		}
		if chosen := page.Find(`select[name="preview.client"] option[selected]`).AttrOr("value", ""); chosen != client {
			t.Errorf("chosen is %q, was %q", chosen, client)
		}
	}
}

// Both triggers are shown on the same sessions, whichever is set, with the same figures.
func TestPreviewShowsBothTriggers(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	person := webtest.Start(t).SignUp(t, "northbeam") // a bundled sample
	said := map[string]string{}
	for _, trigger := range []string{"window", "break-even"} {
		page := person.Post("/pipeline/preview?part=1", form(person.Get("/pipeline"), "ipc.trigger", trigger)...)
		said[trigger] = page.TestID("triggers")
	}
	if said["window"] != said["break-even"] {
		t.Errorf("one set: %s; the other: %s", said["window"], said["break-even"])
	}
	near, less, both := strings.Cut(said["window"], "“As soon as it saves money” would have cost ")
	if !both || !strings.Contains(less, " less than your saved setting") || !strings.Contains(near, "“Only near the limit” would have cost as much as your saved setting") {
		t.Errorf("it says %s", said["window"])
	}
}

// The curve shows what “As soon as it saves money” costs and keeps for four sizes: less is touched from
// each to the next, so that more is read word for word and less is saved.
func TestPreviewShowsCostAgainstFidelity(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	person := webtest.Start(t).SignUp(t, "northbeam") // a bundled sample
	asked := person.Post("/pipeline/preview?part=1", form(person.Get("/pipeline"))...)
	if !asked.Has(`[data-testid="ask-curve"]`) || asked.Has(`[data-testid="curve"]`) {
		t.Fatalf("the preview is %s", asked.TestID("preview"))
	}
	page := person.Post("/pipeline/preview?part=curve", form(person.Get("/pipeline"))...)
	rows := page.Find(`[data-testid="curve"] tbody tr`)
	if rows.Length() != 4 || page.Find(`[data-testid="curve"] circle`).Length() != 4 {
		t.Fatalf("the curve is %q", page.TestID("curve"))
	}
	if !page.Has(`[data-preview][data-asked]`) || person.Get("/pipeline").Has(`[data-preview][data-asked]`) {
		t.Error("the page's script takes the curve away, or asks for no preview")
	}
	var cost, kept []float64
	rows.Each(func(_ int, row *goquery.Selection) {
		cost, kept = append(cost, percentOf(t, row.Find("td").Eq(0).Text())), append(kept, percentOf(t, row.Find("td").Eq(2).Text()))
	})
	if !slices.IsSorted(cost) || !slices.IsSorted(kept) || cost[0] >= cost[3] || kept[0] >= kept[3] || kept[3] > 100 {
		t.Errorf("cost %v, word for word %v", cost, kept)
	}
	circles := page.Find(`[data-testid="curve"] circle`)
	for _, axis := range []string{"cx", "cy"} {
		from, to := percentOf(t, circles.First().AttrOr(axis, "")), percentOf(t, circles.Last().AttrOr(axis, ""))
		if max(from-to, to-from) < 90 {
			t.Errorf("the points lie between %v and %v of %s", from, to, axis)
		}
	}
	wrong := person.Post("/pipeline/preview?part=curve", form(person.Get("/pipeline"), "ipc.targetUtilization", "9")...)
	if wrong.Status != http.StatusUnprocessableEntity || wrong.Has(`[data-testid="curve"]`) {
		t.Errorf("of a wrong setting: status %d", wrong.Status)
	}
}

func percentOf(t *testing.T, text string) float64 {
	t.Helper()
	number, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(strings.ReplaceAll(text, "−", "-"), "% +")), 64)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// Where cost decides, the slider has no effect: it is disabled, and the page says what decides.
func TestSliderWithoutEffectIsDisabled(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	for trigger, without := range map[string]bool{"window": false, "break-even": true} {
		page := person.Post("/pipeline/preview", form(person.Get("/pipeline"), "ipc.trigger", trigger)...)
		if page.Has(`[data-slider][disabled]`) != without || page.Has(`[data-testid="decides"][hidden]`) == without {
			t.Errorf("%s: the slider is disabled: %v, the page says: %s", trigger, !without, page.TestID("decides"))
		}
		if page.Has(`[name="ipc.targetUtilization"][disabled]`) {
			t.Errorf("%s: the limit itself cannot be typed", trigger)
		}
	}
}
