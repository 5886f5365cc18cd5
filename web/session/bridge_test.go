package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// E8: what a client's own summary lost, and what was put back, stands on the page.
func TestWhatTheClientsSummaryLostIsShown(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	lane := laneOf(t, person, overview.ID)
	record := func(report string) {
		exchange := tenants.Exchange{
			ID: uuid.Must(uuid.NewV7()), At: time.Now(), Session: overview.ID, Lane: lane, APIKey: overview.APIKey,
			TokensBefore: 9, TokensAfter: 9, Compression: "none", Status: 200, Class: "after-compaction", Report: []byte(report),
		}
		if err := person.DB.RecordExchanges(t.Context(), person.Workspace.ID, []tenants.Exchange{exchange}); err != nil {
			t.Fatal(err)
		}
	}
	address := "/sessions/" + overview.ID.String()
	if page := person.Get(address); page.Has(`[data-testid="notice-bridge"]`) {
		t.Errorf("without a compaction the page says %q", page.TestID("notice-bridge"))
	}
	record(`{"events":[{"module":"compaction-bridge","type":"injected","counts":{"items":1}},{"module":"compaction-bridge","type":"recovered",
		"counts":{"directives":11,"directives_lost":3,"files":1,"files_lost":1,"errors_lost":0,"directives_restored":3,"files_restored":4,"turns_restored":1}}]}`)
	got := person.Get(address).TestID("notice-bridge")
	for _, want := range []string{"The client’s summary lost 3 of 11 directives, 1 of 1 changed file.", "Put back: 3 directives, 1 turn, 4 files."} {
		if !strings.Contains(got, want) {
			t.Errorf("the page says %q, want %q in it", got, want)
		}
	}
	record(`{"events":[{"module":"compaction-bridge","type":"skipped","reason":"nothing is missing","counts":{"directives":2,"directives_lost":0}}]}`)
	if got := person.Get(address).TestID("notice-bridge"); !strings.Contains(got, "lost nothing") || !strings.Contains(got, "Nothing was put back: nothing is missing.") {
		t.Errorf("the page says %q", got)
	}
}
