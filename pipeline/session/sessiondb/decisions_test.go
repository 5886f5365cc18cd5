package sessiondb_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
)

// spend records an exchange of a lane under a projection.
func (c *client) spend(t *testing.T, projection int, net int64, change func(*tenants.Exchange)) {
	t.Helper()
	exchange := tenants.Exchange{
		ID: uuid.Must(uuid.NewV7()), At: time.Now(),
		Request: tenants.ExchangeRequest{Session: c.session, Lane: c.lane, APIKey: c.f.scope.APIKey},
		Prompt:  tenants.ExchangePrompt{Compression: "frozen", Projection: projection},
		Cost:    tenants.ExchangeCost{NetMicroUSD: net},
	}
	if change != nil {
		change(&exchange)
	}
	if err := c.f.db.DB.Exchanges.RecordExchanges(t.Context(), c.f.scope.Workspace, []tenants.Exchange{exchange}); err != nil {
		t.Fatal(err)
	}
}

func predicted(net int64) func(*tenants.Exchange) {
	return func(e *tenants.Exchange) { e.Prompt.Compression, e.Cost.PredictedMicroUSD = "epoch", new(net) }
}

// atWorst is predicted with a report that says what the epoch comes to if no request follows.
func atWorst(net, worst int) func(*tenants.Exchange) {
	return func(e *tenants.Exchange) {
		predicted(int64(net))(e)
		e.Prompt.Report = fmt.Appendf(nil, `{"events":[{"type":"started","counts":{"worst_net_microusd":7}},{"type":"completed","counts":{"worst_net_microusd":%d}}]}`, worst)
	}
}

// C11: predicted and realized of each decision.
func TestDecisionsEarnWhatTheExchangesUnderThemDo(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(6)
	c.commit(t, c.projection(1, 2))
	c.spend(t, 0, 77, nil)
	c.spend(t, 1, -500, atWorst(900, -650))
	c.spend(t, 1, 300, nil)
	c.commit(t, c.projection(2, 4))
	c.spend(t, 2, -100, nil) // says nothing of what it is to save

	// A lane that forks before the second epoch goes on under the first.
	fork := *c
	fork.lane, fork.recorded = uuid.New(), 3
	seen := fork.update()
	seen.Parent, seen.ForkAt, seen.Inherited = c.lane, 3, 1
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	fork.spend(t, 1, 50, nil)
	fork.spend(t, 2, 9, predicted(-5)) // its own second epoch
	own := fork.projection(2, 5)
	if err := f.store.Commit(t.Context(), seen, own); err != nil {
		t.Fatal(err)
	}
	other := f.conversationOf(3)
	other.commit(t, other.projection(1, 2))
	other.spend(t, 1, 1_000_000, nil)

	decisions, err := f.store.Browser().Decisions(t.Context(), f.scope.Workspace, c.session)
	if err != nil {
		t.Fatal(err)
	}
	type earned struct {
		lane                uuid.UUID
		number, exchanges   int
		predicted, realized int64
		guessed             bool
		worst               int64 // 0 if not known
	}
	want := []earned{
		{c.lane, 1, 3, 900, -150, true, -650}, {c.lane, 2, 1, 0, -100, false, 0}, {fork.lane, 2, 1, -5, 9, true, 0},
	}
	if len(decisions) != len(want) {
		t.Fatalf("%d decisions: %+v", len(decisions), decisions)
	}
	for i, d := range decisions {
		var worst int64
		if d.Worst != nil {
			worst = *d.Worst
		}
		if got := (earned{d.Lane, d.Number, d.Exchanges, d.Predicted, d.Realized, d.Guessed, worst}); got != want[i] {
			t.Errorf("decision %d: %+v\nwant %+v", i, got, want[i])
		}
		if d.Reason != "target" || d.Before != 90_000 || d.After != 40_000 || d.At.IsZero() {
			t.Errorf("decision %d: %+v", i, d)
		}
	}
	if none, err := f.store.Browser().Decisions(t.Context(), addWorkspace(t, f.runner), c.session); err != nil || len(none) != 0 {
		t.Errorf("another workspace sees %+v (%v)", none, err)
	}
}

func TestNoticesNameTheSessionThatNeedsAttentionMost(t *testing.T) {
	t.Parallel()
	f := setup(t)
	now := time.Now()
	addSession := func(last time.Time, epochs int, net int64) *client {
		c := f.addSession(t, last, nil)
		c.say(`{"role":"user"}`, `{"role":"user"}`)
		for number := range epochs {
			c.commit(t, c.projection(number+1, 2))
		}
		err := f.runner.InTenant(t.Context(), f.scope.Workspace, func(tx *gorm.DB) error {
			return tx.Exec("UPDATE sessions SET net_microusd = ?, last_at = ? WHERE workspace_id = ? AND id = ?", net, last, f.scope.Workspace, c.session).Error
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	addSession(now, 0, -9_000)                      // may yet earn it
	addSession(now, 1, -9_000)                      // may yet earn it
	addSession(now.Add(-8*24*time.Hour), 5, -9_000) // long ago
	addSession(now.Add(-2*time.Hour), 1, -1_000)
	addSession(now, 2, -3_000)
	worst := addSession(now.Add(-2*time.Hour), 0, -5_000) // by what was put back, without a compaction
	many := addSession(now, 4, 0)
	saved := addSession(now, 5, 5_000) // it compacted often and saved money by it
	saved.spend(t, 4, 0, func(e *tenants.Exchange) { e.Prompt.Compression = "truncated" })
	lossy := saved.projection(6, 2)
	lossy.Certificate = session.Certificate{{What: "plan", All: 1, InPrompt: 1}, {What: "orders", All: 3, InPrompt: 1, Missing: []int{0}}}
	saved.commit(t, lossy)

	notices, err := f.store.Browser().Notices(tenants.OwnWork(t.Context()), f.scope.Workspace, now.Add(-7*24*time.Hour), now, 3)
	if err != nil {
		t.Fatal(err)
	}
	want := []cost.Notice{
		{Kind: cost.NoticeLoss, Sessions: 3, Session: worst.session, Title: "Fix the parser", Net: -9_000}, // by no epoch
		{Kind: cost.NoticeTruncated, Sessions: 1, Session: saved.session, Title: "Fix the parser"},
		{Kind: cost.NoticeIncomplete, Sessions: 1, Session: saved.session, Title: "Fix the parser", Epochs: 2},
		{Kind: cost.NoticeEpochs, Sessions: 1, Session: many.session, Title: "Fix the parser", Epochs: 4},
	}
	if len(notices) != len(want) {
		t.Fatalf("notices %+v", notices)
	}
	for i, notice := range notices {
		if notice != want[i] {
			t.Errorf("notice %+v\nwant   %+v", notice, want[i])
		}
	}
	if used, err := sessiondb.Models(tenants.OwnWork(t.Context()), f.store.Browser(), f.scope.Workspace, now.Add(-7*24*time.Hour)); err != nil || len(used) != 1 {
		t.Errorf("models in use: %v (%v)", used, err)
	} else {
		for model, sessions := range used {
			if sessions != 7 || model == "" {
				t.Errorf("%d sessions used %q, want 7", sessions, model)
			}
		}
	}
	if quiet, err := f.store.Browser().Notices(tenants.OwnWork(t.Context()), f.scope.Workspace, now.Add(-7*24*time.Hour), now, 0); err != nil || len(quiet) != 3 {
		t.Errorf("with that turned off: %+v (%v)", quiet, err)
	}
}

// What a session's epochs have earned is read along the index of projections, also for a
// workspace that has come since the database last looked at the table.
func TestEpochsReadTheExchangesUnderThemAndNoOthers(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	const insert = `INSERT INTO exchanges (workspace_id, id, at, session_id, lane_id, api_key_id, provider, endpoint, model, client, stream, status, position,
			compression, tokens_before, tokens_after, window_tokens, level_0, level_1, level_2, level_3, input_tokens, cache_read_tokens,
			cache_write_tokens, output_tokens, cost_microusd, net_microusd, overhead_us, ttfb_us, duration_us, attempts, projection)
		SELECT $1, gen_random_uuid(), now() - n * interval '1 second', md5($2 || n / 20)::uuid, md5($2 || n / 20)::uuid, $3, 'anthropic', '', '', '', false, 200, 0,
			'frozen', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1 FROM generate_series(1, 20000) n`
	f := setup(t)
	owner, fresh := f.db.Owner(t), *f
	fresh.scope.Workspace = addWorkspace(t, f.runner)
	for _, filled := range []struct {
		statement string
		arguments []any
	}{
		{insert, []any{f.scope.Workspace, "a", f.scope.APIKey}},
		{"ANALYZE exchanges", nil},
		{insert, []any{fresh.scope.Workspace, "b", f.scope.APIKey}},
	} {
		if _, err := owner.Exec(t.Context(), filled.statement, filled.arguments...); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range []*fixture{f, &fresh} {
		c := one.conversationOf(6)
		c.commit(t, c.projection(1, 2))
		for statement, of := range map[string]uuid.UUID{sessiondb.StatementDecisions: c.session, sessiondb.StatementEpochs: c.lane} {
			plan := f.explain(t, one.scope.Workspace, statement, one.scope.Workspace, of)
			if !strings.Contains(plan, "using exchanges_projection on exchanges") || strings.Contains(plan, "Seq Scan on exchanges") {
				t.Errorf("workspace %s: exchanges are not read by their projection:\n%s", one.scope.Workspace, plan)
			}
		}
	}
}

// Which sessions of a week have many epochs is asked on every visit of the overview: of
// their lanes, not of all that the workspace has.
func TestSessionsWithManyEpochsAreFoundByTheirOwnLanes(t *testing.T) {
	t.Parallel()
	fulltest.Only(t, "it fills a workspace with 20,000 requests")
	f := setup(t)
	dbtest.FillWorkspace(t, f.db.Owner(t), f.scope.Workspace, 20_000)

	plan := f.explain(t, f.scope.Workspace, sessiondb.StatementMany, f.scope.Workspace, time.Now().Add(-7*24*time.Hour), []uuid.UUID(nil), 3)
	for _, one := range []string{"(session_id = s.id)", "(lane_id = l.id)"} {
		if !strings.Contains(plan, one) {
			t.Errorf("%s is no condition of an index:\n%s", one, plan)
		}
	}
	for _, all := range []string{"Seq Scan on lanes", "Seq Scan on epochs", "Hash", "Bitmap"} {
		if strings.Contains(plan, all) {
			t.Errorf("more is read than the lanes of those sessions:\n%s", plan)
		}
	}
}
