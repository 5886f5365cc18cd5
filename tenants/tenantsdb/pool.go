package tenantsdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"palimpsest/tenants"
)

// Default sizes of the pools.
const (
	defaultMaxConns  = 16
	defaultWorkConns = 6
)

const (
	// keptStatements is how many statements a connection keeps prepared, unless its URL has a
	// statement_cache_capacity.
	keptStatements = 256
	// lookPatience is how long it may take to see whether a pooler stands before a server.
	lookPatience = 2 * time.Second
)

// ErrUnbound says that a login has other rights than requests need.
var ErrUnbound = errors.New("not an app login: it must be a member of palimpsest_app and not of palimpsest_worker, own no table, and be neither superuser nor BYPASSRLS")

// ErrNoWorker says that a login is not a worker login, or that there is no worker login.
var ErrNoWorker = errors.New("not a worker login: it must be a member of palimpsest_app and of palimpsest_worker, own no table, and be neither superuser nor BYPASSRLS")

// pool is connections with one login.
type pool struct {
	pgx  *pgxpool.Pool
	conn *sql.DB // lends the connections of pgx
	gorm *gorm.DB
}

// openPool opens a pool and checks its login; also looks at each connection. The pool's size is most, or pool_max_conns of
// the URL if most is 0, or else usual.
func openPool(ctx context.Context, address string, most, usual int32, check func(context.Context, *pgxpool.Pool) error, also ...func(context.Context, *pgx.Conn) error) (*pool, error) {
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
	if !strings.Contains(address, "default_query_exec_mode") {
		settings.ConnConfig.DefaultQueryExecMode = execMode(ctx, settings.ConnConfig)
	}
	settings.AfterConnect = func(ctx context.Context, connection *pgx.Conn) error {
		knowTypes(connection)
		for _, look := range also {
			if err := look(ctx, connection); err != nil {
				return err
			}
		}
		return nil
	}

	connections, err := pgxpool.NewWithConfig(ctx, settings)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := check(ctx, connections); err != nil {
		connections.Close()
		return nil, err
	}
	conn := stdlib.OpenDBFromPool(connections)
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: conn}), &gorm.Config{
		TranslateError:         true,
		Logger:                 logger.Discard,
		SkipDefaultTransaction: true, // every statement runs in a transaction that we open
		DisableAutomaticPing:   true,
	})
	if err != nil {
		connections.Close()
		return nil, errors.Join(fmt.Errorf("open database: %w", err), conn.Close())
	}
	return &pool{pgx: connections, conn: conn, gorm: db}, nil
}

// execMode returns how statements are sent to a server. Prepared once for each connection: for a
// few rows the server parses and plans longer than it works. Or, through a pooler such as pgbouncer,
// which would mix up prepared ones, where none is to be kept, and where nothing answers yet: described
// once and planned each time.
func execMode(ctx context.Context, settings *pgx.ConnConfig) pgx.QueryExecMode {
	if settings.StatementCacheCapacity == 0 {
		return pgx.QueryExecModeCacheDescribe
	}
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	settings = settings.Copy()
	settings.DefaultQueryExecMode = pgx.QueryExecModeExec
	connection, err := pgx.ConnectConfig(ctx, settings)
	if err != nil {
		return pgx.QueryExecModeCacheDescribe
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	var process uint32
	err = connection.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&process)
	if err != nil || process != connection.PgConn().PID() { // a pooler tells its clients ids of its own
		return pgx.QueryExecModeCacheDescribe
	}
	return pgx.QueryExecModeCacheStatement
}

// close closes all connections; it waits for those in use.
func (p *pool) close() {
	_ = p.conn.Close() // lends the pool's connections, and has none of its own to fail with
	p.pgx.Close()
}

// knowTypes has a connection return times in UTC, not in the zone of this machine: replicas in
// different zones answer and export the same. And it sends uuids as the bytes that they are; pgx
// by itself makes texts of them and reads those.
func knowTypes(connection *pgx.Conn) {
	types := connection.TypeMap()
	one := &pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}}
	types.RegisterType(one)
	types.RegisterType(&pgtype.Type{Name: "_timestamptz", OID: pgtype.TimestamptzArrayOID, Codec: &pgtype.ArrayCodec{ElementType: one}})
	types.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{asBytes}, types.TryWrapEncodePlanFuncs...)
}

// asBytes returns how a uuid is sent.
func asBytes(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	id, ok := idOf(value)
	if !ok {
		return nil, nil, false
	}
	return &bytesPlan{}, pgtype.UUID{Bytes: id, Valid: true}, true
}

// idOf returns the uuid that a value is.
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

// checkBound returns ErrUnbound for a login with more or fewer rights than requests need.
func checkBound(ctx context.Context, connections *pgxpool.Pool) error {
	return isBound(ctx, connections.QueryRow)
}

// isBound is checkBound of what asks a connection or a pool.
func isBound(ctx context.Context, ask ask) error {
	login, err := readLogin(ctx, ask)
	if err == nil && (login.Unbound || !login.Serves || login.Works) {
		err = ErrUnbound
	}
	return err
}

// checkWorker returns ErrNoWorker for a login with more or fewer rights than background jobs
// need.
func checkWorker(ctx context.Context, connections *pgxpool.Pool) error {
	login, err := readLogin(ctx, connections.QueryRow)
	if err == nil && (login.Unbound || !login.Serves || !login.Works) {
		err = ErrNoWorker
	}
	return err
}

// login is what the login of a pool may do.
type login struct {
	Unbound bool // bypasses row-level security
	Serves  bool // has the rights of palimpsest_app
	Works   bool // has the rights of palimpsest_worker, or can take them with SET ROLE
}

// ask is the QueryRow of a connection or a pool.
type ask func(ctx context.Context, statement string, arguments ...any) pgx.Row

// readLogin asks for a login.
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
