package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"palimpsest/cmd/palimpsest/logs"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/migrations"
	"palimpsest/migrations/localdb"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

// DatabaseName is the product's database in the private cluster.
const DatabaseName = "palimpsest"

// Database opens the installation's database.
type Database struct {
	Inputs
	After     func(time.Duration) <-chan time.Time
	isCommand bool            // for a single command, possibly beside the running product
	Another   <-chan struct{} // closed after another database of the process has opened; nil if there is no other
	Owner     string          // URL of its database, with its owner's login
}

// DatabaseOf returns the databases for a command.
func DatabaseOf(config settings.Config) *Database {
	return &Database{Inputs: New(config, logs.New(os.Stderr, config.Serving.LogFormat), time.Now), After: time.After, isCommand: true}
}

// OpenDatabase creates the database client and opens it.
func (d *Database) OpenDatabase(ctx context.Context, safe *vault.Vault) (*tenantsdb.DB, error) {
	db, err := d.NewDatabase(ctx, safe)
	if err != nil {
		return nil, err
	}
	return db, d.Open(ctx, db, safe)
}

// NewDatabase creates the database client with the product's logins. It counts as away until it is open.
func (d *Database) NewDatabase(ctx context.Context, safe *vault.Vault) (_ *tenantsdb.DB, err error) {
	if d.Owner, err = d.OwnerURL(ctx); err != nil {
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
	d.OnClose(db.Close)
	return db, nil
}

// Open opens the database, after the owner has brought the schema up to date. It is an error if the vault
// can't open the database's keys.
func (d *Database) Open(ctx context.Context, db *tenantsdb.DB, safe *vault.Vault) error {
	if err := d.reach(ctx); err != nil {
		return err
	}
	applied, err := migrations.Up(ctx, d.Owner)
	if err != nil {
		return err
	}
	if applied > 0 {
		d.Log.Info("schema is up to date", "migrations", applied)
	}
	// Check first, because passwords of logins are derived from the master keys.
	if err := checkMasterKeys(ctx, d.Owner, safe); err != nil {
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
func (d *Database) reach(ctx context.Context) error {
	if d.Config.Storage.Host == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	connection, err := pgx.Connect(ctx, d.Owner)
	if err != nil {
		return fmt.Errorf("connect as the database's owner: %w", err)
	}
	return connection.Close(ctx)
}

// Times to wait for a database.
const (
	databasePatience = 30 * time.Second       // how long a start waits for a database that refuses connections
	databaseAgain    = 500 * time.Millisecond // between two tries
	DatabaseLater    = 2 * time.Second        // between two tries after the start
	reachTimeout     = 5 * time.Second        // for one of several databases to take a connection
)

// Await opens the database, and waits while it refuses connections, since a replica often restarts together
// with the database or its pooler. It stops waiting once another database is open. An error that waiting
// can't fix, such as a wrong password, ends the start at once.
func (d *Database) Await(ctx context.Context, db *tenantsdb.DB, safe *vault.Vault) error {
	for left := databasePatience; ; left -= databaseAgain {
		err := d.Open(ctx, db, safe)
		if err == nil || left <= 0 || d.Config.Storage.DatabaseURL == "" || ctx.Err() != nil || !Passes(err) {
			return err
		}
		if left == databasePatience {
			d.Log.WarnContext(ctx, "the database takes no connections; the start waits for it", "longest", databasePatience, "error", err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-d.Another:
			return err
		case <-d.After(databaseAgain):
		}
	}
}

// Passes reports whether a connection to the database failed for a temporary reason.
func Passes(err error) bool {
	if _, is := errors.AsType[*pgconn.ConnectError](err); !is {
		return false
	}
	failure, is := errors.AsType[*pgconn.PgError](err)
	const noSuchDatabase = "3D000"
	return !is || failure.Code[:2] != LoginRejected && failure.Code != noSuchDatabase
}

// LoginRejected is the class of SQLSTATEs for an invalid authorization.
const LoginRejected = "28"

// loginSecret derives the passwords of the program's own logins.
const loginSecret = "database login"

// logins returns the configurations of the app and worker logins.
func (d *Database) logins(safe *vault.Vault) (tenantsdb.Config, error) {
	secret := safe.Derive(loginSecret)
	// The configured URLs may lead through a pgbouncer, which does not forward notifications.
	config := tenantsdb.Config{URL: d.Config.Storage.DatabaseAppURL, WorkerURL: d.Config.Storage.DatabaseWorkerURL, ListenURL: d.Owner, Sealer: safe}
	config.ReadFailed = func(err error) {
		d.Log.Warn("read replica failed, pages read from the database for 10 s", "error", err)
	}
	var err error
	if config.ReadURL, err = readURL(d.Config.Storage, secret); err != nil {
		return tenantsdb.Config{}, err
	}
	if config.URL == "" {
		if config.URL, err = migrations.AppURL(d.Owner, secret); err != nil {
			return tenantsdb.Config{}, err
		}
		config.ListenURL = config.URL
	}
	if config.WorkerURL == "" {
		if config.WorkerURL, err = migrations.WorkerURL(d.Owner, secret); err != nil {
			return tenantsdb.Config{}, err
		}
	}
	return config, nil
}

// ensureLogins creates the logins without a configured URL.
func (d *Database) ensureLogins(ctx context.Context, safe *vault.Vault) error {
	secret := safe.Derive(loginSecret)
	if d.Config.Storage.DatabaseAppURL == "" {
		if err := migrations.EnsureAppLogin(ctx, d.Owner, secret); err != nil {
			return err
		}
	}
	if d.Config.Storage.DatabaseWorkerURL == "" {
		return migrations.EnsureWorkerLogin(ctx, d.Owner, secret)
	}
	return nil
}

// readURL returns the address of the replica that pages read from, or "". It uses the program's own login
// unless a setting names one.
func readURL(storage settings.Storage, secret []byte) (string, error) {
	if storage.DatabaseReadURL == "" || storage.DatabaseAppURL != "" {
		return storage.DatabaseReadURL, nil
	}
	return migrations.AppURL(storage.DatabaseReadURL, secret)
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

// OwnerURL returns DATABASE_URL, or the URL of a private cluster that it starts. A command uses the cluster
// of the running product.
func (d *Database) OwnerURL(ctx context.Context) (string, error) {
	if d.Config.Storage.DatabaseURL != "" {
		return d.Config.Storage.DatabaseURL, nil
	}
	dir, err := filepath.Abs(filepath.Join(d.Config.Storage.DataDir, "postgres"))
	if err != nil {
		return "", fmt.Errorf("PALIMPSEST_DATA_DIR: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // the database's own user passes through
		return "", fmt.Errorf("PALIMPSEST_DATA_DIR: %w", err)
	}
	cluster, err := localdb.Start(ctx, localdb.Config{Dir: dir, Path: os.Getenv("PATH")})
	if d.isCommand && errors.Is(err, localdb.ErrInUse) {
		url, err := localdb.Running(dir, DatabaseName)
		if err != nil {
			return "", fmt.Errorf("embedded database: %w", err)
		}
		return url, nil
	}
	if err != nil {
		return "", fmt.Errorf("embedded database: %w", err)
	}
	d.OnClose(func() {
		if err := cluster.Stop(); err != nil {
			d.Log.Error("stop embedded database", "error", err)
		}
	})
	if err := cluster.CreateDatabase(ctx, DatabaseName); err != nil {
		return "", fmt.Errorf("embedded database: %w", err)
	}
	return cluster.DSN(DatabaseName), nil
}
