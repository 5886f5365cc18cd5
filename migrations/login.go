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
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// appRole is the role that may read and write tenants' tables under row-level
// security. Logins are its members.
const appRole = "palimpsest_app"

const (
	maxIdentifier   = 63 // bytes that PostgreSQL keeps of a name
	scramIterations = 4096
	scramSalt       = 16
	loginLock       = 7_152_663_091 // advisory lock: one program at a time makes the login
	insufficient    = "42501"       // SQLSTATE insufficient_privilege
	wrongPassword   = "28P01"
	noSuchLogin     = "28000" // also: it may not log in
)

// RoleMissing says that the owner of the database may not create a role that the
// product needs, and what an administrator has to run.
type RoleMissing struct {
	Login string   // the login that the product would work with
	SQL   []string // what to run as an administrator
}

// Error implements error.
func (e RoleMissing) Error() string {
	return "the login of DATABASE_URL may not create roles: let an administrator run\n  " + strings.Join(e.SQL, "\n  ") +
		"\nand set DATABASE_APP_URL to DATABASE_URL with the login " + e.Login + " and its password"
}

// AppURL returns the URL at which the product works with a database: the owner's,
// with a login of its own whose password is derived from the secret.
func AppURL(ownerURL string, secret []byte) (string, error) {
	app, _, err := appURL(ownerURL, secret)
	if err != nil {
		return "", err
	}
	return app.String(), nil
}

// EnsureAppLogin makes the login that AppURL returns work, as the owner. It
// returns a RoleMissing if the owner may not.
func EnsureAppLogin(ctx context.Context, ownerURL string, secret []byte) error {
	app, login, err := appURL(ownerURL, secret)
	if err != nil {
		return err
	}
	works, err := logsIn(ctx, app.String())
	if err != nil || works {
		return err
	}
	connection, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return fmt.Errorf("connect as the database's owner: %w", err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	password, _ := app.User.Password()
	err = pgx.BeginFunc(ctx, connection, func(tx pgx.Tx) error { return makeLogin(ctx, tx, login, password) })
	var failure *pgconn.PgError
	if errors.As(err, &failure) && failure.Code == insufficient {
		return roleMissing(login)
	}
	if err != nil {
		return fmt.Errorf("create login %s: %w", login, err)
	}
	return nil
}

// appURL returns the application's URL and its login's name.
func appURL(ownerURL string, secret []byte) (*url.URL, string, error) {
	config, err := pgx.ParseConfig(ownerURL)
	if err != nil {
		return nil, "", errors.New("DATABASE_URL is no PostgreSQL URL") // the cause would show the password
	}
	app, err := url.Parse(ownerURL)
	if err != nil || app.Scheme == "" {
		return nil, "", errors.New("DATABASE_URL must begin with postgres://")
	}
	login := loginOf(config.Database)
	code := hmac.New(sha256.New, secret)
	code.Write([]byte("palimpsest database login " + login))
	app.User = url.UserPassword(login, base64.RawURLEncoding.EncodeToString(code.Sum(nil)))
	parameters := app.Query()
	parameters.Del("user")
	parameters.Del("password")
	app.RawQuery = parameters.Encode()
	return app, login, nil
}

// loginOf returns the name of a database's login.
func loginOf(database string) string {
	login := appRole + "_" + database
	if len(login) <= maxIdentifier {
		return login
	}
	sum := sha256.Sum256([]byte(database))
	return appRole + "_" + hex.EncodeToString(sum[:16])
}

// logsIn reports whether a login works and is a member of the role.
func logsIn(ctx context.Context, appURL string) (bool, error) {
	connection, err := pgx.Connect(ctx, appURL)
	var failure *pgconn.PgError
	if errors.As(err, &failure) && (failure.Code == wrongPassword || failure.Code == noSuchLogin) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("connect as the application: %w", err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	var member bool
	if err := connection.QueryRow(ctx, "SELECT pg_has_role(current_user, $1, 'USAGE')", appRole).Scan(&member); err != nil {
		return false, fmt.Errorf("look up role %s: %w", appRole, err)
	}
	return member, nil
}

func makeLogin(ctx context.Context, tx pgx.Tx, login, password string) error {
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
	// The verifier holds letters, digits and $:+/= only.
	if _, err := tx.Exec(ctx, verb+" ROLE "+name+" LOGIN INHERIT PASSWORD '"+verifier+"'"); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "GRANT "+appRole+" TO "+name)
	return err
}

// scramVerifier returns what PostgreSQL stores of a password, so that the
// password itself never stands in a statement or a log.
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

// checkRole returns a RoleMissing if the role is missing and the owner may not
// create it.
func checkRole(ctx context.Context, database *sql.DB) error {
	var possible bool
	var name string
	row := database.QueryRowContext(ctx, `SELECT current_database(),
		EXISTS (SELECT FROM pg_roles WHERE rolname = $1)
		OR (SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user)`, appRole)
	if err := row.Scan(&name, &possible); err != nil {
		return fmt.Errorf("look up role %s: %w", appRole, err)
	}
	if !possible {
		return roleMissing(loginOf(name))
	}
	return nil
}

func roleMissing(login string) RoleMissing {
	return RoleMissing{Login: login, SQL: []string{
		"CREATE ROLE " + appRole + " NOLOGIN;",
		"CREATE ROLE " + pgx.Identifier{login}.Sanitize() + " LOGIN INHERIT PASSWORD '…' IN ROLE " + appRole + ";",
	}}
}
