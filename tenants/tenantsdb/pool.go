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
	"github.com/jackc/pgx/v5/pgconn"
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
	registerForms()
	p.gorm, err = gorm.Open(postgres.New(postgres.Config{Conn: p.conn}), &gorm.Config{
		TranslateError:         true,
		Logger:                 logger.Discard,
		SkipDefaultTransaction: true, // every statement runs in a transaction that we open
		DisableAutomaticPing:   true,
		QueryFields:            true, // a query without columns reads those of the rows' type
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

const (
	// maxBehind bounds the lag of a replica. Where jobs run, the primary writes every few seconds, so that a
	// replica that follows it never reaches this lag.
	maxBehind = time.Minute

	replicaPatience = 2 * time.Second  // for a replica to start a read
	replicaAgain    = 10 * time.Second // before a failed one is tried again
)

// replica is a server that follows the database and serves reads in its place.
type replica struct {
	pool   *pool
	failed func(error) // receives the reason why reads go to the database itself; optional
	rests  atomic.Int64
}

// conflict is the error code with which a replica cancels a read that blocks its replication.
const conflict = "40001"

// ErrReplica says that the error concerns the replica.
var ErrReplica = errors.New("read replica")

// errBehind says that a replica has too much lag. errPrimary says that a server is not a replica, so that its
// rows may be very old.
var (
	errBehind  = errors.New("it is too far behind")
	errPrimary = errors.New("it takes writes and follows no other server")
)

func newReplica(config Config) (*replica, error) {
	each := func(ctx context.Context, connection *pgx.Conn) error { return isBound(ctx, unprepared(connection)) }
	made, err := newPool(config.ReadURL, 0, defaultMaxConns, isBound, each)
	if err != nil {
		return nil, err
	}
	return &replica{pool: made, failed: config.ReadFailed}, nil
}

// connect opens a replica, which need not answer yet. It returns ErrUnbound if it answers and its login is
// not an app login.
func (r *replica) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, replicaPatience)
	defer cancel()
	err := r.pool.connect(ctx)
	if errors.Is(err, ErrUnbound) {
		return err
	}
	if err != nil { // it may answer later, since each connection is checked
		r.pool.mode = pgx.QueryExecModeCacheDescribe
		r.pool.open.Store(true)
	}
	return nil
}

// read runs fn in a transaction of a workspace on the replica, and reports whether it did. It does not if the
// replica does not answer or has too much lag.
func (r *replica) read(ctx context.Context, c *core, workspace tenants.WorkspaceID, fn func(tx *gorm.DB) error) (did bool, err error) {
	if time.Now().UnixNano() < r.rests.Load() {
		return false, nil
	}
	reading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := time.AfterFunc(replicaPatience, func() { cancel(context.DeadlineExceeded) })
	defer patience.Stop()
	err = c.transactionOn(reading, r.pool, forWorkspace, workspace.String(), func(tx *gorm.DB) error {
		if err := upToDate(tx); err != nil {
			return err
		}
		patience.Stop()
		did = true
		return fn(tx)
	})
	failure, refused := errors.AsType[*pgconn.PgError](err)
	if ctx.Err() == nil && (!did || batchdb.IsAway(err) || refused && failure.Code == conflict) {
		r.rest(err)
	}
	return did || ctx.Err() != nil, err
}

// sqlBehind reads whether a server is a replica, and the age of its last replayed transaction, in seconds.
const sqlBehind = "SELECT pg_is_in_recovery(), coalesce(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0)::float8"

// upToDate returns errBehind on a replica with too much lag, and errPrimary on a server that is not a
// replica.
func upToDate(tx *gorm.DB) error {
	follows, behind := false, 0.0
	err := batchdb.Each(tx, func(row pgx.CollectableRow) error { return row.Scan(&follows, &behind) }, sqlBehind)
	switch {
	case err != nil:
		return err
	case !follows:
		return errPrimary
	case behind > maxBehind.Seconds():
		return fmt.Errorf("%w: %.0f s", errBehind, behind)
	}
	return nil
}

// ReplicaState is the outcome of CheckReplica.
type ReplicaState struct {
	Follows bool // another server
	Behind  time.Duration
	Foreign bool // it holds another database than the expected one
}

// CheckReplica connects to a replica as Reader does, and to the database with its owner's login, and compares
// them. It returns ErrUnbound if the login is not an app login.
func CheckReplica(ctx context.Context, address, ownerURL string) (ReplicaState, error) {
	connection, err := pgx.Connect(ctx, address)
	if err != nil {
		return ReplicaState{}, fmt.Errorf("%w: %w", ErrReplica, err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	if err := isBound(ctx, connection.QueryRow); err != nil {
		return ReplicaState{}, err
	}
	var state ReplicaState
	seconds := 0.0
	if err := connection.QueryRow(ctx, sqlBehind).Scan(&state.Follows, &seconds); err != nil {
		return ReplicaState{}, fmt.Errorf("%w: %w", ErrReplica, err)
	}
	state.Behind = time.Duration(seconds * float64(time.Second))
	// A standby has the same values as its primary.
	const identity = "SELECT (SELECT system_identifier FROM pg_control_system())::text || ' ' || current_database()"
	var here, there string
	if err := connection.QueryRow(ctx, identity).Scan(&here); err != nil {
		return ReplicaState{}, fmt.Errorf("%w: %w", ErrReplica, err)
	}
	err = asOwner(ctx, ownerURL, func(tx pgx.Tx) error { return tx.QueryRow(ctx, identity).Scan(&there) })
	state.Foreign = here != there
	return state, batchdb.Wrapf(err, "compare with the database")
}

// rest stops using the replica for a while.
func (r *replica) rest(err error) {
	r.rests.Store(time.Now().Add(replicaAgain).UnixNano())
	if r.failed != nil {
		r.failed(err)
	}
}

// Reader returns the same stores for reads that may be slightly stale. They read from the replica, if one
// answers.
func (db *DB) Reader() *DB {
	if db.core.replica == nil {
		return db
	}
	reading := *db.core
	reading.reads = db.core.replica
	return newDB(&reading)
}

// ReplicationLags returns the lag of each standby of the database. It omits lags that the database hides from
// its owner, because reading them needs pg_monitor.
func (db *DB) ReplicationLags(ctx context.Context) ([]tenants.ReplicationLag, error) {
	lags, err := batchdb.Scan[[]tenants.ReplicationLag](ctx, db.core.asWorker, "SELECT standby, seconds, bytes FROM replication_lags() WHERE bytes IS NOT NULL ORDER BY standby")
	return lags, batchdb.Wrapf(err, "read the replication lag")
}
