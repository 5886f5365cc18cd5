package pages_test

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/webtest"
)

const (
	heldRow  = "Details still there when needed"
	againRow = "Work repeated because it was forgotten"
)

// The figures that need the text of sessions come after the others for the page's script, and with them in a
// page without scripts and in the file.
func TestPreviewCountsWhatPromptsRemember(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	person := talkedFive(t)
	typed := form(person.Get("/pipeline"), "ipc.targetUtilization", "0.35", "ipc.compressTo", "0.20")
	first := person.Post("/pipeline/preview?part=1", typed...)
	follows := first.Find("[data-details]").AttrOr("data-details", "")
	if follows != "/pipeline/preview?part=details" || first.Find(".figures .sk").Length() != 8 {
		t.Fatalf("the figures follow from %q, %d are open", follows, first.Find(".figures .sk").Length())
	}

	rows := person.Post(follows, typed...)
	page := person.Post("/pipeline/preview", typed...)
	if rows.Status != http.StatusOK || rows.Has("h1") || page.Has("[data-details]") || !strings.Contains(rows.HTML, "counted in the text of 5 sessions") {
		t.Fatalf("status %d: %s", rows.Status, rows.HTML)
	}
	shown := figures(page)
	held, again := shown[heldRow], shown[againRow]
	if percentOf(t, held[0]) < percentOf(t, held[2]) || percentOf(t, held[2]) >= percentOf(t, held[1]) || !strings.HasPrefix(held[3], "−") {
		t.Errorf("details %v", held)
	}
	if percentOf(t, again[0]) > percentOf(t, again[2]) || percentOf(t, again[2]) <= percentOf(t, again[1]) || !strings.HasPrefix(again[3], "+") {
		t.Errorf("work repeated %v", again)
	}
	says := page.Find("[data-remembers]").AttrOr("data-remembers", "")
	if want := "its prompt still had it in " + held[2] + " of cases instead of " + held[1] + "."; !strings.HasSuffix(says, want) {
		t.Errorf("it says %q, want %q", says, want)
	}
	for _, cell := range slices.Concat(held, again) {
		if !strings.Contains(rows.HTML, ">"+cell+"<") {
			t.Errorf("the rows alone lack %q: %s", cell, rows.HTML)
		}
	}

	file, err := csv.NewReader(strings.NewReader(person.Post("/pipeline/preview/csv", typed...).HTML)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	value := func(key string, column int) int64 {
		i := slices.IndexFunc(file, func(row []string) bool { return row[0] == key })
		n, err := strconv.ParseInt(file[i][column], 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return n
	}
	for column := 1; column < 4; column++ {
		if got := components.Share(value("identifiers_held", column), value("identifiers_taken_up", column)); got != held[column-1] {
			t.Errorf("the file has %s of details, the page %s", got, held[column-1])
		}
		if got := components.Count(value("messages_again", column)); got != again[column-1] {
			t.Errorf("the file has %s of work repeated, the page %s", got, again[column-1])
		}
	}
}

func TestDetailsAreCountedForThoseWhoMayReadTheText(t *testing.T) {
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
		has  bool
	}{
		{"the owner of the key", tuningCounted(person), "counted in the text of 5 sessions", true},
		{"an admin without a key", tuningCounted(person.Colleague(tenants.Admin)), "were not counted", false},
		{"a viewer", tuningCounted(person.Colleague(tenants.Viewer)), "which you may not read", false},
	} {
		held := figures(one.page)[heldRow]
		if said := one.page.Text(".basis"); one.page.Status != http.StatusOK || !strings.Contains(said, one.want) || (held[2] != "–") != one.has {
			t.Errorf("%s: status %d, %v: %q", one.who, one.page.Status, held, said)
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
		page := person.Post("/pipeline/preview", form(person.Get("/pipeline"), "ipc.trigger", "break-even", "ipc.minContext", minContext)...)
		if alone := figures(page)[heldRow][2]; percentOf(t, alone) != percentOf(t, kept[point]) || percentOf(t, alone) == 0 {
			t.Errorf("at %s the curve says %q, the setting alone %q", minContext, kept[point], alone)
		}
	}
	said, kept = curve(person.Colleague(tenants.Viewer))
	if !slices.Equal(kept, []string{"–", "–", "–", "–"}) || !strings.Contains(said, "share of prompts read word for word") {
		t.Errorf("a viewer reads %q with %q", said, kept)
	}
}

func TestSampleHasNoDetails(t *testing.T) {
	t.Parallel()
	page := tuningCounted(webtest.Start(t).SignUp(t, "northbeam"))
	if said := page.Text(".basis"); !strings.Contains(said, "which the invented ones don’t have") || figures(page)[againRow][2] != "–" {
		t.Errorf("it says %q", said)
	}
}

func tuningCounted(person *webtest.Person) webtest.Page {
	return person.Post("/pipeline/preview", form(person.Get("/pipeline"))...)
}
