package pages_test

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
			ID: uuid.Must(uuid.NewV7()), At: time.Now(),
			Request: tenants.ExchangeRequest{
				Session: overview.ID, Lane: lane, APIKey: overview.APIKey, Class: "after-compaction",
			},
			Prompt: tenants.ExchangePrompt{TokensBefore: 9, TokensAfter: 9, Compression: "none", Report: []byte(report)},
			Answer: tenants.ExchangeAnswer{Status: 200},
		}
		if err := person.DB.Exchanges.RecordExchanges(t.Context(), person.Workspace.ID, []tenants.Exchange{exchange}); err != nil {
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
	for _, want := range []string{"The client’s summary lost 3 of 11 directives, 1 of 1 changed file.", "Restored: 3 directives, 1 turn, 4 files."} {
		if !strings.Contains(got, want) {
			t.Errorf("the page says %q, want %q in it", got, want)
		}
	}
	record(`{"events":[{"module":"compaction-bridge","type":"skipped","reason":"nothing is missing","counts":{"directives":2,"directives_lost":0}}]}`)
	if got := person.Get(address).TestID("notice-bridge"); !strings.Contains(got, "lost no directive") || !strings.Contains(got, "Nothing was restored: nothing is missing.") {
		t.Errorf("the page says %q", got)
	}
}

// A summary that a client got without a model is told apart from its own.
func TestASummaryThatWasAnsweredIsShown(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	exchange := tenants.Exchange{
		ID: uuid.Must(uuid.NewV7()), At: time.Now(),
		Request: tenants.ExchangeRequest{
			Session: overview.ID, Lane: laneOf(t, person, overview.ID), APIKey: overview.APIKey, Class: "after-compaction",
		},
		Prompt: tenants.ExchangePrompt{
			TokensBefore: 9, TokensAfter: 9, Compression: "none",
			Report: []byte(`{"events":[{"module":"compaction-bridge","type":"recovered","counts":{"directives":1,"directives_lost":0,"files_restored":2,"own_summary":1}}]}`),
		},
		Answer: tenants.ExchangeAnswer{Status: 200},
	}
	if err := person.DB.Exchanges.RecordExchanges(t.Context(), person.Workspace.ID, []tenants.Exchange{exchange}); err != nil {
		t.Fatal(err)
	}
	const want = "the client compacted itself, its summary was answered from Palimpsest’s compaction. Restored: 2 files."
	if page := person.Get("/sessions/" + overview.ID.String()); !strings.Contains(page.HTML, want) {
		at := max(0, strings.Index(page.HTML, "the client compacted"))
		t.Errorf("the page does not say %q but %.300s", want, page.HTML[at:])
	}
}

// E14: a compaction by the provider itself is an event of the session, with what it took.
func TestAProvidersOwnCompactionIsShown(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	exchange := tenants.Exchange{
		ID: uuid.Must(uuid.NewV7()), At: time.Now(),
		Request: tenants.ExchangeRequest{
			Session: overview.ID, Lane: laneOf(t, person, overview.ID), APIKey: overview.APIKey,
		},
		Prompt: tenants.ExchangePrompt{
			TokensBefore: 9, TokensAfter: 9, Compression: "none", Compacted: true,
			Report: []byte(`{"events":[{"module":"provider","type":"compacted","reason":"anthropic","counts":{"compactions":1,"messages":61,"input_tokens":180000,"output_tokens":3500}}]}`),
		},
		Answer: tenants.ExchangeAnswer{Status: 200},
	}
	if err := person.DB.Exchanges.RecordExchanges(t.Context(), person.Workspace.ID, []tenants.Exchange{exchange}); err != nil {
		t.Fatal(err)
	}
	const want = "the provider compacted the history, 61 messages; the originals are in the archive; it read 180k and wrote 3.50k tokens for that"
	if page := person.Get("/sessions/" + overview.ID.String()); !strings.Contains(page.HTML, want) || strings.Contains(page.HTML, "sent as none") {
		at := max(0, strings.Index(page.HTML, "the provider compacted"))
		t.Errorf("the page does not say %q but %.300s", want, page.HTML[at:])
	}
}
