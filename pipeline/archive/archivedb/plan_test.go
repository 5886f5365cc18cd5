package archivedb_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive/archivedb"
)

// The database last looked at the table before the workspace came: it takes its
// thousands of messages for one.
func TestMessagesOfFreshWorkspaceAreLookedUpOneByOne(t *testing.T) {
	t.Parallel()
	const insert = `INSERT INTO archive_objects (workspace_id, hash, size, encoding, bytes)
		SELECT $1, sha256(convert_to($2 || n::text, 'UTF8')), 1, 0, 'x' FROM generate_series(1, 20000) n`
	db := dbtest.New(t)
	owner, known, fresh := db.Owner(t), newFixture(t, db.DB), newFixture(t, db.DB)
	for _, filled := range []struct {
		statement string
		arguments []any
	}{
		{insert, []any{known.workspace, "a"}},
		{"ANALYZE archive_objects", nil},
		{insert, []any{fresh.workspace, "b"}},
	} {
		if _, err := owner.Exec(t.Context(), filled.statement, filled.arguments...); err != nil {
			t.Fatal(err)
		}
	}
	hashes := make([][]byte, 1_000)
	for i := range hashes {
		sum := sha256.Sum256(fmt.Append(nil, "b", i))
		hashes[i] = sum[:]
	}
	for _, statement := range []string{archivedb.StatementKnown, archivedb.StatementObjects} {
		var lines []string
		err := fresh.runner.InTenant(t.Context(), fresh.workspace, func(tx *gorm.DB) error {
			return tx.Raw("EXPLAIN "+statement, fresh.workspace, hashes).Scan(&lines).Error
		})
		if err != nil {
			t.Fatal(err)
		}
		plan := strings.Join(lines, "\n")
		if !strings.Contains(plan, "(hash = wanted.hash)") || strings.Contains(plan, "Filter: (hash") {
			t.Errorf("messages are not looked up one by one:\n%s", plan)
		}
	}
}

// The same of a search: it reads the documents of its session or lane, not the workspace's.
func TestSessionOfFreshWorkspaceIsSearchedAlone(t *testing.T) {
	t.Parallel()
	const lanes = `INSERT INTO lanes (workspace_id, id, session_id, created_at, last_at)
		SELECT $1, md5($3 || n)::uuid, $2, now(), now() FROM generate_series(0, 199) n`
	const insert = `INSERT INTO archive_documents (workspace_id, lane_id, first, part, after, session_id, api_key_id, at, sampled, terms)
		SELECT $1, md5($3 || (n % 200))::uuid, n / 200, 0, n / 200 + 1, md5($3 || (n % 200))::uuid, $2, now() - n * interval '1 second', 0,
			ARRAY(SELECT (n * 31 + k * 17) % 5000 * 8 FROM generate_series(1, 20) k) FROM generate_series(1, 20000) n`
	db := dbtest.New(t)
	owner, known, fresh := db.Owner(t), newFixture(t, db.DB), newFixture(t, db.DB)
	for _, filled := range []struct {
		statement string
		arguments []any
	}{
		{lanes, []any{known.workspace, known.session, "a"}},
		{insert, []any{known.workspace, known.session, "a"}},
		{"ANALYZE archive_documents", nil},
		{lanes, []any{fresh.workspace, fresh.session, "b"}},
		{insert, []any{fresh.workspace, fresh.session, "b"}},
	} {
		if _, err := owner.Exec(t.Context(), filled.statement, filled.arguments...); err != nil {
			t.Fatal(err)
		}
	}
	var id uuid.UUID
	if err := owner.QueryRow(t.Context(), "SELECT md5('b7')::uuid").Scan(&id); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string][2]*uuid.UUID{"session": {&id, nil}, "lane": {nil, &id}} {
		blocks := fresh.blocksRead(t, archivedb.StatementSearch, "{16,80}", []float64{1, 1}, []bool{false, false}, nil, nil, nil, nil, of[0], of[1], 0, nil, nil, 32)
		// Of each of 100 documents the block is read three times, and those of the indexes and catalogs.
		if blocks > 1_000 {
			t.Errorf("a search of one %s reads %d blocks", name, blocks)
		}
	}
}

// The same of a lane: what is read of it is looked up lane by lane, a fork's messages those of the
// lane it comes from as well.
func TestLaneOfFreshWorkspaceIsReadAlone(t *testing.T) {
	t.Parallel()
	const lanes = `INSERT INTO lanes (workspace_id, id, session_id, parent_id, fork_at, created_at, last_at)
		SELECT $1, md5($3 || n)::uuid, $2, CASE WHEN n % 2 = 1 THEN md5($3 || (n - 1))::uuid END, n % 2 * 3, now(), now() FROM generate_series(0, 1999) n`
	const objects = `INSERT INTO archive_objects (workspace_id, hash, size, encoding, bytes) VALUES ($1, '\x01', 1, 0, 'x')`
	const entries = `INSERT INTO archive_entries (workspace_id, lane_id, index, session_id, hash, role, tokens)
		SELECT $1, md5($3 || (n / 8))::uuid, n % 8, $2, '\x01', 'user', 1 FROM generate_series(0, 15999) n`
	db := dbtest.New(t)
	owner, known, fresh := db.Owner(t), newFixture(t, db.DB), newFixture(t, db.DB)
	for _, filled := range []struct {
		statement string
		arguments []any
	}{
		{lanes, []any{known.workspace, known.session, "a"}},
		{objects, []any{known.workspace}},
		{entries, []any{known.workspace, known.session, "a"}},
		{"ANALYZE lanes, archive_objects, archive_entries", nil},
		{lanes, []any{fresh.workspace, fresh.session, "b"}},
		{objects, []any{fresh.workspace}},
		{entries, []any{fresh.workspace, fresh.session, "b"}},
	} {
		if _, err := owner.Exec(t.Context(), filled.statement, filled.arguments...); err != nil {
			t.Fatal(err)
		}
	}
	var forks [][16]byte
	if err := owner.QueryRow(t.Context(), "SELECT array_agg(md5('b' || n)::uuid) FROM generate_series(1, 199, 2) n").Scan(&forks); err != nil {
		t.Fatal(err)
	}
	for statement, arguments := range map[string][]any{
		archivedb.StatementOriginals: {forks, make([]int32, len(forks)), slices.Repeat([]int32{8}, len(forks))},
		archivedb.StatementForked:    {forks, make([]int32, len(forks))},
		archivedb.StatementChains:    {forks},
	} {
		blocks := fresh.blocksRead(t, statement, append([]any{fresh.workspace}, arguments...)...)
		// Of each lane and the one it comes from some blocks of two tables and their indexes.
		if most := 40 * len(forks); blocks > most {
			t.Errorf("%d forks are read from %d blocks, more than %d, by\n%s", len(forks), blocks, most, statement)
		}
	}
	linked := fresh.explain(t, archivedb.StatementLinked, fresh.workspace, forks, make([]int32, len(forks)), make([][]byte, len(forks)), make([][]byte, len(forks)))
	if rows := linked.rowsOf("lanes"); rows > 2*len(forks) {
		t.Errorf("%d lanes are read to store the chains of %d", rows, len(forks))
	}
}

// A plan that was made while the tables were empty stays with its connection, until the database looks at
// them again: a minute at least. It looks up what is wanted as well.
func TestPlanOfEmptyTablesLooksUpOneByOne(t *testing.T) {
	t.Parallel()
	const lanes = `INSERT INTO lanes (workspace_id, id, session_id, created_at, last_at)
		SELECT $1, lpad(to_hex(n), 32, '0')::uuid, $2, now(), now() FROM generate_series(0, 1999) n`
	const objects = `INSERT INTO archive_objects (workspace_id, hash, size, encoding, bytes)
		SELECT $1, sha256(convert_to('b' || n::text, 'UTF8')), 1, 0, 'x' FROM generate_series(0, 15999) n`
	const entries = `INSERT INTO archive_entries (workspace_id, lane_id, index, session_id, hash, role, tokens)
		SELECT $1, lpad(to_hex(n / 8), 32, '0')::uuid, n % 8, $2, sha256(convert_to('b' || n::text, 'UTF8')), 'user', 1 FROM generate_series(0, 15999) n`
	db := dbtest.New(t)
	owner, fresh := db.Owner(t), newFixture(t, db.DB)
	ids := make([]string, 64)
	for i := range ids {
		ids[i] = fmt.Sprintf("%032x", 100+i)
	}
	of := "'{" + strings.Join(ids, ",") + "}'"
	statements := map[string]string{
		archivedb.StatementOriginals: of + ", array_fill(0, ARRAY[64]), array_fill(8, ARRAY[64])",
		archivedb.StatementEntries:   "'" + ids[0] + "', 0, 1000",
		archivedb.StatementForked:    of + ", array_fill(0, ARRAY[64])",
		archivedb.StatementChains:    of,
	}
	planned, err := owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = planned.Rollback(context.WithoutCancel(t.Context())) }()
	run := func(statement string) {
		t.Helper()
		if _, err := planned.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%v: %s", err, statement)
		}
	}
	run("SET LOCAL ROLE palimpsest_app")
	run(fmt.Sprintf("SELECT set_config('app.workspace_id', '%s', true), set_config('plan_cache_mode', 'force_generic_plan', true)", fresh.workspace))
	names, number := map[string]string{}, 0
	for statement, arguments := range statements {
		number++
		names[statement] = fmt.Sprintf("EXECUTE s%d('%s', %s)", number, fresh.workspace, arguments)
		run(fmt.Sprintf("PREPARE s%d AS %s", number, statement))
		run(names[statement])
	}
	for _, filled := range []struct {
		statement string
		arguments []any
	}{
		{lanes, []any{fresh.workspace, fresh.session}},
		{objects, []any{fresh.workspace}},
		{entries, []any{fresh.workspace, fresh.session}},
	} {
		if _, err := owner.Exec(t.Context(), filled.statement, filled.arguments...); err != nil {
			t.Fatal(err)
		}
	}
	for statement, execute := range names { // 8 messages of each lane at most
		var plan string
		if err := planned.QueryRow(t.Context(), explained+execute).Scan(&plan); err != nil {
			t.Fatal(err)
		}
		read := planOf(t, plan)
		if blocks := read.Hit + read.Read; blocks > 40*64 {
			t.Errorf("%d blocks are read by\n%s", blocks, statement)
		}
		for _, table := range []string{"lanes", "archive_entries", "archive_objects"} {
			if rows := read.rowsOf(table); rows > 2*8*64 {
				t.Errorf("%d rows of %s are read by\n%s", rows, table, statement)
			}
		}
	}
}

// blocksRead returns how many blocks a statement reads, those of the functions it calls too.
func (f *fixture) blocksRead(t *testing.T, statement string, arguments ...any) (blocks int) {
	t.Helper()
	read := f.explain(t, statement, arguments...)
	if read.Hit == 0 {
		t.Fatal("no block is read")
	}
	return read.Hit + read.Read
}

// node is a node of a plan that has run.
type node struct {
	Hit      int     `json:"Shared Hit Blocks"`
	Read     int     `json:"Shared Read Blocks"`
	Relation string  `json:"Relation Name"`
	Rows     float64 `json:"Actual Rows"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Loops    float64 `json:"Actual Loops"`
	Plans    []node  `json:"Plans"`
}

// rowsOf returns how many rows of a table the plan has looked at.
func (n *node) rowsOf(table string) (rows int) {
	if n.Relation == table {
		rows = int((n.Rows + n.Removed) * n.Loops)
	}
	for i := range n.Plans {
		rows += n.Plans[i].rowsOf(table)
	}
	return rows
}

// explain runs a statement twice and returns the plan of the second time: the first reads catalogs, too.
func (f *fixture) explain(t *testing.T, statement string, arguments ...any) *node {
	t.Helper()
	var plan string
	for range 2 {
		f.in(t, func(tx *gorm.DB) error {
			row := tx.Statement.ConnPool.QueryRowContext(t.Context(), explained+statement, arguments...)
			return row.Scan(&plan)
		})
	}
	return planOf(t, plan)
}

// explained before a statement has it run, and answers with its plan.
const explained = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "

// planOf reads the plan that explained answers with.
func planOf(t *testing.T, plan string) *node {
	t.Helper()
	var read []struct {
		Plan node `json:"Plan"`
	}
	if err := json.Unmarshal([]byte(plan), &read); err != nil || len(read) != 1 {
		t.Fatalf("%v: %s", err, plan)
	}
	return &read[0].Plan
}
