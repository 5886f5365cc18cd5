package pages_test

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

const askedIdentifiers = "/pipeline/preview?part=identifiers"

func TestPreviewCountsTheIdentifiersThatPromptsKeep(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	person := talkedFive(t)
	asked := person.Post("/pipeline/preview?part=1", form(person.Get("/pipeline"))...)
	if !asked.Has(`[data-testid="ask-identifiers"]`) || asked.Has(`[data-testid="identifiers"]`) {
		t.Fatalf("the preview is %s", asked.TestID("preview"))
	}

	typed := form(person.Get("/pipeline"), "ipc.targetUtilization", "0.35", "ipc.compressTo", "0.20")
	page := person.Post(askedIdentifiers, typed...)
	rows := page.Find(`[data-testid="identifiers"] tbody tr`)
	if page.Status != http.StatusOK || rows.Length() != 2 || !page.Has("h1") || !page.Has(`[data-preview][data-asked]`) {
		t.Fatalf("status %d: %q", page.Status, page.TestID("identifiers"))
	}
	if said := page.TestID("identifiers"); !strings.Contains(said, "in the text of 5 sessions") {
		t.Errorf("it says %q", said)
	}
	row := func(i int) (taken, kept, gone string) {
		cells := rows.Eq(i).Find("td")
		return cells.Eq(0).Text(), cells.Eq(1).Text(), cells.Eq(2).Text()
	}
	taken, saved, _ := row(0)
	again, kept, gone := row(1)
	if taken != again || percentOf(t, kept) >= percentOf(t, saved) || gone == "0" {
		t.Errorf("saved: %s of %s, lower: %s of %s", saved, taken, kept, again)
	}

	if path := page.Find("[data-download]").AttrOr("formaction", ""); path != "/pipeline/preview/csv?part=identifiers" {
		t.Fatalf("the file is at %s", path)
	}
	file, err := csv.NewReader(strings.NewReader(person.Post("/pipeline/preview/csv?part=identifiers", typed...).HTML)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"identifiers_taken_up": taken, "identifiers_gone": gone} {
		i := slices.IndexFunc(file, func(row []string) bool { return row[0] == name })
		if i < 0 || file[i][3] != strings.ReplaceAll(want, ",", "") {
			t.Errorf("of %s the file has %v, the page %s", name, file, want)
		}
	}
}

func TestIdentifiersAreCountedForThoseWhoMayReadTheText(t *testing.T) {
	t.Parallel()
	person := talkedFive(t)
	settings, err := person.DB.Data.DataSettings(t.Context(), person.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	settings.Text = tenants.TextPolicy{Managers: tenants.ReadsOwn, Members: tenants.ReadsOwn, Viewers: tenants.ReadsNone}
	if err := person.DB.Data.SetDataSettings(t.Context(), person.Workspace.ID, settings); err != nil {
		t.Fatal(err)
	}

	for _, one := range []struct {
		who  string
		page webtest.Page
		want string
		rows int
	}{
		{"the owner of the key", tuningCounted(person), "in the text of 5 sessions", 11},
		{"an admin without a key", tuningCounted(person.Colleague(tenants.Admin)), "No session could be counted", 9},
		{"a viewer", tuningCounted(person.Colleague(tenants.Viewer)), "You may not read sessions", 9},
	} {
		said := one.page.TestID("identifiers")
		if one.page.Status != http.StatusOK || !strings.Contains(said, one.want) || figuresOf(one.page) != one.rows {
			t.Errorf("%s: status %d, %d figures: %q", one.who, one.page.Status, figuresOf(one.page), said)
		}
	}
}

// The curve says at each of its points how many identifiers prompts keep; to those who may read no
// text it says what is read word for word.
func TestCurveHasTheIdentifiersOfEachPoint(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	person := talkedFive(t)
	curve := func(who *webtest.Person) (said string, kept []string) {
		page := who.Post("/pipeline/preview?part=curve", form(who.Get("/pipeline"))...)
		for _, row := range page.Find(`[data-testid="curve"] tbody tr`).EachIter() {
			kept = append(kept, row.Find("td").Eq(1).Text())
		}
		return page.Find(`[data-testid="curve"] figcaption`).Text(), kept
	}
	said, kept := curve(person)
	if len(kept) != 4 || !strings.Contains(said, "share of identifiers still in the prompt") {
		t.Fatalf("the owner reads %q with %q", said, kept)
	}
	for point, minContext := range map[int]string{0: "25000", 3: "200000"} {
		page := person.Post(askedIdentifiers, form(person.Get("/pipeline"), "ipc.trigger", "break-even", "ipc.minContext", minContext)...)
		if alone := page.Find(`[data-testid="identifiers"] tbody tr`).Eq(1).Find("td").Eq(1).Text(); percentOf(t, alone) != percentOf(t, kept[point]) || percentOf(t, alone) == 0 {
			t.Errorf("at %s the curve says %q, the setting alone %q", minContext, kept[point], alone)
		}
	}
	said, kept = curve(person.Colleague(tenants.Viewer))
	if !slices.Equal(kept, []string{"–", "–", "–", "–"}) || !strings.Contains(said, "share of prompts read word for word") {
		t.Errorf("a viewer reads %q with %q", said, kept)
	}
}

func TestSampleHasNoIdentifiers(t *testing.T) {
	t.Parallel()
	page := tuningCounted(webtest.Start(t).SignUp(t, "northbeam"))
	if said := page.TestID("identifiers"); !strings.Contains(said, "The sample has no text") {
		t.Errorf("it says %q", said)
	}
}

func tuningCounted(person *webtest.Person) webtest.Page {
	return person.Post(askedIdentifiers, form(person.Get("/pipeline"))...)
}

// figuresOf returns how many figures a preview has.
func figuresOf(page webtest.Page) int { return page.Find("table.figures tbody tr").Length() }
