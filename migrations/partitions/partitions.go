// Package partitions keeps the table of exchanges in partitions, each of the exchanges of a
// span of time: it makes a new one before the newest has become large, drops those from
// before a time, and builds the indexes that migrations add. An exchange's id is ordered by time, so partitions are ranges of ids. Together
// they take every id: the oldest has no beginning and the newest no end.
//
// A small installation has one partition: each one more costs every list of requests a tenth of
// a millisecond of planning.
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

// Large is how many exchanges a partition holds as a rule, at most.
const Large = 50_000_000

// LeastDays is for how many days single exchanges are kept at least: what API keys have spent in
// a month is added up from them.
const LeastDays = 62

const (
	ahead     = 7 * 24 * time.Hour // how long before it begins a partition is made
	day       = 24 * time.Hour
	smallSize = 8 << 20 // bytes of a partition that is looked at in a moment

	// Recorders wait behind a statement that waits for their tables. This is for how long, and how often it is tried.
	lockTimeout = "250ms"
	tries       = 20
	pause       = time.Second
)

// Manager keeps the partitions of a database.
type Manager struct {
	OwnerURL string // of the login that owns the tables, past any pgbouncer
	Days     int    // after how many days exchanges of no session are dropped; 0: never
	Now      func() time.Time
	After    func(time.Duration) <-chan time.Time
}

// Done is what a pass has changed.
type Done struct {
	Made    []string
	Dropped []string
	Built   []string // indexes
	Waits   string   // the oldest partition, if it is to be dropped and too much of it must be kept; "" if none
}

// Keep does what is due. Of several processes that keep the same partitions at once, one does.
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
	defer func() { _, _ = connection.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock"+lock) }() // a connection that has broken has none
	// What a pass that was cut off has left behind goes first.
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

// pass is one look at the partitions.
type pass struct {
	Manager

	connection *pgx.Conn
	done       *Done
}

// briefly runs a transaction that has tables to itself. Others wait for it at most as long as lockTimeout while
// it waits for them; then it is tried again. An autovacuum of the tables, behind which no recorder waits, ends first.
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

// isBusy reports whether a statement failed because others used what it wanted.
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

// both are the tables that change with the bounds of partitions: a foreign key leads from one to the other. Requests
// take the workspace first, too.
const both = "workspaces, exchanges"

// Partition holds the exchanges with ids from one on and below another one.
type Partition struct {
	Name        string
	From, Until uuid.UUID // uuid.Nil: without a beginning, without an end
	Rows        int64     // as the database estimates them
	Size        int64     // in bytes, without indexes
}

// Query asks the database, with any login: Query of a connection or a pool.
type Query func(ctx context.Context, sql string, args ...any) (pgx.Rows, error)

// List returns the partitions, the oldest first.
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

// Filling returns the partition that takes the exchanges of a time.
func Filling(list []Partition, at time.Time) Partition {
	filling := list[0]
	for _, one := range list[1:] {
		if !one.begins().After(at) {
			filling = one
		}
	}
	return filling
}

// begins returns the time of a partition's first exchange at the earliest.
func (p Partition) begins() time.Time { return timeOf(p.From) }

// First returns the lowest id of an exchange of a time, or of one after it.
func First(at time.Time) uuid.UUID {
	var id uuid.UUID
	var milliseconds [8]byte
	binary.BigEndian.PutUint64(milliseconds[:], uint64(max(0, at.UnixMilli())))
	copy(id[:6], milliseconds[2:])
	return id
}

// timeOf returns when an id was made.
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
