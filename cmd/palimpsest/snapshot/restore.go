package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"palimpsest/migrations"
	"palimpsest/migrations/localdb"
	"palimpsest/pipeline/archive"
)

// Target is an empty place to restore a backup into.
type Target struct {
	OwnerURL string

	// Bucket takes the objects; it may be nil.
	Bucket archive.Bucket
}

// Check reads all of a backup and returns an error if a part is missing or damaged.
func (m *Manifest) Check(ctx context.Context, dir string, progress Progress) error {
	if err := m.Database.check(dir); err != nil {
		return err
	}
	progress("database", 0, m.Database.Bytes)
	if m.SecretKey != nil {
		if err := m.SecretKey.check(dir); err != nil {
			return err
		}
	}
	if m.Objects.Where != ObjectsHere {
		return nil
	}
	if m.Objects.List == nil {
		return errors.New("the manifest names no list of objects")
	}
	if err := m.Objects.List.check(dir); err != nil {
		return err
	}
	return m.Objects.each(ctx, dir, func(context.Context, string, []byte) error { return nil })
}

// Secret returns the master key in a backup's directory, or "" if absent.
func Secret(dir string) (string, error) {
	content, err := os.ReadFile(filepath.Join(dir, secretFile)) //nolint:gosec // the operator names the directory
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("backup: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// Restore puts a backup's objects into the bucket, and then its database into an empty one. The database
// ends up with all of it or stays empty, so that a restore that ended early can be repeated.
func (m *Manifest) Restore(ctx context.Context, dir string, target Target, progress Progress) error {
	if m.Objects.Where != ObjectsNone && target.Bucket == nil {
		return errors.New("the installation kept originals in a bucket: set PALIMPSEST_BLOB_URL to one")
	}
	connection, err := pgx.Connect(ctx, target.OwnerURL)
	if err != nil {
		return fmt.Errorf("restore: connect to the database: %w", err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	place, err := lookAtPlace(ctx, connection)
	if err != nil {
		return err
	}
	program, err := localdb.Program(ctx, os.Getenv("PATH"), "pg_restore", place.server)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if m.Objects.Where == ObjectsHere {
		if err := m.Objects.restore(ctx, dir, target.Bucket, progress); err != nil {
			return err
		}
	}
	if err := makeRoles(ctx, connection); err != nil {
		return err
	}
	err = postgres{program: program, database: target.OwnerURL}.run(ctx,
		"--format=custom", "--exit-on-error", "--single-transaction", "--no-owner", "--role="+place.owner, filepath.Join(dir, databaseFile))
	if err != nil {
		return fmt.Errorf("restore the database: %w", err)
	}
	progress("database", 0, m.Database.Bytes)
	if err := handOver(ctx, connection, place.owner); err != nil {
		return err
	}
	return m.compare(ctx, connection)
}

// place is the database to restore into.
type place struct {
	owner  string
	server int // major version
}

// errNotEmpty is returned if the restore would overwrite something.
var errNotEmpty = errors.New("the database is not empty, and nothing is restored over what is there. " +
	"Name a new database in DATABASE_URL, or for the embedded one a new PALIMPSEST_DATA_DIR; a product that runs on it must not have been started before the restore")

func lookAtPlace(ctx context.Context, connection *pgx.Conn) (place, error) {
	var is place
	var empty, may bool
	err := connection.QueryRow(ctx, `SELECT pg_get_userbyid(datdba), current_setting('server_version_num')::int / 10000,
		NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'),
		(SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user)
		FROM pg_database WHERE datname = current_database()`).Scan(&is.owner, &is.server, &empty, &may)
	switch {
	case err != nil:
		return is, fmt.Errorf("restore: look at the database: %w", err)
	case !empty:
		return is, errNotEmpty
	case !may:
		return is, fmt.Errorf("the login of DATABASE_URL may not create roles. Run the restore with an administrator's login in DATABASE_URL; everything will belong to the database's owner, %s", is.owner)
	}
	return is, nil
}

// makeRoles creates the roles that the schema grants rights to. They cannot log in.
func makeRoles(ctx context.Context, connection *pgx.Conn) error {
	for _, role := range migrations.Roles() {
		var exists bool
		err := connection.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", role).Scan(&exists)
		if err == nil && !exists {
			_, err = connection.Exec(ctx, "CREATE ROLE "+pgx.Identifier{role}.Sanitize()+" NOLOGIN")
		}
		if err != nil {
			return fmt.Errorf("restore: create role %s: %w", role, err)
		}
	}
	return nil
}

// handOver gives the functions with more rights than their callers to roles that have no other rights, and
// has the server analyze the new tables.
func handOver(ctx context.Context, connection *pgx.Conn, databaseOwner string) error {
	err := pgx.BeginFunc(ctx, connection, func(tx pgx.Tx) error {
		owned, err := migrations.OwnedFunctions(ctx, tx)
		if err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		for _, function := range owned {
			if err := giveAway(ctx, tx, function, databaseOwner); err != nil {
				return fmt.Errorf("restore: give %s to %s: %w", function.Signature, function.Role, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := connection.Exec(ctx, "ANALYZE"); err != nil {
		return fmt.Errorf("restore: analyze: %w", err)
	}
	return nil
}

// giveAway gives a function to a role. For that, a login without superuser rights must be a member of the
// role, and the role needs the right to create in the schema.
func giveAway(ctx context.Context, tx pgx.Tx, function migrations.OwnedFunction, databaseOwner string) error {
	role := pgx.Identifier{function.Role}.Sanitize()
	var member, creates bool
	err := tx.QueryRow(ctx, "SELECT pg_has_role(current_user, $1, 'MEMBER'), has_schema_privilege($1, 'public', 'CREATE')", function.Role).Scan(&member, &creates)
	statements := []string{"ALTER FUNCTION " + function.Signature + " OWNER TO " + role}
	if function.Called { // the change of owner moved its right to the role
		statements = append(statements, "GRANT EXECUTE ON FUNCTION "+function.Signature+" TO "+pgx.Identifier{databaseOwner}.Sanitize())
	}
	if !creates {
		statements = append(append([]string{"GRANT CREATE ON SCHEMA public TO " + role}, statements...), "REVOKE CREATE ON SCHEMA public FROM "+role)
	}
	if !member {
		statements = append(append([]string{"GRANT " + role + " TO current_user"}, statements...), "REVOKE "+role+" FROM current_user")
	}
	for _, statement := range statements {
		if err == nil {
			_, err = tx.Exec(ctx, statement)
		}
	}
	return err
}

// compare returns an error if the database's contents differ from the backup's.
func (m *Manifest) compare(ctx context.Context, connection *pgx.Conn) error {
	var has Counts
	var migration int64
	var sees bool
	err := connection.QueryRow(ctx, `SELECT (SELECT max(version_id) FROM goose_db_version), (SELECT count(*) FROM workspaces), (SELECT count(*) FROM sessions),
		(SELECT count(*) FROM exchanges), (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user)`).
		Scan(&migration, &has.Workspaces, &has.Sessions, &has.Exchanges, &sees)
	if err != nil {
		return fmt.Errorf("restore: look at the database: %w", err)
	}
	if migration != m.Migration || sees && has != m.Counts {
		return fmt.Errorf("restore: the database holds %+v at migration %d, and the backup's held %+v at %d", has, migration, m.Counts, m.Migration)
	}
	return nil
}
