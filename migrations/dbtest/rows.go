package dbtest

import (
	"context"
	"strings"
	"testing"

	"palimpsest/tenants"
)

// Rows returns all rows of a workspace as text, without row-level security, so that tests notice any change.
func (d *Database) Rows(t testing.TB, workspace tenants.WorkspaceID) string {
	t.Helper()
	owner := d.Owner(t)
	rows, err := owner.Query(context.WithoutCancel(t.Context()), `SELECT table_name FROM information_schema.columns
		WHERE table_schema = 'public' AND column_name = 'workspace_id' ORDER BY table_name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	if len(tables) < 10 {
		t.Fatalf("the database has only the tenant tables %v", tables)
	}
	var all strings.Builder
	for _, table := range tables {
		var content string
		err := owner.QueryRow(t.Context(), `SELECT coalesce(string_agg(r::text, E'\n' ORDER BY r::text), '') FROM `+table+` r WHERE workspace_id = $1`, workspace).Scan(&content)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(table + "\n" + content + "\n")
	}
	return all.String()
}
