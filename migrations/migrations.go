// Package migrations holds the database schema as numbered SQL files, applied in
// order, and makes the logins that the product works with.
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

// lockWait bounds how long a program waits, in seconds, while another migrates.
const lockWait = 300

// Migration is one numbered step of the schema.
type Migration struct {
	Version   int64
	File      string
	AppliedAt time.Time // zero: not yet
}

// Up brings the schema of a database up to date and returns how many migrations
// it applied. Of several programs that start at once one migrates and the others
// wait. The URL is the owner's. It returns a RoleMissing if the owner cannot make
// what the schema needs.
func Up(ctx context.Context, ownerURL string) (int, error) {
	var applied int
	err := withProvider(ownerURL, func(database *sql.DB, provider *goose.Provider) error {
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

// Down takes the newest migration back, with everything its tables hold. It
// reports whether there was one.
func Down(ctx context.Context, ownerURL string) (bool, error) {
	err := withProvider(ownerURL, func(_ *sql.DB, provider *goose.Provider) error {
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
	err := withProvider(ownerURL, func(_ *sql.DB, provider *goose.Provider) error {
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

// withProvider runs fn with goose on a database.
func withProvider(ownerURL string, fn func(*sql.DB, *goose.Provider) error) (err error) {
	database, err := sql.Open("pgx", ownerURL)
	if err != nil {
		return errors.New("DATABASE_URL is no PostgreSQL URL") // the cause would show the password
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
	return fn(database, provider)
}
