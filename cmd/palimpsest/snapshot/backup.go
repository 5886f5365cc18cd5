package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5"

	"palimpsest/migrations/localdb"
	"palimpsest/pipeline/archive"
)

// lockWait limits how long pg_dump waits for a table that a migration has locked, in milliseconds.
const lockWait = 60_000

// Source is an installation to back up.
type Source struct {
	OwnerURL string

	// Bucket is nil if the installation does not use one.
	Bucket archive.Bucket

	// LeaveObjects leaves out the bucket's objects. A restore then needs the bucket.
	LeaveObjects bool

	// ManifestKey authenticates the manifest. It is derived from the installation's master key.
	ManifestKey []byte

	// SecretKey is included in the backup unless it is empty.
	SecretKey string
}

// Progress is called with the progress of a part.
type Progress func(part string, count, bytes int64)

// Make writes a backup into a directory that must not exist yet. The directory's name ends with .partial
// until the backup is complete. After an error it is removed.
func Make(ctx context.Context, source Source, dir string, progress Progress) (manifest Manifest, err error) {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return manifest, fmt.Errorf("backup: %s exists already; name a new directory", dir)
	}
	partial := filepath.Clean(dir) + ".partial"
	if err := os.MkdirAll(filepath.Dir(partial), directoryMode); err != nil {
		return manifest, fmt.Errorf("backup: %w", err)
	}
	if err := os.Mkdir(partial, directoryMode); err != nil {
		return manifest, fmt.Errorf("backup: %w; another backup is being made there, or one was interrupted: then remove that directory", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	manifest = Manifest{Version: Version}
	if err := manifest.dump(ctx, source.OwnerURL, partial, progress); err != nil {
		return manifest, err
	}
	if manifest.Objects, err = backUpObjects(ctx, source, partial, progress); err != nil {
		return manifest, err
	}
	if source.SecretKey != "" {
		file, err := writeFile(partial, secretFile, []byte(source.SecretKey+"\n"))
		if err != nil {
			return manifest, err
		}
		manifest.SecretKey = &file
	}
	if err := manifest.write(partial, source.ManifestKey); err != nil {
		return manifest, err
	}
	if err := errors.Join(syncDirectory(partial), os.Rename(partial, dir), syncDirectory(filepath.Dir(filepath.Clean(dir)))); err != nil {
		return manifest, fmt.Errorf("backup: %w", err)
	}
	return manifest, nil
}

// dump writes the database's content at one moment, and notes its properties.
func (m *Manifest) dump(ctx context.Context, ownerURL, dir string, progress Progress) error {
	connection, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return fmt.Errorf("backup: connect as the database's owner: %w", err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	// The transaction keeps its snapshot alive while pg_dump reads it.
	return pgx.BeginTxFunc(ctx, connection, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		snapshot, version, err := m.look(ctx, tx)
		if err != nil {
			return err
		}
		program, err := localdb.Program(ctx, os.Getenv("PATH"), "pg_dump", version)
		if err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		to, err := createFile(dir, databaseFile, func(bytes int64) { progress("database", 0, bytes) })
		if err != nil {
			return err
		}
		err = postgres{program: program, database: ownerURL, stdout: to}.run(ctx,
			"--format=custom", "--compress=1", "--snapshot="+snapshot, "--lock-wait-timeout="+strconv.Itoa(lockWait))
		var closeErr error
		m.Database, closeErr = to.close(databaseFile)
		if err := errors.Join(err, closeErr); err != nil {
			return fmt.Errorf("backup of the database: %w", err)
		}
		return nil
	})
}

// errBound is returned if a login would read only part of the database.
var errBound = errors.New("the login of DATABASE_URL is bound by row-level security and sees nothing of the workspaces. " +
	"Let an administrator make one for backups, and run the backup with it in DATABASE_URL:\n" +
	"  CREATE ROLE palimpsest_backup LOGIN BYPASSRLS PASSWORD '…' IN ROLE pg_read_all_data;")

// look notes the properties of the transaction's snapshot, and returns the snapshot's name and the server's
// version.
func (m *Manifest) look(ctx context.Context, tx pgx.Tx) (snapshot string, server int, err error) {
	var sees bool
	err = tx.QueryRow(ctx, `SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user`).Scan(&sees)
	if err == nil && !sees {
		err = errBound
	}
	var migrated bool
	if err == nil {
		err = tx.QueryRow(ctx, "SELECT to_regclass('public.goose_db_version') IS NOT NULL AND to_regclass('public.exchanges') IS NOT NULL").Scan(&migrated)
	}
	if err == nil && !migrated {
		err = errors.New("the database holds nothing of the product")
	}
	if err == nil {
		err = tx.QueryRow(ctx, `SELECT pg_export_snapshot(), current_setting('server_version_num')::int / 10000, current_setting('server_version'), clock_timestamp(),
			(SELECT max(version_id) FROM goose_db_version), (SELECT count(*) FROM workspaces), (SELECT count(*) FROM sessions), (SELECT count(*) FROM exchanges)`).
			Scan(&snapshot, &server, &m.Server, &m.MadeAt, &m.Migration, &m.Counts.Workspaces, &m.Counts.Sessions, &m.Counts.Exchanges)
	}
	if err == nil { // the transaction waits for pg_dump
		_, err = tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0")
	}
	if err != nil {
		return "", 0, fmt.Errorf("backup: look at the database: %w", err)
	}
	m.MadeAt = m.MadeAt.UTC()
	return snapshot, server, nil
}
