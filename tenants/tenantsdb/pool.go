package tenantsdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Default sizes of the pools.
const (
	defaultMaxConns  = 16
	defaultWorkConns = 6
)

const (
	// keptStatements bounds the prepared statements of a connection, unless its URL has a
	// statement_cache_capacity.
	keptStatements = 256
	// lookPatience bounds the check for a pooler in front of a server.
	lookPatience = 2 * time.Second
)

// ErrUnbound says that a login does not have exactly the rights that requests need.
var ErrUnbound = errors.New("not an app login: it must be a member of palimpsest_app and not of palimpsest_worker, own no table, and be neither superuser nor BYPASSRLS")

// ErrNoWorker says that a login is not a worker login, or that there is no worker login.
var ErrNoWorker = errors.New("not a worker login: it must be a member of palimpsest_app and of palimpsest_worker, own no table, and be neither superuser nor BYPASSRLS")

// pool holds connections with one login. It has no connections before connect.
type pool struct {
	pgx  *pgxpool.Pool
	conn *sql.DB // lends the connections of pgx
	gorm *gorm.DB

	asks  bool // connect determines how statements are sent
	check func(context.Context, ask) error
	mode  pgx.QueryExecMode // set once it is open
	open  atomic.Bool
}

// newPool returns a pool. check checks its login, and the functions of also run on each new connection. The
// pool's size is most, or pool_max_conns of the URL if most is 0, or else usual.
func newPool(address string, most, usual int32, check func(context.Context, ask) error, also ...func(context.Context, *pgx.Conn) error) (*pool, error) {
	settings, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, errors.New("the database's URL is no PostgreSQL URL") // the cause would show the password
	}
	switch {
	case most > 0:
		settings.MaxConns = most
	case !strings.Contains(address, "pool_max_conns"):
		settings.MaxConns = usual
	}
	settings.MaxConnIdleTime = 5 * time.Minute
	if !strings.Contains(address, "statement_cache_capacity") {
		settings.ConnConfig.StatementCacheCapacity = keptStatements
	}
	p := &pool{asks: !strings.Contains(address, "default_query_exec_mode"), check: check, mode: settings.ConnConfig.DefaultQueryExecMode}
	settings.BeforeConnect = p.admit
	settings.AfterConnect = func(ctx context.Context, connection *pgx.Conn) error {
		knowTypes(connection)
		for _, look := range also {
			if err := look(ctx, connection); err != nil {
				return err
			}
		}
		return nil
	}

	if p.pgx, err = pgxpool.NewWithConfig(context.Background(), settings); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	p.conn = stdlib.OpenDBFromPool(p.pgx)
	p.gorm, err = gorm.Open(postgres.New(postgres.Config{Conn: p.conn}), &gorm.Config{
		TranslateError:         true,
		Logger:                 logger.Discard,
		SkipDefaultTransaction: true, // every statement runs in a transaction that we open
		DisableAutomaticPing:   true,
	})
	if err != nil {
		p.close()
		return nil, fmt.Errorf("open database: %w", err)
	}
	return p, nil
}

// firstKey marks the context of a pool's first connection.
type firstKey struct{}

// admit allows a connection once the pool is open, or if it opens the pool.
func (p *pool) admit(ctx context.Context, settings *pgx.ConnConfig) error {
	if !p.open.Load() {
		if ctx.Value(firstKey{}) == nil {
			return batchdb.ErrUnopened
		}
		if p.asks { // works with most servers
			settings.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
		}
		return nil
	}
	settings.DefaultQueryExecMode = p.mode
	return nil
}

// connect checks the login on the first connection of the pool, and opens the pool. It may be called again.
func (p *pool) connect(ctx context.Context) error {
	if p.open.Load() {
		return nil
	}
	connection, err := p.pgx.Acquire(context.WithValue(ctx, firstKey{}, true))
	if err != nil {
		p.pgx.Reset() // drops a connection that arrives late
		return fmt.Errorf("open database: %w", err)
	}
	defer connection.Release()
	err = p.check(ctx, unprepared(connection.Conn()))
	if err == nil && p.asks {
		p.mode = execMode(ctx, connection.Conn())
	}
	if err != nil || p.mode != connection.Conn().Config().DefaultQueryExecMode {
		p.pgx.Reset() // closes it
	}
	p.open.Store(err == nil)
	return err
}

// unprepared returns the QueryRow of a connection before it is known whether it supports prepared statements.
func unprepared(connection *pgx.Conn) ask {
	return func(ctx context.Context, statement string, arguments ...any) pgx.Row {
		return connection.QueryRow(ctx, statement, append([]any{pgx.QueryExecModeExec}, arguments...)...)
	}
}

// execMode returns how statements are sent to a server. Usually they are prepared once for each connection,
// because for a few rows the server parses and plans longer than it works. Through a pooler such as
// pgbouncer, which would mix up prepared statements, and without a statement cache, they are described once
// and planned each time.
func execMode(ctx context.Context, connection *pgx.Conn) pgx.QueryExecMode {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	var process uint32
	err := unprepared(connection)(ctx, "SELECT pg_backend_pid()").Scan(&process)
	isPooled := err != nil || process != connection.PgConn().PID() // a pooler reports its own ids
	if isPooled || connection.Config().StatementCacheCapacity == 0 {
		return pgx.QueryExecModeCacheDescribe
	}
	return pgx.QueryExecModeCacheStatement
}

// close closes all connections; it waits for those in use.
func (p *pool) close() {
	_ = p.conn.Close() // cannot fail because it lends the pool's connections and owns no others
	p.pgx.Close()
}

// knowTypes makes a connection return times in UTC instead of this machine's zone, so that replicas in
// different zones give the same answers and exports. It also sends uuids as bytes, since pgx would send and
// read them as text.
func knowTypes(connection *pgx.Conn) {
	types := connection.TypeMap()
	one := &pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}}
	types.RegisterType(one)
	types.RegisterType(&pgtype.Type{Name: "_timestamptz", OID: pgtype.TimestamptzArrayOID, Codec: &pgtype.ArrayCodec{ElementType: one}})
	types.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{asBytes}, types.TryWrapEncodePlanFuncs...)
}

// asBytes returns the encoding of uuids as bytes.
func asBytes(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	id, ok := idOf(value)
	if !ok {
		return nil, nil, false
	}
	return &bytesPlan{}, pgtype.UUID{Bytes: id, Valid: true}, true
}

// idOf returns the uuid in a value.
func idOf(value any) (uuid.UUID, bool) {
	switch id := value.(type) {
	case uuid.UUID:
		return id, true
	case tenants.WorkspaceID:
		return uuid.UUID(id), true
	default:
		return uuid.Nil, false
	}
}

// bytesPlan encodes uuids.
type bytesPlan struct{ next pgtype.EncodePlan }

// SetNext implements pgtype.WrappedEncodePlanNextSetter.
func (p *bytesPlan) SetNext(next pgtype.EncodePlan) { p.next = next }

// Encode implements pgtype.EncodePlan.
func (p *bytesPlan) Encode(value any, buf []byte) ([]byte, error) {
	id, ok := idOf(value)
	if !ok {
		return nil, fmt.Errorf("a uuid, not a %T, is to be sent", value)
	}
	return p.next.Encode(pgtype.UUID{Bytes: id, Valid: true}, buf)
}

// isBound returns ErrUnbound unless a login has exactly the rights that requests need.
func isBound(ctx context.Context, ask ask) error {
	login, err := readLogin(ctx, ask)
	if err == nil && (login.Unbound || !login.Serves || login.Works) {
		err = ErrUnbound
	}
	return err
}

// isWorker returns ErrNoWorker unless a login has exactly the rights that background jobs need.
func isWorker(ctx context.Context, ask ask) error {
	login, err := readLogin(ctx, ask)
	if err == nil && (login.Unbound || !login.Serves || !login.Works) {
		err = ErrNoWorker
	}
	return err
}

// login holds the rights of a pool's login.
type login struct {
	Unbound bool // bypasses row-level security
	Serves  bool // has the rights of palimpsest_app
	Works   bool // has the rights of palimpsest_worker, or can take them with SET ROLE
}

// ask is the QueryRow of a connection.
type ask func(ctx context.Context, statement string, arguments ...any) pgx.Row

// readLogin reads the rights of a login.
func readLogin(ctx context.Context, ask ask) (login, error) {
	const statement = `SELECT r.rolsuper OR r.rolbypassrls
			OR EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
				AND pg_has_role(current_user, c.relowner, 'USAGE')),
			coalesce(pg_has_role(current_user, to_regrole('palimpsest_app'), 'USAGE'), false),
			coalesce(pg_has_role(current_user, to_regrole('palimpsest_worker'), 'MEMBER'), false)
		FROM pg_roles r WHERE r.rolname = current_user`
	var found login
	if err := ask(ctx, statement).Scan(&found.Unbound, &found.Serves, &found.Works); err != nil {
		return login{}, fmt.Errorf("open database: %w", err)
	}
	return found, nil
}
