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
	// maxBehind is how far a replica may be behind. Where jobs run the primary writes every few
	// seconds, so that one that follows it is never so far.
	maxBehind = time.Minute

	replicaPatience = 2 * time.Second  // for a replica to take up a read
	replicaAgain    = 10 * time.Second // before one that did not is asked again
)

// replica is a server that follows the database and takes reads in its place.
type replica struct {
	pool   *pool
	failed func(error) // hears why reads go to the database itself; optional
	rests  atomic.Int64
}

// conflict is what a replica cancels a read with that keeps it from following.
const conflict = "40001"

// ErrReplica says that it is the replica that cannot be used.
var ErrReplica = errors.New("read replica")

// errBehind says that a replica is too far behind.
var errBehind = errors.New("it is too far behind")

func newReplica(config Config) (*replica, error) {
	each := func(ctx context.Context, connection *pgx.Conn) error { return isBound(ctx, connection.QueryRow) }
	made, err := newPool(config.ReadURL, 0, defaultMaxConns, isBound, each)
	if err != nil {
		return nil, err
	}
	return &replica{pool: made, failed: config.ReadFailed}, nil
}

// connect opens a replica, which need not answer yet. It returns ErrUnbound if it answers and its
// login is not an app login.
func (r *replica) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, replicaPatience)
	defer cancel()
	err := r.pool.connect(ctx)
	if errors.Is(err, ErrUnbound) {
		return err
	}
	if err != nil { // it may answer later: each connection is looked at
		r.pool.mode = pgx.QueryExecModeCacheDescribe
		r.pool.open.Store(true)
	}
	return nil
}

// read runs fn in a transaction of a workspace on the replica, and reports whether it did: it does not
// where the replica does not answer or is too far behind.
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

// sqlBehind is how old what a replica has replayed last is, in seconds.
const sqlBehind = "coalesce(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0)::float8"

// upToDate returns errBehind on a replica that is too far behind.
func upToDate(tx *gorm.DB) error {
	behind := 0.0
	err := batchdb.Each(tx, func(row pgx.CollectableRow) error { return row.Scan(&behind) },
		"SELECT "+sqlBehind)
	if err == nil && behind > maxBehind.Seconds() {
		err = fmt.Errorf("%w: %.0f s", errBehind, behind)
	}
	return err
}

// CheckReplica connects to a replica as Reader does, and returns whether it follows another server
// and how far it is behind. It returns ErrUnbound if the login is not an app login.
func CheckReplica(ctx context.Context, address string) (follows bool, behind time.Duration, err error) {
	connection, err := pgx.Connect(ctx, address)
	if err != nil {
		return false, 0, fmt.Errorf("%w: %w", ErrReplica, err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	if err := isBound(ctx, connection.QueryRow); err != nil {
		return false, 0, err
	}
	seconds := 0.0
	err = connection.QueryRow(ctx, "SELECT pg_is_in_recovery(), "+sqlBehind).Scan(&follows, &seconds)
	if err != nil {
		return false, 0, fmt.Errorf("%w: %w", ErrReplica, err)
	}
	return follows, time.Duration(seconds * float64(time.Second)), nil
}

// rest leaves the replica alone for a while.
func (r *replica) rest(err error) {
	r.rests.Store(time.Now().Add(replicaAgain).UnixNano())
	if r.failed != nil {
		r.failed(err)
	}
}

// Reader returns the same stores for what is read alone and may be a moment old: they read from
// the replica, if there is one that answers.
func (db *DB) Reader() *DB {
	if db.replica == nil {
		return db
	}
	reading := *db.core
	reading.reads = db.replica
	return newDB(&reading)
}
