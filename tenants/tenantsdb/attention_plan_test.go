package tenantsdb_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// What needs attention is asked on every visit: of a provider key that was refused for a while
// long ago, has worked since and is refused now, and of prompts that did not fit, few rows are read.
func TestAttentionReadsFewExchanges(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	b := setup(t)
	key := b.addProviderKey(t, b.workspace, "anthropic")
	owner := b.database.Owner(t)
	dbtest.FillExchanges(t, owner, b.workspace, 30_000)
	const (
		use = `UPDATE exchanges SET provider_key_id = $2 WHERE workspace_id = $1`
		// The newest, and half of those from before the last 10,000.
		refuse = `WITH placed AS (SELECT id, row_number() OVER (ORDER BY at DESC, id DESC) AS n FROM exchanges WHERE workspace_id = $1)
			UPDATE exchanges e SET status = 401, error_from = 'provider' FROM placed p WHERE e.workspace_id = $1 AND e.id = p.id AND (n <= 40 OR n > 10000 AND n % 2 = 0)`
		hinder = `UPDATE exchanges SET compression = 'unreachable' WHERE workspace_id = $1 AND id IN (SELECT id FROM exchanges WHERE workspace_id = $1 ORDER BY at DESC LIMIT 30)`
	)
	for _, change := range []struct {
		statement string
		arguments []any
	}{{"UPDATE provider_keys SET sealed_at = now() - interval '1 year'", nil}, {use, []any{b.workspace, key.ID}}, {refuse, []any{b.workspace}}, {hinder, []any{b.workspace}}, {"VACUUM ANALYZE exchanges", nil}} {
		if _, err := owner.Exec(t.Context(), change.statement, change.arguments...); err != nil {
			t.Fatal(err)
		}
	}
	since := now().Add(-365 * 24 * time.Hour)
	if found, err := b.Usage.Rejections(tenants.OwnWork(t.Context()), b.workspace, since); err != nil || len(found) != 1 || found[0].Count != 40 {
		t.Errorf("rejections %+v, want one of 40 requests: %v", found, err)
	}
	asked := map[string]any{"workspace": b.workspace, "since": since, "most": 20, "all": true, "keys": []uuid.UUID{}}
	for statement, index := range map[string]string{tenantsdb.StatementRejections: "exchanges_provider_key", tenantsdb.StatementHindrances: "exchanges_beyond"} {
		plan := b.explainStatement(t, statement, asked)
		if read := plan.rows(); !plan.uses(index) || read > 100 {
			t.Errorf("%.0f rows are read along %s:\n%s", read, index, plan)
		}
	}
}
