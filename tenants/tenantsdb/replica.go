package tenantsdb

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

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
	if db.replica == nil {
		return db
	}
	reading := *db.core
	reading.reads = db.replica
	return newDB(&reading)
}
