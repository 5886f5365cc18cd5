// Package partitions keeps the table of exchanges in partitions, each with the exchanges of a span of time.
// It makes a new one before the newest becomes large, drops those from before a time, and builds the indexes
// that migrations add. An exchange's id is ordered by time, so partitions are ranges of ids. Together they
// accept every id, because the oldest has no lower bound and the newest no upper bound.
//
// A small installation has one partition, because each further one costs every list of requests a tenth of a
// millisecond of planning.
package partitions

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Large is the usual maximum of exchanges in a partition.
const Large = 50_000_000

// LeastDays is the minimum number of days for which single exchanges are kept, because the monthly spend of
// API keys is added up from them.
const LeastDays = 62

const (
	ahead     = 7 * 24 * time.Hour // how long before its range begins a partition is made
	day       = 24 * time.Hour
	smallSize = 8 << 20 // bytes of a partition that a scan reads in a moment

	// Recorders queue behind a statement that waits for their tables, so this limits its waits, and their
	// number.
	lockTimeout = "250ms"
	tries       = 20
	pause       = time.Second
)

// Manager maintains the partitions of a database.
type Manager struct {
	OwnerURL string // of the login that owns the tables, not through pgbouncer
	Days     int    // after how many days exchanges without a session are dropped; 0 means never
	Now      func() time.Time
	After    func(time.Duration) <-chan time.Time
}

// Done lists a pass's changes.
type Done struct {
	Made    []string
	Dropped []string
	Built   []string // indexes
	Waits   string   // the oldest partition, if it is due to be dropped but too much of it must be kept; "" if none
}

// Keep does all due work. If several processes keep the same partitions at once, only one of them works.
func (k Manager) Keep(ctx context.Context) (Done, error) {
	done, err := k.keep(ctx)
	if err != nil {
		return done, fmt.Errorf("keep partitions of exchanges: %w", err)
	}
	return done, nil
}

func (k Manager) keep(ctx context.Context) (done Done, err error) {
	connection, err := pgx.Connect(ctx, k.OwnerURL)
	if err != nil {
		return done, err
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	p := pass{Manager: k, connection: connection, done: &done}
	const lock = "(hashtextextended('partitions of exchanges', 0))"
	var isMine bool
	if err := connection.QueryRow(ctx, "SELECT pg_try_advisory_lock"+lock).Scan(&isMine); err != nil || !isMine {
		return done, err
	}
	defer func() { _, _ = connection.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock"+lock) }() // a broken connection has lost the lock
	// The remains of an interrupted pass go first.
	err = p.forgetLeft(ctx)
	if err == nil {
		err = p.dropLeft(ctx)
	}
	if err == nil {
		err = p.makeNext(ctx)
	}
	if err == nil && k.Days > 0 {
		err = p.dropOld(ctx)
	}
	if err == nil {
		err = p.buildIndexes(ctx)
	}
	return done, err
}

// pass is one run over the partitions.
type pass struct {
	Manager

	connection *pgx.Conn
	done       *Done
}

// briefly runs a transaction with exclusive locks on tables. While it waits for them it delays others for at
// most lockTimeout; then it is retried. A weaker lock first waits for an autovacuum of the tables, because
// recorders do not queue behind that lock.
func (p pass) briefly(ctx context.Context, tables string, do func(tx pgx.Tx) error) error {
	for try := 1; ; try++ {
		err := pgx.BeginFunc(ctx, p.connection, func(tx pgx.Tx) error {
			err := all(ctx, tx, "LOCK TABLE "+tables+" IN SHARE UPDATE EXCLUSIVE MODE", "SET LOCAL lock_timeout = '"+lockTimeout+"'", "LOCK TABLE "+tables+" IN ACCESS EXCLUSIVE MODE")
			if err != nil {
				return err
			}
			return do(tx)
		})
		if !isBusy(err) || try == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-p.After(pause):
		}
	}
}

// isBusy reports whether a statement failed because other transactions held its locks.
func isBusy(err error) bool {
	failure, is := errors.AsType[*pgconn.PgError](err)
	const lockNotAvailable, deadlock = "55P03", "40P01"
	return is && (failure.Code == lockNotAvailable || failure.Code == deadlock)
}

// all runs statements in a transaction.
func all(ctx context.Context, tx pgx.Tx, statements ...string) error {
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// both are the tables that are locked to change partitions' bounds, because a foreign key connects them. The
// order, workspaces first, is that of requests.
const both = "workspaces, exchanges"

// Partition holds the exchanges of a range of ids.
type Partition struct {
	Name        string
	From, Until uuid.UUID // uuid.Nil means unbounded
	Rows        int64     // the database's estimate
	Size        int64     // in bytes, without indexes
}

// Query queries the database with any login, such as Query of a connection or a pool.
type Query func(ctx context.Context, sql string, args ...any) (pgx.Rows, error)

// List returns the partitions, oldest first.
func List(ctx context.Context, query Query) ([]Partition, error) {
	rows, err := query(ctx, `SELECT c.relname::text, coalesce(substring(b.bounds FROM 'FROM \(''([0-9a-f-]+)')::uuid, $1), coalesce(substring(b.bounds FROM 'TO \(''([0-9a-f-]+)')::uuid, $1),
			greatest(c.reltuples, 0)::bigint, pg_relation_size(c.oid)
		FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid CROSS JOIN LATERAL (SELECT pg_get_expr(c.relpartbound, c.oid) AS bounds) b
		WHERE h.inhparent = 'public.exchanges'::regclass ORDER BY 2`, uuid.Nil)
	if err != nil {
		return nil, fmt.Errorf("list partitions: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Partition])
	if err == nil && len(list) == 0 {
		err = errors.New("the table has no partition")
	}
	if err != nil {
		return nil, fmt.Errorf("list partitions: %w", err)
	}
	return list, nil
}

// Filling returns the partition for exchanges of a time.
func Filling(list []Partition, at time.Time) Partition {
	filling := list[0]
	for _, one := range list[1:] {
		if !one.begins().After(at) {
			filling = one
		}
	}
	return filling
}

// begins returns the earliest possible time of a partition's exchanges.
func (p Partition) begins() time.Time { return timeOf(p.From) }

// First returns the lowest possible id of an exchange at a time or later.
func First(at time.Time) uuid.UUID {
	var id uuid.UUID
	var milliseconds [8]byte
	binary.BigEndian.PutUint64(milliseconds[:], uint64(max(0, at.UnixMilli())))
	copy(id[:6], milliseconds[2:])
	return id
}

// timeOf returns an id's creation time.
func timeOf(id uuid.UUID) time.Time {
	var milliseconds [8]byte
	copy(milliseconds[2:], id[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(milliseconds[:]))).UTC() //nolint:gosec // 48 bits
}

// bounds returns a partition's bounds in SQL.
func bounds(from, until uuid.UUID) string {
	first, end := "MINVALUE", "MAXVALUE"
	if from != uuid.Nil {
		first = "'" + from.String() + "'"
	}
	if until != uuid.Nil {
		end = "'" + until.String() + "'"
	}
	return "FOR VALUES FROM (" + first + ") TO (" + end + ")"
}

// identifier quotes a name.
func identifier(name string) string { return pgx.Identifier{name}.Sanitize() }
