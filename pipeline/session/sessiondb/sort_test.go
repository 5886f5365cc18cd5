package sessiondb_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// Every order of the list goes on from page to page with the next sessions, both ways, along an index.
func TestSessionsAreListedInEveryOrder(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, statement := range []string{
		fmt.Sprintf(`INSERT INTO sessions (workspace_id, id, format, api_key_id, source, title, started_at, last_at, net_microusd, tokens_before, name)
			SELECT '%s', gen_random_uuid(), 'anthropic', gen_random_uuid(), 'header', 'session ' || n,
				now() - n * interval '1 minute', now() - n * interval '1 minute', (n * 7919) %% 501 - 200, (n * 104729) %% 777, 'run ' || n FROM generate_series(1, 2000) n`, f.scope.Workspace),
		"ANALYZE sessions",
	} {
		if _, err := f.db.Owner(t).Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, by := range []session.SortKey{session.ByLast, session.ByNet, session.ByReceived} {
		for _, up := range []bool{false, true} {
			filter := session.Filter{Show: session.ShowConversations, Sort: session.Sort{By: by, Up: up}, Limit: 200}
			value := func(o session.Overview) int64 {
				return map[session.SortKey]int64{session.ByLast: o.LastAt.UnixMicro(), session.ByNet: o.Sums.NetMicroUSD, session.ByReceived: o.Sums.TokensBefore}[by]
			}
			known := map[string]bool{}
			var values []int64
			for next := true; next; next = filter.Cursor != "" {
				page, err := f.store.Browser().Sessions(tenants.OwnWork(t.Context()), f.scope.Workspace, filter)
				if err != nil {
					t.Fatal(err)
				}
				for _, one := range page.Sessions {
					known[one.ID.String()] = true
					values = append(values, value(one))
				}
				filter.Cursor = page.Next
			}
			if !up {
				slices.Reverse(values)
			}
			if len(known) != 2000 || len(values) != 2000 || !slices.IsSorted(values) {
				t.Errorf("by %q, up %v: %d sessions in %d rows, in order: %v", by, up, len(known), len(values), slices.IsSorted(values))
			}
		}
	}
	for column, index := range map[string]string{"net_microusd": "sessions_net", "tokens_before": "sessions_received"} {
		for _, order := range []string{"%[1]s DESC, id DESC", "%[1]s, id"} {
			plan := f.explain(t, f.scope.Workspace, fmt.Sprintf("SELECT id FROM sessions WHERE workspace_id = $1 AND NOT single ORDER BY "+order+" LIMIT 26", column), f.scope.Workspace)
			if !strings.Contains(plan, index) || strings.Contains(plan, "Sort") {
				t.Errorf("by %s it is read as\n%s", column, plan)
			}
		}
	}
}

// What no index carries is not offered, and not obeyed.
func TestNarrowedSessionsAreInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	net := session.Sort{By: session.ByNet}
	for name, filter := range map[string]session.Filter{
		"a client": {Show: session.ShowConversations, Client: "codex"}, "a query": {Show: session.ShowConversations, Query: "pay"}, "another part": {Show: session.ShowCompressed},
	} {
		if filter.Sorts(net) {
			t.Errorf("%s is offered by net", name)
		}
	}
	if !(session.Filter{Client: "codex"}).Sorts(session.Sort{Up: true}) || (session.Filter{Query: "pay"}).Sorts(session.Sort{Up: true}) {
		t.Error("the oldest first is offered wrongly")
	}
}
