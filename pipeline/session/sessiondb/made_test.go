package sessiondb_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
)

func TestWhatModulesMadeIsCountedByModuleSinceAMoment(t *testing.T) {
	t.Parallel()
	f := setup(t)
	before := time.Now().Add(-time.Hour)
	first, second := f.conversationOf(3), f.conversationOf(3)
	learned := first.insert(2, 1, "[rule]")
	learned.Module = "patterns"
	if err := f.store.Inject(t.Context(), first.update(), []session.Insert{first.insert(1, 0, "[turn]"), learned}); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Inject(t.Context(), second.update(), []session.Insert{second.insert(1, 1, "[turn]")}); err != nil {
		t.Fatal(err)
	}
	second.save(t, second.attempt(2, "## Goal\n- first", ""))
	second.save(t, second.attempt(2, "an answer that was cut", "truncated"))

	made, err := f.store.Browser().Made(tenants.OwnWork(t.Context()), f.scope.Workspace, before)
	want := session.Made{Inserts: map[string]int64{"rehydrator": 2, "patterns": 1}, Summaries: 2, Rejected: 1}
	if err != nil || !reflect.DeepEqual(made, want) {
		t.Errorf("made %+v, %v; want %+v", made, err, want)
	}
	nothing := session.Made{Inserts: map[string]int64{}}
	if later, err := f.store.Browser().Made(tenants.OwnWork(t.Context()), f.scope.Workspace, time.Now().Add(time.Hour)); err != nil || !reflect.DeepEqual(later, nothing) {
		t.Errorf("in an hour from now %+v, %v", later, err)
	}
	// S2: another workspace made none of it.
	if other, err := f.store.Browser().Made(tenants.OwnWork(t.Context()), addWorkspace(t, f.runner), before); err != nil || !reflect.DeepEqual(other, nothing) {
		t.Errorf("another workspace made %+v, %v", other, err)
	}
}

// It is counted along the indexes of time, however much a workspace has.
func TestWhatModulesMadeIsReadByItsTime(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(1)
	c.record(t)
	for _, filled := range []string{
		`INSERT INTO lane_inserts (workspace_id, lane_id, number, message, chain, module, text, tokens, put_at)
			SELECT $1, $2, n, 0, 'c', 'patterns', '', 1, now() - n * interval '1 hour' FROM generate_series(1, 5000) n`,
		`INSERT INTO summaries (workspace_id, lane_id, number, session_id, covers, chain, status, version, form, model,
				input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_microusd, created_at)
			SELECT $1, $2, n, $2, 1, 'c', 'accepted', 1, 'own', '', 1, 1, 1, 1, 1, now() - n * interval '1 hour' FROM generate_series(1, 5000) n`,
	} {
		if _, err := f.db.Owner(t).Exec(t.Context(), filled, f.scope.Workspace, c.lane); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.db.Owner(t).Exec(t.Context(), "ANALYZE lane_inserts, summaries"); err != nil {
		t.Fatal(err)
	}
	for statement, index := range map[string]string{sessiondb.StatementMadeInserts: "lane_inserts_put", sessiondb.StatementMadeSummaries: "summaries_created"} {
		if plan := f.explain(t, f.scope.Workspace, statement, f.scope.Workspace, time.Now().Add(-24*time.Hour), []uuid.UUID(nil)); !strings.Contains(plan, index) {
			t.Errorf("%s is not used:\n%s", index, plan)
		}
	}
}
