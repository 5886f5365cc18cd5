package sessiondb_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
)

// What happened in a lane, what its messages took, and which prompts had to be cut, is looked up, however many requests
// there are.
func TestEventsOfALaneAndCutPromptsAreReadAlongIndexes(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	f := setup(t)
	dbtest.FillExchanges(t, f.db.Owner(t), f.scope.Workspace, 20_000)
	lane := uuid.UUID{1}
	for _, plan := range []struct {
		statement, index string
		arguments        []any
	}{
		{sessiondb.StatementCourse, "exchanges_happened", []any{f.scope.Workspace, lane, lane, 100, session.MaxEvents}},
		{sessiondb.StatementAsked, "exchanges_session", []any{f.scope.Workspace, lane, lane, time.Now().Add(-time.Hour), time.Now(), 0, 100, 500}},
		{sessiondb.StatementTruncated, "exchanges_beyond", []any{f.scope.Workspace, time.Now().Add(-7 * 24 * time.Hour), []uuid.UUID(nil)}},
	} {
		text := f.explain(t, f.scope.Workspace, plan.statement, plan.arguments...)
		if !strings.Contains(text, plan.index) || strings.Contains(text, "Seq Scan on exchanges") {
			t.Errorf("exchanges are not read along %s:\n%s", plan.index, text)
		}
	}
}

// However many lanes a workspace has, those that are named are looked up, also by a plan that was made while there
// were none.
func TestNamedLanesAreLookedUp(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, test := range []struct {
		statement string
		arguments []any
		looked    []string
	}{
		{sessiondb.StatementAnnounceHeads, []any{f.scope.Workspace, [][]byte{{1}}, []uuid.UUID{{1}}, []int{1}, []time.Time{time.Now()}}, []string{"(id = t.lane)", "(lane_id = t.lane)"}},
		{sessiondb.StatementJoined, []any{f.scope.Workspace, []uuid.UUID{{1}, {2}}}, []string{"(id = j.into_id)"}},
		{sessiondb.StatementHolding, []any{f.scope.Workspace, [][]byte{{1}}, uuid.New(), uuid.New(), "anthropic", "", ""}, []string{"(id = archive_entries.lane_id)", "(id = l.session_id)"}},
	} {
		plan := f.explain(t, f.scope.Workspace, test.statement, test.arguments...)
		for _, looked := range test.looked {
			if !regexp.MustCompile(`Index Cond: .*` + regexp.QuoteMeta(looked)).MatchString(plan) {
				t.Errorf("%s is no condition of an index:\n%s", looked, plan)
			}
		}
	}
}
