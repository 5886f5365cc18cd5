package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// S32: what is put back is pinned, planned for the next request and noted once.
func TestPuttingTurnsBackPinsThemAndPlansAnEpoch(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	address, lane := "/sessions/"+overview.ID.String(), laneOf(t, person, overview.ID)
	run := projection(t, person, overview.ID).Parts[0]

	page := person.Post(address+"/restore", "lane", lane.String(), "m", itoa(run.From)+"-"+itoa(run.To-1))
	if page.Status != http.StatusOK || !strings.Contains(page.TestID("done"), "Restored in the next request") || page.TestID("waiting") == "" {
		t.Fatalf("status %d: %q, %q", page.Status, page.TestID("done"), page.TestID("waiting"))
	}
	pins, err := person.Sessions.Browser().Pins(t.Context(), person.Workspace.ID, lane)
	if err != nil || len(pins) == 0 || pins[0].By != person.User.ID {
		t.Fatalf("%d pins, %v", len(pins), err)
	}
	entries, err := person.DB.Audit.Audit(t.Context(), person.Workspace.ID, tenants.AuditFilter{Action: string(tenants.PinAdded)})
	if err != nil || len(entries) != 1 {
		t.Errorf("%d rows in the log, %v", len(entries), err)
	}

	released := person.Post(address+"/release", "lane", lane.String(), "m", itoa(pins[0].Message))
	left, err := person.Sessions.Browser().Pins(t.Context(), person.Workspace.ID, lane)
	if err != nil || len(left) != len(pins)-1 || released.TestID("done") == "" {
		t.Errorf("%d pins are left of %d, %v", len(left), len(pins), err)
	}
}

// B9, B12: that compression rests in a lane, and why, stands on its page until someone
// makes the dashboard try it again.
func TestAnOpenBreakerIsSeenUntilItIsReset(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	address, lane := "/sessions/"+overview.ID.String(), laneOf(t, person, overview.ID)
	for fruitless, want := range map[int]string{session.Patience - 1: "", session.Patience: "nothing could be freed"} {
		_, err := person.Database.Owner(t).Exec(t.Context(), "UPDATE lanes SET tried_at = now(), fruitless = $1, tried_reason = 'nothing_to_free' WHERE id = $2", fruitless, lane)
		if err != nil {
			t.Fatal(err)
		}
		if told := person.Get(address).TestID("breaker"); !strings.Contains(told, want) || (told == "") != (want == "") {
			t.Errorf("after %d attempts the page says %q", fruitless, told)
		}
	}

	_, err := person.Database.Owner(t).Exec(t.Context(), "UPDATE lanes SET fruitless = $1 WHERE id = $2", session.Patience, lane)
	if err != nil {
		t.Fatal(err)
	}
	page := person.Post(address+"/compact", "lane", lane.String())
	if page.Status != http.StatusOK || page.TestID("breaker") != "" || page.TestID("waiting") == "" {
		t.Errorf("after a reset: status %d, %q, %q", page.Status, page.TestID("breaker"), page.TestID("waiting"))
	}
}

func TestFormsThatCannotBeDoneSayWhy(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	address := "/sessions/" + overview.ID.String()

	detail, err := person.Sessions.Browser().Session(tenants.OwnWork(t.Context()), person.Workspace.ID, overview.ID)
	if err != nil {
		t.Fatal(err)
	}
	beyond := itoa(detail.Lanes[0].Position)
	for _, chosen := range []string{"", "99999", "9-2", "x", "-1", beyond, "0-" + beyond} {
		page := person.Post(address+"/restore", "m", chosen)
		if page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("problem-form"), "Nothing was changed") {
			t.Errorf("%q: status %d, %q", chosen, page.Status, page.TestID("problem-form"))
		}
	}
	long := strings.Repeat("é", 2001)
	if page := person.Post(address+"/compact", "instructions", long); page.Status != http.StatusUnprocessableEntity || page.Find("textarea").Text() != long {
		t.Errorf("status %d: %q", page.Status, page.TestID("error-instructions"))
	}
	if page := person.Post(address+"/delete", "confirm", "wrong"); page.Status != http.StatusUnprocessableEntity {
		t.Errorf("a wrong name: status %d", page.Status)
	}
	person.Post(address+"/delete", "confirm", overview.ID.String()[:8])
	if page := person.Get(address); page.Status != http.StatusNotFound {
		t.Errorf("the deleted session: status %d", page.Status)
	}
}

func TestDifferenceShowsWhatWasTakenOut(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	run := projection(t, person, overview.ID).Parts[0]

	page := person.Get("/sessions/" + overview.ID.String() + "?view=diff&m=" + itoa(run.From))
	if !page.Has(`[data-testid="diff"] del`) {
		t.Errorf("the difference is %q", short(page.TestID("diff")))
	}
	csv := person.Get("/sessions/" + overview.ID.String() + "/requests.csv")
	if lines := strings.Count(csv.HTML, "\n"); lines != overview.Sums.Exchanges+1 {
		t.Errorf("%d lines for %d requests", lines, overview.Sums.Exchanges)
	}
}

func TestASessionIsPinnedFromItsPage(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	address := "/sessions/" + overview.ID.String()
	page := person.Post(address + "/pin-session")
	if page.Status != http.StatusOK || !strings.Contains(page.TestID("done"), "Never compacted") || page.TestID("pinned-session") == "" || page.Has(`[data-testid="pin-session"]`) {
		t.Errorf("status %d: %q, %q", page.Status, page.TestID("done"), page.TestID("pinned-session"))
	}
	page = person.Post(address + "/release-session")
	if page.Status != http.StatusOK || !strings.Contains(page.TestID("done"), "Compacted again") || page.TestID("pinned-session") != "" || !page.Has(`[data-testid="pin-session"]`) {
		t.Errorf("status %d: %q, %q", page.Status, page.TestID("done"), page.TestID("pinned-session"))
	}
}
