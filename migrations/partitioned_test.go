package migrations_test

import (
	"fmt"
	"testing"
	"time"

	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
	"palimpsest/migrations/partitions"
)

// S27: the table of exchanges becomes a partition with its rows and indexes as they lie on the disk, and the partitions
// become a table again with the rows of all.
func TestExchangesBecomeAPartitionAsTheyAre(t *testing.T) {
	t.Parallel()
	database := dbtest.Empty(t)
	owner := connect(t, database.OwnerURL)
	text := func(statement string) string {
		t.Helper()
		var text string
		if err := owner.QueryRow(t.Context(), statement).Scan(&text); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		return text
	}
	step := func() {
		t.Helper()
		if did, err := migrations.UpByOne(t.Context(), database.OwnerURL); err != nil || !did {
			t.Fatalf("up: %v (%v)", did, err)
		}
	}
	for step(); text("SELECT max(version_id)::text FROM goose_db_version") != "220"; {
		step()
	}
	const (
		exchange = `INSERT INTO exchanges (workspace_id, id, at, api_key_id, provider, endpoint, model, client, stream, status, position, compression, tokens_before, tokens_after,
				window_tokens, level_0, level_1, level_2, level_3, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_microusd, net_microusd, overhead_us, ttfb_us, duration_us, attempts)
			SELECT md5('w')::uuid, ('01f0000' || n || '00007000800000000000000' || n)::uuid, now(), md5('k')::uuid, '', '', '', '', false, 200, 1, '', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1
			FROM generate_series(%d, %d) n`
		files = `SELECT string_agg(relfilenode::text, ' ' ORDER BY relfilenode) FROM pg_class WHERE oid = '%[1]s'::regclass OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = '%[1]s'::regclass)`
		ids   = `SELECT string_agg(right(id::text, 1), '' ORDER BY id) FROM exchanges`
		names = `SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM pg_indexes WHERE tablename = 'exchanges'`
	)
	execute(t, owner, "INSERT INTO workspaces (workspace_id, name) VALUES (md5('w')::uuid, 'w')",
		fmt.Sprintf(exchange, 1, 3), "CREATE INDEX of_an_operator ON exchanges (workspace_id, status)")
	before, named := text(fmt.Sprintf(files, "exchanges")), text(names)
	step()
	if after := text(fmt.Sprintf(files, "exchanges_first")); after != before {
		t.Errorf("files %s, want %s as before", after, before)
	}
	if found := text(ids); found != "123" {
		t.Errorf("exchanges %s, want 123", found)
	}

	keeper := partitions.Manager{OwnerURL: database.OwnerURL, Days: partitions.LeastDays, Now: func() time.Time { return time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC) }, After: time.After}
	if done, err := keeper.Keep(t.Context()); err != nil || len(done.Made) != 1 {
		t.Fatalf("did %+v (%v)", done, err)
	}
	execute(t, owner, fmt.Sprintf(exchange, 4, 6))
	if moved := text("SELECT count(*)::text FROM exchanges_20261225"); moved != "6" { // all are of 2037, beyond the end
		t.Errorf("%s exchanges lie in the newest partition, want 6", moved)
	}
	if was, err := migrations.Down(t.Context(), database.OwnerURL); err != nil || !was {
		t.Fatalf("down: %v (%v)", was, err)
	}
	if found := text(ids); found != "123456" || text(names) != named {
		t.Errorf("after going down there are exchanges %s and indexes %s, want 123456 and %s", found, text(names), named)
	}
	if sums := text("SELECT sum(exchanges)::text FROM rollups_now WHERE NOT part AND minutes = 1440"); sums != "6" {
		t.Errorf("%s exchanges are counted, want 6", sums)
	}
}
