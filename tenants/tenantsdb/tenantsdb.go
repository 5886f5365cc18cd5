package tenantsdb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// defaultMaxConns is how many connections a pool has where nothing is said.
const defaultMaxConns = 16

// ErrUnbound says that a login is not bound by row-level security and must not
// serve requests.
var ErrUnbound = errors.New("row-level security does not bind this login: the application's login must be a member of palimpsest_app, own no table, and be neither superuser nor BYPASSRLS")

// Config says which database is worked with, and how.
type Config struct {
	// URL is the database with the application's login; a pgbouncer in transaction
	// mode may stand in between.
	URL string

	// ListenURL is where notifications are heard, past any pgbouncer; empty: URL.
	ListenURL string

	// Sealer seals the texts of mails that wait; nil: they wait as they are.
	Sealer Sealer

	// MaxConns bounds the connections of the pool; 0: pool_max_conns of the URL,
	// or else 16.
	MaxConns int32
}

// Sealer seals a secret for what about names.
type Sealer interface {
	SealAbout(about, secret string) ([]byte, error)
	OpenAbout(about string, sealed []byte) (secret string, newest bool, err error)
}

// DB is the product's database.
type DB struct {
	pool      *pgxpool.Pool
	conn      *sql.DB // lends the connections of pool
	gorm      *gorm.DB
	listenURL string
	sealer    Sealer
}

// Open opens the database. It returns ErrUnbound if the login of the URL could
// read other tenants' rows.
func Open(ctx context.Context, config Config) (*DB, error) {
	settings, err := pgxpool.ParseConfig(config.URL)
	if err != nil {
		return nil, errors.New("the database's URL is no PostgreSQL URL") // the cause would show the password
	}
	switch {
	case config.MaxConns > 0:
		settings.MaxConns = config.MaxConns
	case !strings.Contains(config.URL, "pool_max_conns"):
		settings.MaxConns = defaultMaxConns
	}
	settings.MaxConnIdleTime = 5 * time.Minute
	// Statements are not kept in the server, where a pgbouncer would mix them up.
	settings.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	settings.AfterConnect = readTimesInUTC

	pool, err := pgxpool.NewWithConfig(ctx, settings)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := checkBound(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	conn := stdlib.OpenDBFromPool(pool)
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: conn}), &gorm.Config{
		TranslateError:         true,
		Logger:                 logger.Discard,
		SkipDefaultTransaction: true, // every statement runs in one of ours
		DisableAutomaticPing:   true,
	})
	if err != nil {
		pool.Close()
		return nil, errors.Join(fmt.Errorf("open database: %w", err), conn.Close())
	}
	return &DB{pool: pool, conn: conn, gorm: db, listenURL: cmp.Or(config.ListenURL, config.URL), sealer: config.Sealer}, nil
}

// readTimesInUTC has a connection return times in UTC, not in the zone of this machine:
// replicas in different zones answer and export the same.
func readTimesInUTC(_ context.Context, connection *pgx.Conn) error {
	one := &pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}}
	connection.TypeMap().RegisterType(one)
	connection.TypeMap().RegisterType(&pgtype.Type{Name: "_timestamptz", OID: pgtype.TimestamptzArrayOID, Codec: &pgtype.ArrayCodec{ElementType: one}})
	return nil
}

// Pool returns the connections below: for statements that need pgx itself. A
// tenant's rows are seen through InTenant only.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Ping returns an error if the database does not answer.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	return nil
}

// Close closes all connections; it waits for those in use.
func (db *DB) Close() {
	_ = db.conn.Close() // lends the pool's connections, and has none of its own to fail with
	db.pool.Close()
}

func checkBound(ctx context.Context, pool *pgxpool.Pool) error {
	const statement = `SELECT r.rolsuper OR r.rolbypassrls
			OR EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
				AND pg_has_role(current_user, c.relowner, 'USAGE'))
		FROM pg_roles r WHERE r.rolname = current_user`
	var unbound bool
	if err := pool.QueryRow(ctx, statement).Scan(&unbound); err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	if unbound {
		return ErrUnbound
	}
	return nil
}
