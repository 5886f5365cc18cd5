package partitions

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"palimpsest/pipeline/expression"
)

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
