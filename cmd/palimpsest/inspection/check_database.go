package inspection

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/migrations"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

const (
	oldestServer = 150_000          // PostgreSQL 15, as server_version_num has it
	clockDiffers = 2 * time.Second  // needs attention
	clockIsWrong = 30 * time.Second // beyond it, logins, limits and signed notices are wrong
)

// databaseExaminations check the database and the parts that depend on it. They start an existing embedded
// database if it isn't running, but never create one.
func (e examiner) databaseExaminations(ctx context.Context) []examination {
	owner, none := e.existingDatabase(ctx)
	looks := []struct {
		name string
		look func(ctx context.Context, owner string) result
	}{
		{"Database", checkServer}, {"Schema", checkSchema}, {"Partitions", checkPartitions}, {"Secret key", e.checkSecretKey},
		{"App login", e.checkAppLogin}, {"Worker login", e.checkWorkerLogin}, {"Read replica", e.checkReadReplica}, {"Clock", checkClock},
	}
	list := make([]examination, len(looks))
	for i, one := range looks {
		list[i] = examination{one.name, func(ctx context.Context) result {
			switch {
			case owner != "":
				return one.look(ctx, owner)
			case i == 0:
				return none
			}
			return off("not checked without the database")
		}}
	}
	return list
}

// existingDatabase returns the URL of the database with its owner's login, or a result to report instead.
func (e examiner) existingDatabase(ctx context.Context) (owner string, none result) {
	dir := filepath.Join(e.Config.Storage.DataDir, "postgres")
	if _, err := os.Stat(dir); e.Config.Storage.DatabaseURL == "" && errors.Is(err, os.ErrNotExist) {
		return "", passed("the first start creates an embedded one in %s", dir)
	}
	owner, err := e.OwnerURL(ctx)
	if err != nil {
		return "", failed("Read the log of PostgreSQL in the data directory.", "%v", err)
	}
	return owner, result{}
}

// onOwner reads one row with the owner's login.
func onOwner(ctx context.Context, owner, statement string, into ...any) error {
	connection, err := pgx.Connect(ctx, owner)
	if err != nil {
		return err // its message has the host, database and user
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	return connection.QueryRow(ctx, statement).Scan(into...)
}

func checkServer(ctx context.Context, owner string) result {
	var (
		number   int
		version  string
		readOnly bool
	)
	began := time.Now()
	err := onOwner(ctx, owner, "SELECT current_setting('server_version_num')::int, current_setting('server_version'), pg_is_in_recovery()", &number, &version, &readOnly)
	took := time.Since(began)
	switch {
	case err != nil:
		return failed("Check DATABASE_URL, and that the server runs and takes connections from here.", "%v", err)
	case readOnly:
		return failed("Let DATABASE_URL name the primary.", "it is a standby, which takes no changes")
	case number < oldestServer:
		return failed("Upgrade the server to PostgreSQL 15 or newer.", "PostgreSQL %s is too old", version)
	case took > slowDatabase:
		return warned("Pages and the recorder wait for it. Look at its load and the network.", "PostgreSQL %s answers after %s", version, lasts(took))
	}
	return passed("PostgreSQL %s answers within %s", version, lasts(took))
}

func checkSchema(ctx context.Context, owner string) result {
	all, err := migrations.Status(ctx, owner)
	if err != nil {
		return failed("DATABASE_URL has to name the owner of the database.", "%v", err)
	}
	missing, newest := 0, int64(0)
	for _, one := range all {
		if one.AppliedAt.IsZero() {
			missing++
		}
		newest = max(newest, one.Version)
	}
	var applied int64
	if err := onOwner(ctx, owner, "SELECT coalesce(max(version_id), 0) FROM goose_db_version", &applied); err != nil {
		return failed("Try again.", "%v", err)
	}
	switch {
	case applied > newest:
		return failed("Run the version of the program that migrated it, or a newer one.", "migration %d is newer than this program, which knows %d", applied, newest)
	case missing > 0:
		return warned("The next start applies them, and palimpsest migrate up does.", "%d of %d migrations are missing", missing, len(all))
	}
	return passed("up to date, migration %d", newest)
}

// checkSecretKey checks whether the configured key belongs to the database.
func (e examiner) checkSecretKey(ctx context.Context, owner string) result {
	const advice = "Set PALIMPSEST_SECRET_KEY to the key that was used before. Without it, provider keys and sessions cannot be read."
	stored, err := tenantsdb.SomeDataKeys(ctx, owner, datakeys.Sample)
	if isMissingTable(err) {
		return off("the first start creates what it seals")
	}
	proof, proofErr := tenantsdb.StoredMasterProof(ctx, owner)
	if err := errors.Join(err, proofErr); err != nil {
		return failed("DATABASE_URL has to name the owner of the database.", "%v", err)
	}
	file := filepath.Join(e.Config.Storage.DataDir, "secret.key")
	if _, err := os.Stat(file); e.Config.Storage.SecretKey == "" && errors.Is(err, os.ErrNotExist) {
		if len(stored) == 0 && proof == nil {
			return passed("the first start creates one in %s", file)
		}
		return failed(advice, "it is not set, but the database was sealed with one")
	}
	secrets, err := e.Config.Secrets()
	if err != nil {
		return failed(advice, "%v", err)
	}
	safe, err := vault.New(secrets)
	if err != nil {
		return failed(advice, "%v", err)
	}
	if err = datakeys.Check(safe, stored); err == nil && len(stored) == 0 && proof != nil {
		err = safe.OpensProof(proof)
	}
	if err != nil {
		return failed(advice, "the key is not the one of this database")
	}
	if len(stored) == 0 && proof == nil {
		return passed("nothing is sealed with a key yet")
	}
	if e.Config.Storage.SecretKey == "" {
		return warned("Keep a copy of it elsewhere, or set PALIMPSEST_SECRET_KEY: a backup of the database is useless without it.", "it opens the database; it is kept in %s only", file)
	}
	return passed("it opens the database")
}

// isMissingTable reports whether a statement failed because the schema does not exist yet.
func isMissingTable(err error) bool {
	failure, is := errors.AsType[*pgconn.PgError](err)
	return is && failure.Code == "42P01"
}

func (e examiner) checkAppLogin(ctx context.Context, owner string) result {
	return e.checkLogin(ctx, owner, "DATABASE_APP_URL", e.Config.Storage.DatabaseAppURL, migrations.AppURL, func(url string) tenantsdb.Config {
		return tenantsdb.Config{URL: url}
	})
}

func (e examiner) checkWorkerLogin(ctx context.Context, owner string) result {
	app := e.Config.Storage.DatabaseAppURL
	if app == "" {
		var err error
		if app, err = e.derived(owner, migrations.AppURL); err != nil {
			return off("not checked without the app login")
		}
	}
	return e.checkLogin(ctx, owner, "DATABASE_WORKER_URL", e.Config.Storage.DatabaseWorkerURL, migrations.WorkerURL, func(url string) tenantsdb.Config {
		return tenantsdb.Config{URL: app, WorkerURL: url}
	})
}

// checkReadReplica checks the replica that pages read from.
func (e examiner) checkReadReplica(ctx context.Context, owner string) result {
	if e.Config.Storage.DatabaseReadURL == "" {
		return off("DATABASE_READ_URL is not set: pages read from the database")
	}
	address := e.Config.Storage.DatabaseReadURL
	if e.Config.Storage.DatabaseAppURL == "" {
		var err error
		if address, err = e.derived(address, migrations.AppURL); err != nil {
			return off("the first start creates its login")
		}
	}
	found, err := tenantsdb.CheckReplica(ctx, address, owner)
	switch {
	case err != nil:
		return failed("Check DATABASE_READ_URL; until it works, pages read from the database.", "%v", err)
	case found.Foreign:
		return failed("Name a standby of DATABASE_URL in DATABASE_READ_URL, and the same database there.", "it holds another database")
	case !found.Follows:
		return warned("Name a standby in DATABASE_READ_URL: this is a server that takes writes, so pages read from the database.", "it does not follow another server")
	case found.Behind > time.Minute:
		return warned("Look at the replication; until it has caught up, pages read from the database.", "it is %s behind", found.Behind.Round(time.Second))
	}
	return passed("it follows the database")
}

// errNoSecret is returned if there is no secret key to derive logins from.
var errNoSecret = errors.New("no secret key")

// derived returns the URL of a login with its password derived from the secret key.
func (e examiner) derived(owner string, of func(owner string, secret []byte) (string, error)) (string, error) {
	if _, err := os.Stat(filepath.Join(e.Config.Storage.DataDir, "secret.key")); e.Config.Storage.SecretKey == "" && err != nil {
		return "", errNoSecret
	}
	safe, err := e.Config.OpenVault()
	if err != nil {
		return "", err
	}
	return of(owner, safe.Derive("database login"))
}

// checkLogin checks whether a login works and has exactly the rights that it needs.
func (e examiner) checkLogin(ctx context.Context, owner, setting, configured string, derive func(string, []byte) (string, error), config func(url string) tenantsdb.Config) result {
	url := configured
	if url == "" {
		var err error
		if url, err = e.derived(owner, derive); err != nil {
			return off("the first start creates it")
		}
	}
	db, err := tenantsdb.Open(ctx, config(url))
	if err == nil {
		db.Close()
		return passed("row-level security binds it, and it has the rights that it needs")
	}
	if errors.Is(err, tenantsdb.ErrUnbound) && config(url).WorkerURL != "" {
		return off("not checked without the app login")
	}
	failure, is := errors.AsType[*pgconn.PgError](err)
	if configured != "" || !is || failure.Code[:2] != setup.LoginRejected {
		return failed(fmt.Sprintf("Check %s, and the roles that docs/operations.md lists.", setting), "%v", err)
	}
	var mayCreate bool
	if err := onOwner(ctx, owner, "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user", &mayCreate); err != nil {
		return failed("Try again.", "%v", err)
	}
	if !mayCreate {
		return failed("Start the product once: it prints the statements that an administrator has to run.", "it does not exist, and the owner of the database may not create it")
	}
	return passed("the next start creates it")
}

// checkClock compares the clocks of this machine and of the database.
func checkClock(ctx context.Context, owner string) result {
	connection, err := pgx.Connect(ctx, owner)
	if err != nil {
		return failed("Check DATABASE_URL.", "%v", err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	var there time.Time
	asked := time.Now()
	if err := connection.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&there); err != nil {
		return failed("Try again.", "%v", err)
	}
	took := time.Since(asked)
	return clockResult(asked.Add(took/2).Sub(there), took)
}

// clockResult reports a clock difference between this machine and the database. within is how long the
// measurement took.
func clockResult(ahead, within time.Duration) result {
	const advice = "Let both machines synchronize their clocks, for example with chrony."
	by, direction := ahead, "ahead of"
	if ahead < 0 {
		by, direction = -ahead, "behind"
	}
	by = max(0, by-within/2) // the part that the round trip explains
	switch {
	case by > clockIsWrong:
		return failed(advice, "%s %s the database's: logins, limits and signed notices are wrong", lasts(by), direction)
	case by > clockDiffers:
		return warned(advice, "%s %s the database's", lasts(by), direction)
	}
	return passed("agrees with the database's")
}
