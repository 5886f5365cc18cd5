package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"palimpsest/migrations"
	"palimpsest/migrations/localdb"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

// databaseName is the product's database in the private cluster.
const databaseName = "palimpsest"

// databases opens the installation's database.
type databases struct {
	setup
	after     func(time.Duration) <-chan time.Time
	isCommand bool   // for one thing that a command does, also beside the running product
	owner     string // URL of the one that it has opened, with its owner's login
}

// databasesOf returns what opens the database for a command.
func databasesOf(config Config) *databases {
	return &databases{setup: newSetup(config, newLog(os.Stderr, config.LogFormat), time.Now), after: time.After, isCommand: true}
}

// openDatabase opens the database with the product's logins, after the owner
// has brought the schema up to date. It is an error if the vault opens nothing of it.
func (d *databases) openDatabase(ctx context.Context, safe *vault.Vault) (*tenantsdb.DB, error) {
	owner, err := d.ownerURL(ctx)
	if err != nil {
		return nil, err
	}
	applied, err := migrations.Up(ctx, owner)
	if err != nil {
		return nil, err
	}
	if applied > 0 {
		d.log.Info("schema is up to date", "migrations", applied)
	}
	// Before logins are given passwords that are derived from them.
	if err := checkMasterKeys(ctx, owner, safe); err != nil {
		return nil, err
	}
	d.owner = owner
	logins, err := d.logins(ctx, owner, safe)
	if err != nil {
		return nil, err
	}
	db, err := tenantsdb.Open(ctx, logins)
	switch {
	case errors.Is(err, tenantsdb.ErrReplica):
		return nil, fmt.Errorf("DATABASE_READ_URL: %w", err)
	case errors.Is(err, tenantsdb.ErrUnbound):
		return nil, fmt.Errorf("DATABASE_APP_URL: %w", err)
	case errors.Is(err, tenantsdb.ErrNoWorker):
		return nil, fmt.Errorf("DATABASE_WORKER_URL: %w", err)
	case err != nil:
		return nil, err
	}
	d.onClose(db.Close)
	return db, nil
}

const (
	databasePatience = 30 * time.Second       // how long a start waits for a database that takes no connections
	databaseAgain    = 500 * time.Millisecond // between two tries
)

// awaitDatabase opens the database, and waits for one that takes no connections: a replica is
// often started again while the database or its pooler is. What waiting does not change, such
// as a wrong password, ends the start at once.
func (d *databases) awaitDatabase(ctx context.Context, safe *vault.Vault) (*tenantsdb.DB, error) {
	for left := databasePatience; ; left -= databaseAgain {
		db, err := d.openDatabase(ctx, safe)
		if err == nil || left <= 0 || d.config.DatabaseURL == "" || ctx.Err() != nil || !passes(err) {
			return db, err
		}
		if left == databasePatience {
			d.log.WarnContext(ctx, "the database takes no connections; the start waits for it", "longest", databasePatience, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-d.after(databaseAgain):
		}
	}
}

// passes reports whether a connection to the database failed for a reason that may pass.
func passes(err error) bool {
	if _, is := errors.AsType[*pgconn.ConnectError](err); !is {
		return false
	}
	failure, is := errors.AsType[*pgconn.PgError](err)
	const noSuchDatabase = "3D000"
	return !is || failure.Code[:2] != loginRejected && failure.Code != noSuchDatabase
}

// logins returns how to open the database with the app and worker logins. It creates those
// that no setting names.
func (d *databases) logins(ctx context.Context, owner string, safe *vault.Vault) (tenantsdb.Config, error) {
	secret := safe.Derive("database login")
	// The configured URLs may go through a pgbouncer, which does not pass notifications on.
	config := tenantsdb.Config{URL: d.config.DatabaseAppURL, WorkerURL: d.config.DatabaseWorkerURL, ListenURL: owner, Sealer: safe}
	config.ReadFailed = func(err error) {
		d.log.Warn("read replica failed, pages read from the database for 10 s", "error", err)
	}
	var err error
	if config.ReadURL, err = readURL(d.config, secret); err != nil {
		return tenantsdb.Config{}, err
	}
	if config.URL == "" {
		if err := migrations.EnsureAppLogin(ctx, owner, secret); err != nil {
			return tenantsdb.Config{}, err
		}
		if config.URL, err = migrations.AppURL(owner, secret); err != nil {
			return tenantsdb.Config{}, err
		}
		config.ListenURL = config.URL
	}
	if config.WorkerURL == "" {
		if err := migrations.EnsureWorkerLogin(ctx, owner, secret); err != nil {
			return tenantsdb.Config{}, err
		}
		if config.WorkerURL, err = migrations.WorkerURL(owner, secret); err != nil {
			return tenantsdb.Config{}, err
		}
	}
	return config, nil
}

// readURL returns the address of the replica that pages read from, with the login that the
// program makes unless a setting names one; "" if absent.
func readURL(config Config, secret []byte) (string, error) {
	if config.DatabaseReadURL == "" || config.DatabaseAppURL != "" {
		return config.DatabaseReadURL, nil
	}
	return migrations.AppURL(config.DatabaseReadURL, secret)
}

// checkMasterKeys returns an error if the vault is not that of the database. The first
// start leaves a proof there, by which that is known as long as there are no data keys.
func checkMasterKeys(ctx context.Context, owner string, safe *vault.Vault) error {
	some, err := tenantsdb.SomeDataKeys(ctx, owner, datakeys.Sample)
	if err != nil {
		return err
	}
	wrong := datakeys.Check(safe, some)
	if wrong == nil {
		proof, err := safe.Proof()
		if err != nil {
			return err
		}
		kept, err := tenantsdb.KeepMasterProof(ctx, owner, proof)
		if err != nil {
			return err
		}
		if len(some) == 0 {
			wrong = safe.OpensProof(kept)
		}
	}
	if wrong != nil {
		return fmt.Errorf("PALIMPSEST_SECRET_KEY (or secret.key in the data directory) is not that of this database; start with the one that was used before: %w", wrong)
	}
	return nil
}

// ownerURL returns DATABASE_URL, or that of a private cluster that it starts. A command
// takes the one that the running product has started.
func (d *databases) ownerURL(ctx context.Context) (string, error) {
	if d.config.DatabaseURL != "" {
		return d.config.DatabaseURL, nil
	}
	dir, err := filepath.Abs(filepath.Join(d.config.DataDir, "postgres"))
	if err != nil {
		return "", fmt.Errorf("PALIMPSEST_DATA_DIR: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // the database's own user passes through
		return "", fmt.Errorf("PALIMPSEST_DATA_DIR: %w", err)
	}
	cluster, err := localdb.Start(ctx, localdb.Config{Dir: dir, Path: os.Getenv("PATH")})
	if d.isCommand && errors.Is(err, localdb.ErrInUse) {
		url, err := localdb.Running(dir, databaseName)
		if err != nil {
			return "", fmt.Errorf("embedded database: %w", err)
		}
		return url, nil
	}
	if err != nil {
		return "", fmt.Errorf("embedded database: %w", err)
	}
	d.onClose(func() {
		if err := cluster.Stop(); err != nil {
			d.log.Error("stop embedded database", "error", err)
		}
	})
	if err := cluster.CreateDatabase(ctx, databaseName); err != nil {
		return "", fmt.Errorf("embedded database: %w", err)
	}
	return cluster.DSN(databaseName), nil
}
