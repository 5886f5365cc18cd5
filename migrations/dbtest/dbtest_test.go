package dbtest_test

import (
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestEachTestGetsADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	first, second := dbtest.New(t), dbtest.New(t)
	addWorkspace(t, first)

	for database, want := range map[*dbtest.Database]int{first: 1, second: 0} {
		var rows int
		if err := database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM workspaces").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		if rows != want {
			t.Errorf("%s has %d workspaces, want %d", database.Name, rows, want)
		}
	}
}

// addWorkspace adds a workspace to a database.
func addWorkspace(t testing.TB, database *dbtest.Database) {
	t.Helper()
	workspace := tenants.NewWorkspaceID()
	err := database.DB.InTenant(t.Context(), workspace, func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO workspaces (workspace_id, name) VALUES (?, 'one')", workspace).Error
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTemplateIsFilledOnceAndCopied(t *testing.T) {
	t.Parallel()
	var template dbtest.Template
	filled := 0
	fill := func(t testing.TB, database *dbtest.Database) {
		t.Helper()
		addWorkspace(t, database)
		filled++
	}
	first, second := template.New(t, fill), template.New(t, fill)
	addWorkspace(t, first)

	for database, want := range map[*dbtest.Database]int{first: 2, second: 1} {
		var rows int
		if err := database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM workspaces").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		if rows != want || filled != 1 {
			t.Errorf("%s has %d workspaces, want %d; filled %d times", database.Name, rows, want, filled)
		}
	}
}

func TestDatabaseIsOpenedAsTheApplication(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)

	var login string
	if err := database.DB.Pool().QueryRow(t.Context(), "SELECT current_user").Scan(&login); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(login, "palimpsest_app_") {
		t.Errorf("the pool works as %s", login)
	}
	if _, err := database.DB.Pool().Exec(t.Context(), "DROP TABLE users"); err == nil {
		t.Error("the application's login may drop tables")
	}
}

func TestEmptyDatabaseHoldsNoTable(t *testing.T) {
	t.Parallel()
	database := dbtest.Empty(t)

	var tables int
	err := database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables)
	if err != nil {
		t.Fatal(err)
	}
	if tables != 0 {
		t.Errorf("%d tables", tables)
	}
}

func BenchmarkNew(b *testing.B) {
	dbtest.New(b)
	began := time.Now()
	for b.Loop() {
		dbtest.New(b)
	}
	b.ReportMetric(float64(time.Since(began).Milliseconds())/float64(b.N), "ms/database")
}
