package sessiondb_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

func TestSessionsAreShownAndCountedByWhatCameOfThem(t *testing.T) {
	t.Parallel()
	f := setup(t)
	workspace, now, owner := f.scope.Workspace, time.Now(), f.db.Owner(t)
	even := func(update *session.Update) { update.Increment.NetMicroUSD = 0 }
	plain := f.addSession(t, now, even)
	loss := f.addSession(t, now, func(update *session.Update) { update.Increment.NetMicroUSD = -5 })
	single := f.addSession(t, now, func(update *session.Update) { update.Increment.NetMicroUSD, update.Name = 0, "" })
	compressed, bridged, failed := f.addSession(t, now, even), f.addSession(t, now, even), f.addSession(t, now, even)
	for _, statement := range []string{
		fmt.Sprintf("UPDATE sessions SET epochs = 1 WHERE id = '%s'", compressed.session),
		fmt.Sprintf(`INSERT INTO lane_inserts (workspace_id, lane_id, number, message, chain, module, text, tokens)
			SELECT workspace_id, id, 1, 0, '', 'compaction-bridge', '', 1 FROM lanes WHERE session_id = '%s'`, bridged.session),
		fmt.Sprintf(`INSERT INTO exchanges (workspace_id, id, at, session_id, api_key_id, provider, endpoint, model, client, stream, status, position, compression,
				tokens_before, tokens_after, window_tokens, level_0, level_1, level_2, level_3, input_tokens, cache_read_tokens, cache_write_tokens,
				output_tokens, cost_microusd, net_microusd, overhead_us, ttfb_us, duration_us, attempts)
			VALUES ('%s', '%s', now(), '%s', '%s', 'anthropic', '', '', '', false, 529, 0, 'none', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)`,
			workspace, uuid.New(), failed.session, uuid.New()),
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for show, want := range map[session.Show][]uuid.UUID{
		session.ShowAll:           {plain.session, loss.session, compressed.session, bridged.session, failed.session, single.session},
		session.ShowConversations: {plain.session, loss.session, compressed.session, bridged.session, failed.session},
		session.ShowSingle:        {single.session},
		session.ShowCompressed:    {compressed.session}, session.ShowBridged: {bridged.session}, session.ShowProblems: {loss.session, failed.session},
	} {
		page, err := f.store.Browser().Sessions(tenants.OwnWork(t.Context()), workspace, session.Filter{Show: show})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Sessions) != len(want) {
			t.Errorf("%q: %d listed, want %d", show, len(page.Sessions), len(want))
		}
		for _, found := range page.Sessions {
			if !strings.Contains(fmt.Sprint(want), found.ID.String()) || found.Bridged != (found.ID == bridged.session) {
				t.Errorf("%q lists %+v", show, found)
			}
		}
	}
	const title, other = "parser", "nothing of this"
	for name, test := range map[string]struct {
		filter session.Filter
		want   [6]int // by session.Shows
	}{
		"everything":       {session.Filter{}, [6]int{6, 5, 1, 1, 2, 1}},
		"a part":           {session.Filter{Show: session.ShowProblems}, [6]int{6, 5, 1, 1, 2, 1}},
		"a key":            {session.Filter{APIKey: f.scope.APIKey}, [6]int{6, 5, 1, 1, 2, 1}},
		"another key":      {session.Filter{APIKey: uuid.New()}, [6]int{}},
		"a word":           {session.Filter{Query: title}, [6]int{6, 5, 1, 1, 2, 1}},
		"part of a word":   {session.Filter{Query: title[1:]}, [6]int{6, 5, 1, 1, 2, 1}},
		"an id":            {session.Filter{Query: loss.session.String()[:23]}, [6]int{1, 1, 0, 0, 1, 0}},
		"of nothing":       {session.Filter{Query: other}, [6]int{}},
		"what is not read": {session.Filter{Query: title, Masked: true}, [6]int{}},
	} {
		counts, err := f.store.Browser().Counts(tenants.OwnWork(t.Context()), workspace, test.filter)
		var got [6]int
		for i, show := range session.Shows() {
			got[i] = counts.Of[show]
		}
		if err != nil || got != test.want || counts.Workspace != 6 || counts.More {
			t.Errorf("%s: %+v (%v), want %v", name, counts, err, test.want)
		}
	}
}

// A question asked again is one more single call. What carries history, or names its session,
// is a conversation from then on.
func TestSingleCallsBecomeAConversationWithHistory(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(1)
	record := func(continued bool) session.Overview {
		t.Helper()
		seen := c.update()
		seen.Name, seen.Increment.Continued = "", continued
		if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
			t.Fatal(err)
		}
		detail, err := f.store.Browser().Session(tenants.OwnWork(t.Context()), f.scope.Workspace, c.session)
		if err != nil {
			t.Fatal(err)
		}
		return detail.Overview
	}
	record(false)
	if got := record(false); !got.Single || got.Sums.Exchanges != 2 {
		t.Errorf("asked twice: single %v, %d requests", got.Single, got.Sums.Exchanges)
	}
	c.say("an answer", "and on")
	if got := record(true); got.Single || got.Sums.Exchanges != 3 {
		t.Errorf("gone on with: single %v, %d requests", got.Single, got.Sums.Exchanges)
	}
	if got := record(false); got.Single {
		t.Error("the first question again makes a conversation single calls")
	}
}

// A page of 100,000 sessions is read along an index, wherever it begins and however
// the list is narrowed; nothing is sorted and nothing is skipped.
func TestPagesOfManySessionsAreReadAlongAnIndex(t *testing.T) {
	t.Parallel()
	fulltest.Only(t, "it makes 100,000 sessions")
	f := setup(t)
	owner := f.db.Owner(t)
	for _, statement := range []string{
		fmt.Sprintf(`INSERT INTO sessions (workspace_id, id, format, api_key_id, source, title, client, model, started_at, last_at, epochs)
			SELECT '%s', gen_random_uuid(), 'anthropic', gen_random_uuid(), 'header', 'session ' || n, 'client-' || n %% 7, 'model-' || n %% 5,
				now() - n * interval '1 minute', now() - n * interval '1 minute', (n %% 10 = 0)::int FROM generate_series(1, 100000) n`, f.scope.Workspace),
		"ANALYZE sessions",
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	const after = "AND (last_at, id) < (now() - interval '30 days', '00000000-0000-0000-0000-000000000000')"
	for narrowed, index := range map[string]string{
		"": "sessions_last", "AND epochs > 0": "sessions_compressed", "AND client = 'client-3'": "sessions_client", "AND model = 'model-2'": "sessions_model",
		"AND bridged": "sessions_bridged", "AND NOT single": "sessions_", "AND single": "sessions_single", "AND (net_microusd < 0 OR failed)": "sessions_problems",
	} {
		rows, err := owner.Query(t.Context(), fmt.Sprintf("EXPLAIN SELECT id FROM sessions WHERE workspace_id = '%s' %s %s ORDER BY last_at DESC, id DESC LIMIT 26",
			f.scope.Workspace, narrowed, after))
		if err != nil {
			t.Fatal(err)
		}
		var plan strings.Builder
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(line + "\n")
		}
		if !strings.Contains(plan.String(), "sessions_") || strings.Contains(plan.String(), "Sort") || strings.Contains(plan.String(), "Seq Scan") {
			t.Errorf("%q is not read along %s:\n%s", narrowed, index, plan.String())
		}
	}
	// Conditions on other columns are checked in the index.
	for narrowed, checked := range map[string]string{"AND model = 'model-2' AND single": "single = true", "AND started_at < now() - interval '60 days'": "started_at <"} {
		var plan string
		if err := owner.QueryRow(t.Context(), fmt.Sprintf("EXPLAIN (FORMAT JSON) SELECT 1 FROM sessions WHERE workspace_id = '%s' %s LIMIT 1000", f.scope.Workspace, narrowed)).Scan(&plan); err != nil {
			t.Fatal(err)
		}
		if _, condition, _ := strings.Cut(plan, `"Index Cond": "`); !strings.Contains(strings.SplitN(condition, "\n", 2)[0], checked) {
			t.Errorf("%q is not checked in an index:\n%s", narrowed, plan)
		}
	}
	filter, began := session.Filter{Limit: 25}, time.Now()
	for range 5 {
		page, err := f.store.Browser().Sessions(tenants.OwnWork(t.Context()), f.scope.Workspace, filter)
		if err != nil || len(page.Sessions) != 25 {
			t.Fatalf("%d sessions: %v", len(page.Sessions), err)
		}
		filter.Cursor = page.Next
	}
	t.Logf("five pages in %s", time.Since(began))
	if counts, err := f.store.Browser().Counts(tenants.OwnWork(t.Context()), f.scope.Workspace, session.Filter{}); err != nil || counts.Of[session.ShowAll] != session.MostCounted {
		t.Errorf("%+v counted: %v", counts, err)
	}
	newest, err := f.store.Browser().Sessions(tenants.OwnWork(t.Context()), f.scope.Workspace, session.Filter{Limit: 5})
	if err != nil {
		t.Fatal(err)
	}
	fifth := newest.Sessions[4].LastAt
	for _, test := range []struct {
		workspace tenants.WorkspaceID
		since     time.Time
		want      int
	}{
		{f.scope.Workspace, fifth, 5}, {f.scope.Workspace, fifth.Add(time.Second), 4},
		{f.scope.Workspace, time.Time{}, session.MostCounted}, {tenants.NewWorkspaceID(), time.Time{}, 0},
	} {
		if active, err := f.store.Browser().Active(tenants.OwnWork(t.Context()), test.workspace, test.since); err != nil || active != test.want {
			t.Errorf("%d active since %s, want %d: %v", active, test.since, test.want, err)
		}
	}
}
