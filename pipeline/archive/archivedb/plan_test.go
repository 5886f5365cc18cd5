package archivedb_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive/archivedb"
)

// The database last looked at the table before the workspace came: it takes its
// thousands of messages for one.
func TestMessagesOfANewWorkspaceAreLookedUpOneByOne(t *testing.T) {
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
		err := fresh.door.InTenant(t.Context(), fresh.workspace, func(tx *gorm.DB) error {
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
