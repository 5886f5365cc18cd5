// Package migrations holds the database schema as numbered SQL files, applied in order, and creates the
// product's logins. The files numbered below FirstStep are the baseline: together they are the schema of the
// first release, one file for each group of nouns. Later files are never changed or removed.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver named pgx
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Files are the migrations in goose's format.
//
//go:embed *.sql
var Files embed.FS

// FirstStep is the lowest number of a migration after the baseline.
const FirstStep = 140

// ErrBeforeBaseline is the error for a database from before the first release. No migration upgrades it.
var ErrBeforeBaseline = errors.New("this database was made by a version from before the first release and cannot be upgraded: " +
	"export the sessions that you want to keep with that version, then start this one with an empty database")

// lockWait limits how long a program waits, in seconds, while another migrates.
const lockWait = 300

// Migration is one numbered step of the schema.
type Migration struct {
	Version   int64
	File      string
	AppliedAt time.Time // zero if not yet
}

// Up brings the schema of a database up to date and returns how many migrations it applied. If several
// programs start at once, one migrates and the others wait. The URL is the owner's. It returns a RoleMissing
// if the owner may not create the roles that the schema needs.
func Up(ctx context.Context, ownerURL string) (int, error) {
	var applied int
	err := withProvider(ctx, ownerURL, func(database *sql.DB, provider *goose.Provider) error {
		if err := checkRoles(ctx, database); err != nil {
			return err
		}
		results, err := provider.Up(ctx)
		applied = len(results)
		return err
	})
	if err != nil {
		return applied, fmt.Errorf("migrate up: %w", err)
	}
	return applied, nil
}

// Down reverts the newest migration, with all data in its tables. It reports whether there was one.
func Down(ctx context.Context, ownerURL string) (bool, error) {
	err := withProvider(ctx, ownerURL, func(_ *sql.DB, provider *goose.Provider) error {
		_, err := provider.Down(ctx)
		return err
	})
	if errors.Is(err, goose.ErrNoNextVersion) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("migrate down: %w", err)
	}
	return true, nil
}

// Status returns all migrations in order and when each was applied.
func Status(ctx context.Context, ownerURL string) ([]Migration, error) {
	var migrations []Migration
	err := withProvider(ctx, ownerURL, func(_ *sql.DB, provider *goose.Provider) error {
		all, err := provider.Status(ctx)
		for _, one := range all {
			migrations = append(migrations, Migration{Version: one.Source.Version, File: one.Source.Path, AppliedAt: one.AppliedAt})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("migration status: %w", err)
	}
	return migrations, nil
}

// Newest returns the number of the newest migration that this program knows.
func Newest() (int64, error) {
	names, err := fs.Glob(Files, "*.sql")
	if err != nil {
		return 0, err
	}
	newest := int64(0)
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return 0, err
		}
		newest = max(newest, version)
	}
	return newest, nil
}

// withProvider runs fn with goose on a database, which must not be older than the baseline.
func withProvider(ctx context.Context, ownerURL string, fn func(*sql.DB, *goose.Provider) error) (err error) {
	database, err := sql.Open("pgx", ownerURL)
	if err != nil {
		return errors.New("DATABASE_URL is no PostgreSQL URL") // the cause would contain the password
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, lockWait))
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, database, Files, goose.WithSessionLocker(locker))
	if err != nil {
		return err
	}
	if err := checkBaseline(ctx, database, provider.ListSources()); err != nil {
		return err
	}
	return fn(database, provider)
}

// checkBaseline returns ErrBeforeBaseline if a migration was applied that the baseline replaced.
func checkBaseline(ctx context.Context, database *sql.DB, sources []*goose.Source) error {
	var exists bool
	if err := database.QueryRowContext(ctx, "SELECT to_regclass('goose_db_version') IS NOT NULL").Scan(&exists); err != nil || !exists {
		return err
	}
	known := []int64{0} // goose's own first row
	for _, source := range sources {
		known = append(known, source.Version)
	}
	var isOlder bool
	row := database.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM goose_db_version WHERE version_id < $1 AND version_id <> ALL ($2))", FirstStep, known)
	if err := row.Scan(&isOlder); err != nil {
		return err
	}
	if isOlder {
		return ErrBeforeBaseline
	}
	return nil
}
