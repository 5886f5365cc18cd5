package demo_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"palimpsest/cmd/palimpsest/demo"
	"palimpsest/migrations/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// schemaOfDefaults lists what fills columns by itself.
const schemaOfDefaults = `SELECT string_agg(table_name || '.' || column_name || ' ' || coalesce(column_default, '-'), E'\n' ORDER BY table_name, column_name)
	FROM information_schema.columns WHERE table_schema = 'public'`

func TestDatabaseTellsTheTimeOfTheClockUntilItIsClosed(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	read := func(query string) (found string) {
		t.Helper()
		connection, err := pgx.Connect(t.Context(), database.OwnerURL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close(t.Context()) }()
		if err := connection.QueryRow(t.Context(), query).Scan(&found); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return found
	}
	before := read(schemaOfDefaults)

	clock, err := demo.OpenDatabaseClock(t.Context(), database.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	ahead := -90 * 24 * time.Hour
	if err := clock.Follow(t.Context(), ahead); err != nil {
		t.Fatal(err)
	}
	for name, query := range map[string]string{
		"now()":             "SELECT now()::text",
		"clock_timestamp()": "SELECT clock_timestamp()::text",
		"a default":         "INSERT INTO users (id, email, password_hash) VALUES (gen_random_uuid(), 'mira@example.com', 'x') RETURNING created_at::text",
	} {
		told, err := time.Parse("2006-01-02 15:04:05.999999-07", read(query))
		if off := time.Since(told) + ahead; err != nil || off < 0 || off > time.Minute {
			t.Errorf("%s tells %s, off by %s, %v", name, told, off, err)
		}
	}
	if err := clock.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := read(schemaOfDefaults); after != before {
		t.Errorf("columns are filled otherwise than before:\n%s", after)
	}
	if told, err := time.Parse("2006-01-02 15:04:05.999999-07", read("SELECT now()::text")); err != nil || time.Since(told) > time.Minute {
		t.Errorf("it tells %s afterwards, %v", told, err)
	}
	if left := read("SELECT count(*)::text FROM pg_namespace WHERE nspname = 'demo_clock'"); left != "0" {
		t.Error("the clock is still there")
	}
}

func TestClockRunsOnFromWhereItIsSet(t *testing.T) {
	t.Parallel()
	var clock demo.Clock
	if off := time.Since(clock.Now()); off < 0 || off > time.Minute {
		t.Errorf("a new clock is off by %s", off)
	}
	clock.Set(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC))
	clock.Pass(time.Hour)
	first, second := clock.Now(), clock.Now()
	if second.Before(first) || first.Sub(time.Date(2020, 1, 2, 4, 4, 5, 0, time.UTC)).Abs() > time.Minute {
		t.Errorf("it tells %s and then %s", first, second)
	}
}
