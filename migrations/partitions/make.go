package partitions

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"palimpsest/pipeline/expression"
)

// makeNext makes partitions until one covers the next days. The previously newest partition gets an end, and
// the new one has no end.
func (p pass) makeNext(ctx context.Context) error {
	list, err := List(ctx, p.connection.Query)
	if err != nil {
		return err
	}
	now := p.Now()
	width, err := p.width(ctx, Filling(list, now), now)
	if err != nil || width == 0 {
		return err
	}
	newest, made := list[len(list)-1], len(p.done.Made)
	for newest.begins().Sub(now) < ahead {
		from := newest.begins()
		if from.Before(now) { // exchanges being recorded stay in it
			from = now.Truncate(day).Add(day)
		}
		if newest, err = p.end(ctx, newest, First(from.Add(width))); err != nil {
			return err
		}
	}
	if len(p.done.Made) > made {
		_, err = p.connection.Exec(ctx, "ANALYZE exchanges") // of the whole table, because autovacuum leaves out partitioned tables
	}
	return err
}

// width returns a duration for a partition, so that it does not become larger than Large at the rate of the
// one being filled; 0 if that one is enough.
func (p pass) width(ctx context.Context, filling Partition, now time.Time) (time.Duration, error) {
	since := filling.begins()
	if filling.From == uuid.Nil { // created with the database
		if err := p.connection.QueryRow(ctx, "SELECT min(tstamp) FROM goose_db_version").Scan(&since); err != nil {
			return 0, err
		}
	}
	perDay := float64(filling.Rows) / max(1, now.Sub(since).Hours()/24)
	return widthAt(perDay, p.Days > 0), nil
}

// widthAt returns the width at so many exchanges a day. If old partitions are dropped, the width is at most
// four weeks, because a partition is dropped only once its last exchange is old.
func widthAt(perDay float64, drops bool) time.Duration {
	if !drops && perDay*364 <= Large {
		return 0
	}
	for _, days := range []int{84, 28, 7} {
		if perDay*float64(days) <= Large && !(drops && days > 28) {
			return time.Duration(days) * day
		}
	}
	return day
}

// ends is the constraint that a partition holds no id beyond its future end. It is already validated when the
// partition gets that end.
const ends = "exchanges_end"

// end limits the newest partition to ids below until and makes a new one for the rest. Larger ids that
// already exist, because of a clock weeks ahead, move. It returns the new partition.
func (p pass) end(ctx context.Context, newest Partition, until uuid.UUID) (Partition, error) {
	name, next := identifier(newest.Name), Partition{Name: "exchanges_" + timeOf(until).Format("20060102"), From: until}
	looked := false
	if newest.Size > smallSize {
		var err error
		if looked, err = p.look(ctx, newest, until); err != nil {
			return next, err
		}
	}
	err := p.briefly(ctx, both, func(tx pgx.Tx) error {
		err := all(ctx, tx, "ALTER TABLE exchanges DETACH PARTITION "+name,
			"CREATE TABLE "+identifier(next.Name)+" PARTITION OF exchanges "+bounds(until, uuid.Nil))
		if err == nil && !looked {
			err = all(ctx, tx, "WITH beyond AS (DELETE FROM "+name+" WHERE id >= '"+until.String()+"' RETURNING *) INSERT INTO "+identifier(next.Name)+" TABLE beyond")
		}
		if err != nil {
			return err
		}
		return all(ctx, tx, "ALTER TABLE exchanges ATTACH PARTITION "+name+" "+bounds(newest.From, until), "ALTER TABLE "+name+" DROP CONSTRAINT IF EXISTS "+ends)
	})
	if err == nil {
		p.done.Made = append(p.done.Made, next.Name)
	} else if looked {
		err = errors.Join(err, p.forget(context.WithoutCancel(ctx), newest.Name))
	}
	return next, err
}

// look checks a partition's ids while exchanges are recorded, and reports whether all are below until. If so,
// a constraint refuses other ids from then on, so until must be ahead of all clocks.
func (p pass) look(ctx context.Context, one Partition, until uuid.UUID) (bool, error) {
	name, is := identifier(one.Name), "id < '"+until.String()+"'"
	if one.From != uuid.Nil {
		is += " AND id >= '" + one.From.String() + "'"
	}
	err := p.briefly(ctx, name, func(tx pgx.Tx) error {
		return all(ctx, tx, "ALTER TABLE "+name+" DROP CONSTRAINT IF EXISTS "+ends+", ADD CONSTRAINT "+ends+" CHECK ("+is+") NOT VALID")
	})
	if err == nil {
		_, err = p.connection.Exec(ctx, "ALTER TABLE "+name+" VALIDATE CONSTRAINT "+ends)
	}
	if err == nil {
		return true, nil
	}
	if failure, is := errors.AsType[*pgconn.PgError](err); is && failure.Code == "23514" {
		err = nil // some ids are beyond it
	}
	return false, errors.Join(err, p.forget(context.WithoutCancel(ctx), one.Name))
}

// forget drops look's constraint from a partition.
func (p pass) forget(ctx context.Context, name string) error {
	return p.briefly(ctx, identifier(name), func(tx pgx.Tx) error {
		return all(ctx, tx, "ALTER TABLE "+identifier(name)+" DROP CONSTRAINT IF EXISTS "+ends)
	})
}

// forgetLeft drops the constraints that a killed pass has left.
func (p pass) forgetLeft(ctx context.Context) error {
	rows, err := p.connection.Query(ctx, "SELECT c.relname::text FROM pg_constraint n JOIN pg_class c ON c.oid = n.conrelid WHERE n.conname = $1", ends)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		if err == nil {
			err = p.forget(ctx, name)
		}
	}
	return err
}

// missing is an index that a migration created only on the parent table, and a partition without it.
type missing struct {
	Index, Definition, Partition string
}

// buildIndexes builds the indexes that migrations have created with CREATE INDEX … ON ONLY exchanges,
// partition by partition, while exchanges are recorded. PostgreSQL can't build the index of a partitioned
// table concurrently; it becomes valid once every partition has its own.
func (p pass) buildIndexes(ctx context.Context) error {
	rows, err := p.connection.Query(ctx, `SELECT x.indexrelid::regclass::text, pg_get_indexdef(x.indexrelid), c.relname::text
		FROM pg_index x JOIN pg_inherits h ON h.inhparent = x.indrelid JOIN pg_class c ON c.oid = h.inhrelid
		WHERE x.indrelid = 'public.exchanges'::regclass AND NOT x.indisvalid
			AND NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_index y ON y.indexrelid = i.inhrelid WHERE i.inhparent = x.indexrelid AND y.indrelid = c.oid)
		ORDER BY 1, 3`)
	if err != nil {
		return err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[missing])
	for _, one := range list {
		if err == nil {
			err = p.build(ctx, one)
		}
	}
	return err
}

// ofTable matches the beginning of the definition of an index on only the parent table.
var ofTable = expression.New(`^CREATE (UNIQUE )?INDEX \S+ ON ONLY public\.exchanges `)

func (p pass) build(ctx context.Context, one missing) error {
	name := identifier(one.Partition + strings.TrimPrefix(one.Index, "exchanges"))
	var half bool // an interrupted attempt has left an invalid index
	err := p.connection.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid)", "public."+name).Scan(&half)
	if err == nil && half {
		_, err = p.connection.Exec(ctx, "DROP INDEX CONCURRENTLY "+name)
	}
	if err == nil {
		_, err = p.connection.Exec(ctx, ofTable.ReplaceAllString(one.Definition, "CREATE ${1}INDEX CONCURRENTLY IF NOT EXISTS "+name+" ON public."+identifier(one.Partition)+" "))
	}
	if err == nil {
		_, err = p.connection.Exec(ctx, "ALTER INDEX "+one.Index+" ATTACH PARTITION "+name)
	}
	if err == nil {
		p.done.Built = append(p.done.Built, name)
	}
	return err
}
