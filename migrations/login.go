package migrations

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// appRole is the role that may read and write tenants' tables under row-level
	// security. Logins are its members.
	appRole = "palimpsest_app"
	// workerRole is the role for background jobs and operators' pages, which reach across
	// workspaces. The app login must not be a member.
	workerRole = "palimpsest_worker"
)

// roles returns the roles of which a role's login is a member.
func roles(role string) []string {
	if role == workerRole {
		return []string{appRole, workerRole}
	}
	return []string{appRole}
}

const (
	maxIdentifier   = 63 // PostgreSQL truncates longer names
	scramIterations = 1  // more would only slow down guessing, and 256 random bits can't be guessed
	scramSalt       = 16
	loginLock       = 7_152_663_091 // advisory lock, so that only one program at a time creates the login
	insufficient    = "42501"       // SQLSTATE insufficient_privilege
	wrongPassword   = "28P01"
	noSuchLogin     = "28000" // the code of a login that does not exist or may not log in
)

// RoleMissing is the error if the owner of the database may not create a role that the product needs. It has
// the SQL for an administrator to run.
type RoleMissing struct {
	Login  string   // serves requests
	Worker string   // runs background jobs and operators' pages
	SQL    []string // statements for an administrator to run
}

// Error implements error.
func (e RoleMissing) Error() string {
	return "the login of DATABASE_URL may not create roles. Ask an administrator to run these statements, except those already run:\n  " + strings.Join(e.SQL, "\n  ") +
		"\nThen set DATABASE_APP_URL and DATABASE_WORKER_URL to DATABASE_URL, with the logins " + e.Login + " and " + e.Worker + " and their passwords"
}

// AppURL returns the URL with which the product serves requests: the owner's, but with the login appRole and
// a password derived from the secret.
func AppURL(ownerURL string, secret []byte) (string, error) { return urlOf(ownerURL, appRole, secret) }

// WorkerURL returns the URL for background jobs and operators' pages. Its password is derived
// from the secret, too.
func WorkerURL(ownerURL string, secret []byte) (string, error) {
	return urlOf(ownerURL, workerRole, secret)
}

// EnsureAppLogin makes the login that AppURL returns work, as the owner. It
// returns a RoleMissing if the owner may not.
func EnsureAppLogin(ctx context.Context, ownerURL string, secret []byte) error {
	return ensureLogin(ctx, ownerURL, appRole, secret)
}

// EnsureWorkerLogin does the same as EnsureAppLogin for the login of WorkerURL.
func EnsureWorkerLogin(ctx context.Context, ownerURL string, secret []byte) error {
	return ensureLogin(ctx, ownerURL, workerRole, secret)
}

func urlOf(ownerURL, role string, secret []byte) (string, error) {
	made, _, err := derivedURL(ownerURL, role, secret)
	if err != nil {
		return "", err
	}
	return made.String(), nil
}

func ensureLogin(ctx context.Context, ownerURL, role string, secret []byte) error {
	made, database, err := derivedURL(ownerURL, role, secret)
	if err != nil {
		return err
	}
	login := made.User.Username()
	works, err := logsIn(ctx, made.String(), role)
	if err != nil || works {
		return err
	}
	connection, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return fmt.Errorf("connect as the database's owner: %w", err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	password, _ := made.User.Password()
	err = pgx.BeginFunc(ctx, connection, func(tx pgx.Tx) error { return makeLogin(ctx, tx, role, login, password) })
	var failure *pgconn.PgError
	if errors.As(err, &failure) && failure.Code == insufficient {
		return roleMissing(database)
	}
	if err != nil {
		return fmt.Errorf("create login %s: %w", login, err)
	}
	return nil
}

// derivedURL returns the URL with a role's login, and the database's name.
func derivedURL(ownerURL, role string, secret []byte) (*url.URL, string, error) {
	config, err := pgx.ParseConfig(ownerURL)
	if err != nil {
		return nil, "", errors.New("DATABASE_URL is no PostgreSQL URL") // the cause would contain the password
	}
	made, err := url.Parse(ownerURL)
	if err != nil || made.Scheme == "" {
		return nil, "", errors.New("DATABASE_URL must begin with postgres://")
	}
	login := loginOf(role, config.Database)
	code := hmac.New(sha256.New, secret)
	code.Write([]byte("palimpsest database login " + login))
	made.User = url.UserPassword(login, base64.RawURLEncoding.EncodeToString(code.Sum(nil)))
	parameters := made.Query()
	parameters.Del("user")
	parameters.Del("password")
	made.RawQuery = parameters.Encode()
	return made, config.Database, nil
}

// loginOf returns the name of a role's login for a database.
func loginOf(role, database string) string {
	login := role + "_" + database
	if len(login) <= maxIdentifier {
		return login
	}
	sum := sha256.Sum256([]byte(database))
	return role + "_" + hex.EncodeToString(sum[:16])
}

// logsIn reports whether a login works and is a member of its roles.
func logsIn(ctx context.Context, address, role string) (bool, error) {
	connection, err := pgx.Connect(ctx, address)
	var failure *pgconn.PgError
	if errors.As(err, &failure) && (failure.Code == wrongPassword || failure.Code == noSuchLogin) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("connect as the application: %w", err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	var member bool
	row := connection.QueryRow(ctx, "SELECT bool_and(pg_has_role(current_user, role, 'USAGE')) FROM unnest($1::name[]) role", roles(role))
	if err := row.Scan(&member); err != nil {
		return false, fmt.Errorf("look up role %s: %w", role, err)
	}
	return member, nil
}

func makeLogin(ctx context.Context, tx pgx.Tx, role, login, password string) error {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", loginLock); err != nil {
		return err
	}
	var exists bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", login).Scan(&exists); err != nil {
		return err
	}
	verb := "CREATE"
	if exists {
		verb = "ALTER"
	}
	verifier, err := scramVerifier(password)
	if err != nil {
		return err
	}
	name := pgx.Identifier{login}.Sanitize()
	// The verifier contains only letters, digits and $:+/=, so it needs no escaping.
	if _, err := tx.Exec(ctx, verb+" ROLE "+name+" LOGIN INHERIT PASSWORD '"+verifier+"'"); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "GRANT "+strings.Join(roles(role), ", ")+" TO "+name)
	return err
}

// scramVerifier returns PostgreSQL's stored form of a password, so that the password itself never appears in
// a statement or a log.
func scramVerifier(password string) (string, error) {
	salt := make([]byte, scramSalt)
	_, _ = rand.Read(salt) // never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("password of the application's login: %w", err)
	}
	sign := func(text string) []byte {
		code := hmac.New(sha256.New, salted)
		code.Write([]byte(text))
		return code.Sum(nil)
	}
	stored := sha256.Sum256(sign("Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", scramIterations, encode(salt), encode(stored[:]), encode(sign("Server Key"))), nil
}

// checkRoles returns a RoleMissing if a role is missing and the owner may not
// create it.
func checkRoles(ctx context.Context, database *sql.DB) error {
	var possible bool
	var name string
	row := database.QueryRowContext(ctx, `SELECT current_database(),
		(SELECT count(*) FROM pg_roles WHERE rolname IN ($1, $2)) = 2
		OR (SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user)`, appRole, workerRole)
	if err := row.Scan(&name, &possible); err != nil {
		return fmt.Errorf("look up roles %s and %s: %w", appRole, workerRole, err)
	}
	if !possible {
		return roleMissing(name)
	}
	return nil
}

func roleMissing(database string) RoleMissing {
	missing := RoleMissing{Login: loginOf(appRole, database), Worker: loginOf(workerRole, database)}
	missing.SQL = []string{"CREATE ROLE " + appRole + " NOLOGIN;", "CREATE ROLE " + workerRole + " NOLOGIN;"}
	for role, login := range map[string]string{appRole: missing.Login, workerRole: missing.Worker} {
		missing.SQL = append(missing.SQL,
			"CREATE ROLE "+pgx.Identifier{login}.Sanitize()+" LOGIN INHERIT PASSWORD '…' IN ROLE "+strings.Join(roles(role), ", ")+";")
	}
	slices.Sort(missing.SQL[2:])
	return missing
}

// The roles that own the functions with more rights than their callers.
const (
	searchRole   = "palimpsest_search"
	operatorRole = "palimpsest_operator"
)

// Roles lists the roles with grants in the schema.
func Roles() []string { return []string{appRole, operatorRole, searchRole, workerRole} }

// OwnedFunction is a function that a role owns instead of the database's owner.
type OwnedFunction struct {
	Signature string // name and types of its arguments, as ALTER FUNCTION takes it
	Role      string
	Called    bool // the database's owner may call it too
}

// OwnedFunctions returns the functions of a database that a special role owns, or must own after a restore.
// If the owner could not create a role, the schema has no policies for it, and the owner owns the functions.
func OwnedFunctions(ctx context.Context, tx pgx.Tx) ([]OwnedFunction, error) {
	rows, err := tx.Query(ctx, `SELECT p.oid::regprocedure::text, o.role, p.proname = 'appoint_operator'
		FROM (SELECT $1, unnest(ARRAY['search_documents', 'search_within']) UNION ALL SELECT $2, unnest(ARRAY['appoint_operator', 'archive_waits_since', 'claim_operator', 'note_subscription_end',
			'operator_log', 'operator_suspend', 'operator_workspaces', 'workspace_standing'])) AS o (role, name)
		JOIN pg_proc p ON p.proname = o.name AND p.pronamespace = 'public'::regnamespace
		WHERE EXISTS (SELECT FROM pg_policies WHERE schemaname = 'public' AND o.role = ANY (roles)) ORDER BY 1`, searchRole, operatorRole)
	if err != nil {
		return nil, fmt.Errorf("look up functions with owners of their own: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[OwnedFunction])
}
