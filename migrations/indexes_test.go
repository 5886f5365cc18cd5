package migrations_test

import (
	"maps"
	"slices"
	"testing"

	"palimpsest/migrations/dbtest"
)

// Each index of exchanges costs every request that is recorded: this is what each is for.
func TestEachIndexOfExchangesIsForSomething(t *testing.T) {
	t.Parallel()
	purposes := map[string]string{
		"exchanges_pkey":         "one request, and a search by its id",
		"exchanges_at":           "requests, newest first",
		"exchanges_session":      "requests of a session, and their course",
		"exchanges_client":       "requests of a client, and the names of clients",
		"exchanges_model":        "requests of a model, and the names of models",
		"exchanges_key":          "requests of an API key, and what it has cost",
		"exchanges_failed":       "requests that failed",
		"exchanges_miss":         "requests that missed the cache",
		"exchanges_provider_key": "uses of a provider key, and its refusals",
		"exchanges_projection":   "what an epoch has earned",
		"exchanges_happened":     "events of a lane",
		"exchanges_beyond":       "prompts that were cut or stayed above their target",
		"exchanges_answer":       "whether another request has an answer that is to be deleted",
		"exchanges_error_text":   "what providers said that has expired",
	}
	rows, err := dbtest.New(t).Owner(t).Query(t.Context(), "SELECT indexname::text FROM pg_indexes WHERE tablename = 'exchanges'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		found[name] = true
	}
	if got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(purposes)); rows.Err() != nil || !slices.Equal(got, want) {
		t.Errorf("indexes %q\nwant    %q, each of which a page needs (%v)", got, want, rows.Err())
	}
}
