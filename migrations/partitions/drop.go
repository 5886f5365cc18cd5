package partitions

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// mostKept limits the exchanges of old partitions that are kept, because they must be copied.
const mostKept = 10_000

const (
	mustBeKept = "(session_id IS NOT NULL OR answer IS NOT NULL)" // exchanges of existing sessions, and those with an answer
	leftovers  = "exchanges_before_"                              // prefix of partitions with the kept exchanges of dropped ones
)

// key names an exchange.
type key struct {
	Workspace, ID uuid.UUID
}

// dropOld replaces the oldest partitions by one with the exchanges that must be kept, and drops them. It only
// takes partitions whose exchanges are all older than Days and of which, together, little must be kept.
func (p pass) dropOld(ctx context.Context) error {
	list, err := List(ctx, p.connection.Query)
	if err != nil {
		return err
	}
	horizon := p.Now().Add(-time.Duration(p.Days) * day)
	var old []Partition
	var kept []key
	for _, one := range list {
		if one.Until == uuid.Nil || timeOf(one.Until).After(horizon) {
			break
		}
		some, err := p.kept(ctx, one, mostKept+1-len(kept))
		if err != nil {
			return err
		}
		if len(kept)+len(some) > mostKept {
			p.done.Waits = list[0].Name
			break
		}
		old, kept = append(old, one), append(kept, some...)
	}
	if len(old) == 0 || len(old) == 1 && strings.HasPrefix(old[0].Name, leftovers) {
		return nil // only the leftovers of earlier passes
	}
	if err := p.replace(ctx, old, kept); err != nil {
		return err
	}
	for _, one := range old {
		p.done.Dropped = append(p.done.Dropped, one.Name)
	}
	return p.dropLeft(ctx)
}

// kept returns the exchanges of a partition that must be kept, up to a limit.
func (p pass) kept(ctx context.Context, one Partition, most int) ([]key, error) {
	rows, err := p.connection.Query(ctx, "SELECT workspace_id, id FROM "+identifier(one.Name)+" WHERE "+mustBeKept+" LIMIT $1", most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[key])
}

// replace swaps several partitions for one with their kept exchanges.
func (p pass) replace(ctx context.Context, old []Partition, kept []key) error {
	until := old[len(old)-1].Until
	name := identifier(leftovers + timeOf(until).Format("20060102"))
	var parts, detached []string
	for _, one := range old {
		parts = append(parts, "SELECT o.* FROM "+identifier(one.Name)+" o WHERE o.workspace_id = k.workspace_id AND o.id = k.id") //nolint:unqueryvet // rows move as they are
		detached = append(detached, "ALTER TABLE exchanges DETACH PARTITION "+identifier(one.Name))
	}
	// One lookup for each kept exchange, independent of the planner's statistics.
	now := "CROSS JOIN LATERAL (" + strings.Join(parts, " UNION ALL ") + ") o"
	workspaces, ids := make([]uuid.UUID, len(kept)), make([]uuid.UUID, len(kept))
	for i, one := range kept {
		workspaces[i], ids[i] = one.Workspace, one.ID
	}
	copied := "INSERT INTO " + name + " SELECT o.* FROM unnest($1::uuid[], $2::uuid[]) AS k (workspace_id, id) " + now + " WHERE " + mustBeKept + " ON CONFLICT DO NOTHING" //nolint:unqueryvet // the same
	err := pgx.BeginFunc(ctx, p.connection, func(tx pgx.Tx) error {
		err := all(ctx, tx, "CREATE TABLE "+name+" (LIKE exchanges INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING INDEXES)")
		if err == nil {
			_, err = tx.Exec(ctx, copied, workspaces, ids)
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.briefly(ctx, both, func(tx pgx.Tx) error {
		// Rows that changed after they were copied are copied again.
		err := all(ctx, tx, "DELETE FROM "+name+" c WHERE NOT EXISTS (SELECT FROM (SELECT c.workspace_id, c.id) k "+now+" WHERE o::text = c::text)")
		if err == nil {
			_, err = tx.Exec(ctx, copied, workspaces, ids)
		}
		if err != nil {
			return err
		}
		return all(ctx, tx, append(detached, "ALTER TABLE exchanges ATTACH PARTITION "+name+" "+bounds(uuid.Nil, until))...)
	})
}

// dropLeft drops detached partitions, with the tags of their dropped exchanges.
func (p pass) dropLeft(ctx context.Context) error {
	rows, err := p.connection.Query(ctx, `SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND NOT c.relispartition
		AND c.relname ~ '^exchanges_(first|(before_)?\d{8})$' ORDER BY 1`)
	if err != nil {
		return err
	}
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := p.dropTags(ctx, name); err != nil {
			return err
		}
		if err := p.briefly(ctx, "workspaces, "+identifier(name), func(tx pgx.Tx) error { return all(ctx, tx, "DROP TABLE "+identifier(name)) }); err != nil {
			return err
		}
	}
	return nil
}

// dropTags deletes the tags of the exchanges that are only in this table. It works by workspace, because
// row-level security binds the tables' owner.
func (p pass) dropTags(ctx context.Context, table string) error {
	rows, err := p.connection.Query(ctx, "SELECT DISTINCT workspace_id FROM "+identifier(table)+" WHERE tags IS NOT NULL OR end_user IS NOT NULL")
	if err != nil {
		return err
	}
	workspaces, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	for _, workspace := range workspaces {
		if err != nil {
			return err
		}
		err = pgx.BeginFunc(ctx, p.connection, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT set_config('app.workspace_id', $1, true)", workspace.String()); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "DELETE FROM exchange_tags t USING "+identifier(table)+` d, LATERAL (
					SELECT key || '=' || value AS name FROM jsonb_each_text(d.tags) UNION ALL SELECT '@user=' || d.end_user WHERE d.end_user <> '') AS tag
				WHERE d.workspace_id = $1 AND t.workspace_id = $1 AND t.tag = tag.name AND t.at = d.at AND t.exchange_id = d.id
					AND NOT EXISTS (SELECT FROM exchanges e WHERE e.workspace_id = $1 AND e.id = d.id)`, workspace)
			return err
		})
	}
	return err
}
