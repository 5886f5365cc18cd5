package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
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
	isCommand bool            // for a single command, possibly beside the running product
	another   <-chan struct{} // closed after another database of the process has opened; nil if there is no other
	owner     string          // URL of its database, with its owner's login
}

// databasesOf returns the databases for a command.
func databasesOf(config Config) *databases {
	return &databases{setup: newSetup(config, newLog(os.Stderr, config.LogFormat), time.Now), after: time.After, isCommand: true}
}

// openDatabase creates the database client and opens it.
func (d *databases) openDatabase(ctx context.Context, safe *vault.Vault) (*tenantsdb.DB, error) {
	db, err := d.newDatabase(ctx, safe)
	if err != nil {
		return nil, err
	}
	return db, d.open(ctx, db, safe)
}

// newDatabase creates the database client with the product's logins. It counts as away until it is open.
func (d *databases) newDatabase(ctx context.Context, safe *vault.Vault) (_ *tenantsdb.DB, err error) {
	if d.owner, err = d.ownerURL(ctx); err != nil {
		return nil, err
	}
	logins, err := d.logins(safe)
	if err != nil {
		return nil, err
	}
	db, err := tenantsdb.New(logins)
	if err != nil {
		return nil, err
	}
	d.onClose(db.Close)
	return db, nil
}

// open opens the database, after the owner has brought the schema up to date. It is an error if the vault
// can't open the database's keys.
func (d *databases) open(ctx context.Context, db *tenantsdb.DB, safe *vault.Vault) error {
	if err := d.reach(ctx); err != nil {
		return err
	}
	applied, err := migrations.Up(ctx, d.owner)
	if err != nil {
		return err
	}
	if applied > 0 {
		d.log.Info("schema is up to date", "migrations", applied)
	}
	// Check first, because passwords of logins are derived from the master keys.
	if err := checkMasterKeys(ctx, d.owner, safe); err != nil {
		return err
	}
	if err := d.ensureLogins(ctx, safe); err != nil {
		return err
	}
	err = db.Connect(ctx)
	switch {
	case errors.Is(err, tenantsdb.ErrReplica):
		return fmt.Errorf("DATABASE_READ_URL: %w", err)
	case errors.Is(err, tenantsdb.ErrUnbound):
		return fmt.Errorf("DATABASE_APP_URL: %w", err)
	case errors.Is(err, tenantsdb.ErrNoWorker):
		return fmt.Errorf("DATABASE_WORKER_URL: %w", err)
	}
	return err
}

// reach returns an error if one of several databases takes no connection within a moment, so that the
// others don't wait for it.
func (d *databases) reach(ctx context.Context) error {
	if d.config.Host == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	connection, err := pgx.Connect(ctx, d.owner)
	if err != nil {
		return fmt.Errorf("connect as the database's owner: %w", err)
	}
	return connection.Close(ctx)
}

const (
	databasePatience = 30 * time.Second       // how long a start waits for a database that refuses connections
	databaseAgain    = 500 * time.Millisecond // between two tries
	databaseLater    = 2 * time.Second        // between two tries after the start
	reachTimeout     = 5 * time.Second        // for one of several databases to take a connection
)

// await opens the database, and waits while it refuses connections, since a replica often restarts together
// with the database or its pooler. It stops waiting once another database is open. An error that waiting
// can't fix, such as a wrong password, ends the start at once.
func (d *databases) await(ctx context.Context, db *tenantsdb.DB, safe *vault.Vault) error {
	for left := databasePatience; ; left -= databaseAgain {
		err := d.open(ctx, db, safe)
		if err == nil || left <= 0 || d.config.DatabaseURL == "" || ctx.Err() != nil || !passes(err) {
			return err
		}
		if left == databasePatience {
			d.log.WarnContext(ctx, "the database takes no connections; the start waits for it", "longest", databasePatience, "error", err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-d.another:
			return err
		case <-d.after(databaseAgain):
		}
	}
}

// passes reports whether a connection to the database failed for a temporary reason.
func passes(err error) bool {
	if _, is := errors.AsType[*pgconn.ConnectError](err); !is {
		return false
	}
	failure, is := errors.AsType[*pgconn.PgError](err)
	const noSuchDatabase = "3D000"
	return !is || failure.Code[:2] != loginRejected && failure.Code != noSuchDatabase
}

// loginSecret derives the passwords of the program's own logins.
const loginSecret = "database login"

// logins returns the configurations of the app and worker logins.
func (d *databases) logins(safe *vault.Vault) (tenantsdb.Config, error) {
	secret := safe.Derive(loginSecret)
	// The configured URLs may lead through a pgbouncer, which does not forward notifications.
	config := tenantsdb.Config{URL: d.config.DatabaseAppURL, WorkerURL: d.config.DatabaseWorkerURL, ListenURL: d.owner, Sealer: safe}
	config.ReadFailed = func(err error) {
		d.log.Warn("read replica failed, pages read from the database for 10 s", "error", err)
	}
	var err error
	if config.ReadURL, err = readURL(d.config, secret); err != nil {
		return tenantsdb.Config{}, err
	}
	if config.URL == "" {
		if config.URL, err = migrations.AppURL(d.owner, secret); err != nil {
			return tenantsdb.Config{}, err
		}
		config.ListenURL = config.URL
	}
	if config.WorkerURL == "" {
		if config.WorkerURL, err = migrations.WorkerURL(d.owner, secret); err != nil {
			return tenantsdb.Config{}, err
		}
	}
	return config, nil
}

// ensureLogins creates the logins without a configured URL.
func (d *databases) ensureLogins(ctx context.Context, safe *vault.Vault) error {
	secret := safe.Derive(loginSecret)
	if d.config.DatabaseAppURL == "" {
		if err := migrations.EnsureAppLogin(ctx, d.owner, secret); err != nil {
			return err
		}
	}
	if d.config.DatabaseWorkerURL == "" {
		return migrations.EnsureWorkerLogin(ctx, d.owner, secret)
	}
	return nil
}

// readURL returns the address of the replica that pages read from, or "". It uses the program's own login
// unless a setting names one.
func readURL(config Config, secret []byte) (string, error) {
	if config.DatabaseReadURL == "" || config.DatabaseAppURL != "" {
		return config.DatabaseReadURL, nil
	}
	return migrations.AppURL(config.DatabaseReadURL, secret)
}

// checkMasterKeys returns an error if the vault does not belong to the database. The first start leaves a
// proof there, which identifies the vault as long as there are no data keys.
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

// ownerURL returns DATABASE_URL, or the URL of a private cluster that it starts. A command uses the cluster
// of the running product.
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
