package sessiondb_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
)

// plantMany adds sessions straight to the table, the newest first, with the titles
// "session <n>", and "Old session <n>" in the second half.
func (f *fixture) plantMany(t *testing.T, count int) {
	t.Helper()
	owner := f.db.Owner(t)
	for _, statement := range []string{
		fmt.Sprintf(`INSERT INTO sessions (workspace_id, id, api_key_id, format, source, title, client, model, started_at, last_at)
			SELECT '%s', lpad(n::text, 32, '0')::uuid, '%s', 'anthropic', 'header', CASE WHEN n > %d THEN 'Old ' ELSE '' END || 'session ' || n,
				'client-' || n %% 3, CASE n WHEN 9000 THEN 'rare-model' ELSE 'model-' || n %% 5 END, now() - n * interval '1 minute', now() - n * interval '1 minute'
			FROM generate_series(1, %d) n`, f.scope.Workspace, f.scope.APIKey, count/2, count),
		"ANALYZE sessions, session_words",
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// reading is a runner that keeps how many rows of sessions each transaction has read.
type reading struct {
	batchdb.TxRunner

	most *int64
}

// InTenant implements batchdb.TxRunner.
func (r reading) InTenant(ctx context.Context, tenant tenants.Tenant, fn func(tx *gorm.DB) error) error {
	const read = "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = 'sessions'"
	return r.TxRunner.InTenant(ctx, tenant, func(tx *gorm.DB) error {
		var before, after int64 // the database has not yet told all of the transactions before this one
		if err := tx.Raw(read).Scan(&before).Error; err != nil {
			return err
		}
		if err := fn(tx); err != nil {
			return err
		}
		err := tx.Raw(read).Scan(&after).Error
		*r.most = max(*r.most, after-before)
		return err
	})
}

// What few sessions have a word for is found at once, however old; what is common or
// stands within a word is found by going on, each session once; and no page and no count
// reads many sessions, whatever is looked for.
func TestSearchReadsFewSessionsOfMany(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.plantMany(t, 12_000)
	var most int64
	store := sessiondb.New(reading{TxRunner: f.runner, most: &most}, archivetest.Keys())
	const old = "Old session 11873"
	for query, want := range map[string]struct {
		titles int
		first  string
		pages  int
		reads  int64 // rows of sessions at most
	}{
		"11873":                                {1, old, 1, 50},
		"old SESSION 1187":                     {10, "Old session 11870", 1, 50},
		"00000000-0000-0000-0000-000000011873": {1, old, 1, 50},
		"rare":                                 {1, "Old session 9000", 1, 50},
		"ession 11873":                         {1, old, 3, 5_100},
		"nothing":                              {0, "", 3, 5_100},
		"old":                                  {6_000, "Old session 6001", 32, 5_100},
		"client-1":                             {4_000, "session 1", 22, 7_100},
	} {
		most = 0
		filter, titles, pages := session.Filter{Query: query, Limit: 200}, []string(nil), 1
		for ; ; pages++ {
			page, err := store.Browser().Sessions(tenants.OwnWork(t.Context()), f.scope.Workspace, filter)
			if err != nil {
				t.Fatal(err)
			}
			for i := range page.Sessions {
				titles = append(titles, page.Sessions[i].Title)
			}
			if filter.Cursor = page.Next; filter.Cursor == "" {
				break
			}
		}
		once := slices.Compact(slices.Sorted(slices.Values(titles)))
		if len(titles) != want.titles || len(once) != want.titles || want.titles > 0 && titles[0] != want.first || pages > want.pages {
			t.Errorf("%q: %d titles, %d of them different, on %d pages", query, len(titles), len(once), pages)
		}
		counts, err := store.Browser().Counts(tenants.OwnWork(t.Context()), f.scope.Workspace, session.Filter{Query: query})
		if err != nil || !counts.More && counts.Of[session.ShowAll] != min(want.titles, session.MostCounted) || counts.More != (want.pages > 1) {
			t.Errorf("%q: %+v counted: %v", query, counts, err)
		}
		if most == 0 || most > want.reads+session.MostCounted {
			t.Errorf("%q: a transaction read %d sessions, want at most %d", query, most, want.reads)
		}
	}
	t.Run("titles that are not read decide nothing", f.unreadTitlesDecideNothing)
}

// unreadTitlesDecideNothing looks that words of titles that someone may not read neither find
// sessions nor change how the others are found.
func (f *fixture) unreadTitlesDecideNothing(t *testing.T) {
	for query, want := range map[string]int{"11873": 3, "old": 3, "nothing": 3} {
		pages := 0
		for filter := (session.Filter{Query: query, Masked: true, Shown: []uuid.UUID{uuid.New()}}); pages == 0 || filter.Cursor != ""; pages++ {
			page, err := f.store.Browser().Sessions(tenants.OwnWork(t.Context()), f.scope.Workspace, filter)
			if err != nil || len(page.Sessions) > 0 {
				t.Fatalf("%q finds %d: %v", query, len(page.Sessions), err)
			}
			filter.Cursor = page.Next
		}
		if pages != want {
			t.Errorf("%q: %d pages, want %d as for what no title has", query, pages, want)
		}
	}
}

func TestWordsFollowTheTitleAndEndWithTheSession(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.plantMany(t, 10)
	owner := f.db.Owner(t)
	words := func() (found string) {
		err := owner.QueryRow(t.Context(), "SELECT coalesce(string_agg(word, ' ' ORDER BY word), '') FROM session_words WHERE session_id = lpad('7', 32, '0')::uuid").Scan(&found)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, step := range []struct{ statement, want string }{
		{"SELECT", "7 old session"},
		{"UPDATE sessions SET title = 'Fix internal/proxy/Handler.go, fix it', name = 'run_1'", "1 fix go handler internal it proxy run"},
		{"UPDATE sessions SET last_at = now()", "1 fix go handler internal it proxy run"},
		{"UPDATE sessions SET title = '', name = ''", ""},
		{"UPDATE sessions SET title = 'Über 90 % 日本語'", "90 über 日本語"},
		{"DELETE FROM sessions", ""},
	} {
		if _, err := owner.Exec(t.Context(), step.statement); err != nil {
			t.Fatal(err)
		}
		if got := words(); got != step.want {
			t.Errorf("after %s the words are %q, want %q", step.statement, got, step.want)
		}
	}
}
