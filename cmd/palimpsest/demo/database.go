package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// clockSchema is the schema of the database's own clock while the demo is made.
const clockSchema = "demo_clock"

// DatabaseClock makes a database use a Clock's time: in defaults of columns, and in now() and
// clock_timestamp() in the statements of connections opened after Open. It belongs to one goroutine.
type DatabaseClock struct {
	connection *pgx.Conn
	defaults   []columnDefault
}

// columnDefault is a column with the time as its default.
type columnDefault struct{ table, column, expression string }

// OpenDatabaseClock sets up the clock of a database with a complete schema. The URL is the owner's. Call
// Close before the database is used for anything else.
func OpenDatabaseClock(ctx context.Context, ownerURL string) (*DatabaseClock, error) {
	connection, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return nil, fmt.Errorf("set the database's clock: %w", err)
	}
	clock := &DatabaseClock{connection: connection}
	if err := clock.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("set the database's clock: %w", err), connection.Close(context.WithoutCancel(ctx)))
	}
	return clock, nil
}

func (d *DatabaseClock) open(ctx context.Context) error {
	// PostgreSQL plans the body of a function in SQL again in each statement, so it would plan the same few
	// statements thousands of times.
	const made = `
		CREATE SCHEMA demo_clock;
		CREATE TABLE demo_clock.ahead (by interval NOT NULL);
		INSERT INTO demo_clock.ahead VALUES ('0');
		CREATE FUNCTION demo_clock.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql VOLATILE SECURITY DEFINER
			AS 'BEGIN RETURN pg_catalog.clock_timestamp() + (SELECT by FROM demo_clock.ahead); END';
		CREATE FUNCTION demo_clock.now() RETURNS timestamptz LANGUAGE plpgsql STABLE SECURITY DEFINER
			AS 'BEGIN RETURN pg_catalog.now() + (SELECT by FROM demo_clock.ahead); END';
		GRANT USAGE ON SCHEMA demo_clock TO PUBLIC;
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, demo_clock, pg_catalog', current_database());
			EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database());
			EXECUTE format('ALTER DATABASE %I SET plan_cache_mode = force_generic_plan', current_database()); END $$`
	if _, err := d.connection.Exec(ctx, made); err != nil {
		return err
	}
	const filled = `SELECT table_name, column_name, column_default FROM information_schema.columns
		WHERE table_schema = 'public' AND lower(column_default) IN ('now()', 'clock_timestamp()', 'current_timestamp') ORDER BY 1, 2`
	rows, err := d.connection.Query(ctx, filled)
	if err != nil {
		return err
	}
	d.defaults, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (found columnDefault, err error) {
		return found, row.Scan(&found.table, &found.column, &found.expression)
	})
	if err != nil {
		return err
	}
	return d.setDefaults(ctx, func(of columnDefault) string {
		if strings.EqualFold(of.expression, "clock_timestamp()") {
			return clockSchema + ".clock_timestamp()"
		}
		return clockSchema + ".now()"
	})
}

// Follow sets the database's clock as far ahead of the machine's as another one is.
func (d *DatabaseClock) Follow(ctx context.Context, ahead time.Duration) error {
	if _, err := d.connection.Exec(ctx, "UPDATE demo_clock.ahead SET by = $1", ahead); err != nil {
		return fmt.Errorf("set the database's clock: %w", err)
	}
	return nil
}

// Close makes the database use the machine's time again.
func (d *DatabaseClock) Close(ctx context.Context) error {
	err := d.setDefaults(ctx, func(of columnDefault) string { return of.expression })
	if err == nil {
		_, err = d.connection.Exec(ctx, `DROP SCHEMA demo_clock CASCADE;
			DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET ALL', current_database()); END $$`)
	}
	if err = errors.Join(err, d.connection.Close(ctx)); err != nil {
		return fmt.Errorf("set the database's clock back: %w", err)
	}
	return nil
}

// setDefaults changes the defaults of the columns.
func (d *DatabaseClock) setDefaults(ctx context.Context, with func(columnDefault) string) error {
	for _, of := range d.defaults {
		set := fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT %s",
			pgx.Identifier{"public", of.table}.Sanitize(), pgx.Identifier{of.column}.Sanitize(), with(of))
		if _, err := d.connection.Exec(ctx, set); err != nil {
			return err
		}
	}
	return nil
}
