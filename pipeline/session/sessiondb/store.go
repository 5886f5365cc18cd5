package sessiondb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// Channel notifies all replicas of a lane's change as "workspace/lane/number", with the number of the lane's
// new projection, or 0 for a lane that was deleted or must be reloaded.
const Channel = "palimpsest_lanes"

// uniqueViolation is Postgres' code for a row that already exists.
const uniqueViolation = "23505"

// core holds the shared dependencies of all session stores.
type core struct {
	runner  batchdb.TxRunner
	archive *archivedb.DB
	packer  packer
	queue   jobs.Queue // nil disables planning ahead
	keys    *archive.Keys
}

// Store keeps the lanes of all workspaces while requests go through them.
type Store struct{ *core }

// New returns the store that runs its transactions with runner. It seals messages, projections, plans,
// summaries and inserts under the key of their workspace. It gets the key before a transaction begins, so
// that no transaction waits for another.
func New(runner batchdb.TxRunner, keys *archive.Keys) *Store {
	return &Store{&core{runner: runner, archive: archivedb.New(runner, keys), packer: newPacker(), keys: keys}}
}

// Browser returns the reader of the same sessions for people.
func (s *Store) Browser() Browser { return Browser{s.core} }

// Cleaner returns the background cleaner of the same sessions.
func (s *Store) Cleaner() Cleaner { return Cleaner{s.core} }

// WithJobs returns the store with a queue for the jobs of its records.
func (s *Store) WithJobs(queue jobs.Queue) *Store {
	queued := *s.core
	queued.queue = queue
	return &Store{&queued}
}

const (
	// One index look-up for each head, from the newest until one is found, because a plain join would let the
	// planner read the whole workspace.
	sqlHead = `SELECT found.lane_id, found.position
		FROM unnest($2::bytea[]) WITH ORDINALITY AS wanted (head, place)
		CROSS JOIN LATERAL (
			SELECT lane_id, position FROM lane_heads WHERE workspace_id = $1 AND head = wanted.head LIMIT 1
		) found
		ORDER BY wanted.place LIMIT 1`
	sqlFound = `SELECT l.session_id, l.position, l.kind, s.name, s.source,
			(SELECT count(*) FROM (
				SELECT e.index, row_number() OVER (ORDER BY e.index) - 1 AS place
				FROM lane_entries(l.workspace_id, l.id) e
			) placed WHERE placed.index = placed.place),
			l.warm_at, l.warm_seconds, l.warm_projection, l.warm_position, l.warm_tokens, l.warm_model, l.warm_key,
			l.tried_at, l.fruitless, l.tried_reason, l.tried_tokens, l.tried_limit,
			l.asked_at, l.asked_by, l.asked_instructions, l.parent_id IS NOT NULL AND l.fork_at > 0,
			s.pinned_at IS NOT NULL
		FROM lanes l JOIN sessions s ON s.workspace_id = l.workspace_id AND s.id = l.session_id
		WHERE l.workspace_id = $1 AND l.id = $2`
	// A line of lanes and its data is looked up lane by lane (OFFSET 0). A plain join would let the planner
	// read the whole workspace, since it estimates ten lanes for a line and fewer for a new workspace.
	sqlParent = ` CROSS JOIN LATERAL (SELECT id, parent_id, fork_at, fork_epoch, fork_insert FROM lanes WHERE workspace_id = $1 AND id = l.parent_id OFFSET 0) p`
	// The ancestors of a lane, itself first, and the maximum number of messages that each contributes.
	sqlDescent = `WITH RECURSIVE line AS (
			SELECT id, parent_id, fork_at, 2147483647 AS covers, 0 AS depth
			FROM lanes WHERE workspace_id = $1 AND id = $2
			UNION ALL
			SELECT p.id, p.parent_id, p.fork_at, least(l.covers, l.fork_at), l.depth + 1
			FROM line l` + sqlParent + `
		)`
	// A lane inherits the projections that its parent had at the fork. Its own numbers continue from them.
	sqlLine = `WITH RECURSIVE line AS (
			SELECT id, parent_id, fork_at, fork_epoch, 2147483647 AS number, 2147483647 AS covers
			FROM lanes WHERE workspace_id = $1 AND id = $2
			UNION ALL
			SELECT p.id, p.parent_id, p.fork_at, p.fork_epoch, least(l.number, l.fork_epoch), least(l.covers, l.fork_at)
			FROM line l` + sqlParent + `
			WHERE l.fork_epoch > 0
		)`
	sqlProjections = sqlLine + `
		SELECT e.lane_id, e.number, e.projection
		FROM line l CROSS JOIN LATERAL (SELECT lane_id, number, covers, projection FROM epochs WHERE workspace_id = $1 AND lane_id = l.id OFFSET 0) e
		WHERE e.number <= l.number AND e.covers <= l.covers ORDER BY e.number`
	// Usually the chain covers all messages that the archive has without a gap. A damaged chain is shorter.
	sqlMay = `SELECT chain_messages >= $3 OR (SELECT count(*) FROM lane_entries($1, $2, 0, $3)) >= $3,
			EXISTS (SELECT FROM sessions s WHERE s.workspace_id = $1 AND s.id = lanes.session_id
				AND s.pinned_at >= coalesce(lanes.asked_at, '-infinity'))
		FROM lanes WHERE workspace_id = $1 AND id = $2`
	sqlEpoch = `INSERT INTO epochs
			(workspace_id, lane_id, number, covers, chain, projection, reason, tokens_before, tokens_after, level_tokens, certificate, lost)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::int[], $11::jsonb, $12)`
	sqlEnds       = `SELECT head, position FROM lane_heads WHERE workspace_id = $1 AND lane_id = $2 ORDER BY position DESC LIMIT $3`
	sqlCountEpoch = `UPDATE sessions SET epochs = epochs + 1 WHERE workspace_id = $1 AND id = $2`
	sqlNotify     = `SELECT pg_notify($1, $2)`
)

// Find returns the lane with the furthest of the given heads. It returns session.ErrNotFound if no lane has
// one.
func (s *Store) Find(ctx context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (session.Found, error) {
	key, err := s.keys.Key(ctx, workspace)
	if err != nil {
		return session.Found{}, fmt.Errorf("find lane: %w", orAway(err))
	}
	var found session.Found
	var packed []storedProjection
	err = s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		var err error
		found.Lane, found.Match, err = findHead(tx, workspace, heads)
		if err != nil {
			return err
		}
		row := tx.Statement.ConnPool.QueryRowContext(ctx, sqlFound, workspace, found.Lane)
		if err := scanLane(row, &found); err != nil {
			return err
		}
		if packed, err = projectionsOf(tx, sqlProjections, workspace, found.Lane); err != nil {
			return err
		}
		if found.Summaries, err = summaries(tx, key, workspace, found.Lane); err != nil {
			return err
		}
		if found.Inserts, found.Taken, err = insertsOf(tx, key, workspace, found.Lane); err != nil {
			return err
		}
		if found.Plan, err = s.planOf(tx, key, workspace, found.Lane); err != nil {
			return err
		}
		pins, err := pinsOf(tx, workspace, found.Lane)
		for _, pin := range pins {
			found.Pins = append(found.Pins, pin.Message)
		}
		return err
	})
	if err != nil {
		return session.Found{}, fmt.Errorf("find lane: %w", orAway(err))
	}
	for _, stored := range packed {
		projection, err := s.open(key, stored)
		if err != nil {
			return session.Found{}, fmt.Errorf("lane %s: %w", found.Lane, err)
		}
		found.Projections = append(found.Projections, projection)
	}
	return found, nil
}

// Commit stores the session, lane and entries of the update together with a new projection of its lane. All
// of it is durable when it returns. It returns session.ErrOvertaken if a projection with that number exists
// or if messages that it replaces are not in the archive. It returns session.ErrWarm if the epoch expected a
// cold cache and the lane's cache is alive, and session.ErrPinned if the session is pinned and the lane has no
// newer order.
func (s *Store) Commit(ctx context.Context, update session.Update, projection session.Projection) error {
	packed, err := s.packer.pack(projection)
	if err != nil {
		return err
	}
	workspace := update.Scope.Workspace
	key, err := s.keys.Key(ctx, workspace)
	if err != nil {
		return fmt.Errorf("commit projection %d of lane %s: %w", projection.Number, update.Lane, orAway(err))
	}
	packed = sealPacked(key, aboutProjection(update.Lane, projection.Number), packed)
	err = s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		if projection.Reason == session.ReasonIdle {
			if err := checkCold(tx, workspace, update.Lane, update.At); err != nil {
				return err
			}
		}
		if err := s.recordInLane(tx, workspace, update); err != nil {
			return err
		}
		if err := mayCommit(tx, workspace, update.Lane, projection.Covers); err != nil {
			return err
		}
		pool := tx.Statement.ConnPool
		_, err := pool.ExecContext(ctx, sqlEpoch, workspace, update.Lane, projection.Number, projection.Covers, projection.Chain[:],
			packed, projection.Reason, projection.Before, projection.After, levelTokens(&projection), certificateOf(&projection), lostOf(&projection))
		if err != nil {
			return err
		}
		if _, err := pool.ExecContext(ctx, sqlCountEpoch, workspace, update.Session); err != nil {
			return err
		}
		if _, err := pool.ExecContext(ctx, sqlPlanUsed, workspace, update.Lane); err != nil {
			return err
		}
		return notify(tx, workspace, update.Lane, projection.Number)
	})
	if isOvertaken(err) {
		return fmt.Errorf("projection %d of lane %s: %w", projection.Number, update.Lane, session.ErrOvertaken)
	}
	if err != nil {
		return fmt.Errorf("commit projection %d of lane %s: %w", projection.Number, update.Lane, orAway(err))
	}
	return nil
}

// mayCommit returns session.ErrOvertaken unless the archive has the first messages of a lane, since its
// session may have been deleted after they were stored. It returns session.ErrPinned if the session is pinned
// and the lane has no newer order.
func mayCommit(tx *gorm.DB, workspace tenants.WorkspaceID, lane uuid.UUID, messages int) error {
	var held, pinned bool
	if err := tx.Statement.ConnPool.QueryRowContext(tx.Statement.Context, sqlMay, workspace, lane, messages).Scan(&held, &pinned); err != nil {
		return fmt.Errorf("look for originals and pin: %w", err)
	}
	if !held {
		return fmt.Errorf("originals are gone: %w", session.ErrOvertaken)
	}
	if pinned {
		return session.ErrPinned
	}
	return nil
}

// Record stores the exchanges of one workspace, in order and in one transaction. Existing heads and archived
// messages stay, and the counts are added each time. Requests from before their end user's erasure are not
// stored.
func (s *Store) Record(ctx context.Context, tenant tenants.Tenant, updates []session.Update) error {
	workspace := tenant.Workspace()
	if len(updates) == 0 {
		return nil
	}
	users, names, err := s.namesOf(ctx, workspace, updates)
	if err == nil {
		err = s.archive.Prepare(ctx, workspace)
	}
	if err == nil {
		err = s.runner.InTenant(ctx, tenant, func(tx *gorm.DB) error {
			return recordUnerased(tx, workspace, updates, func(updates []session.Update) error {
				if err := s.recordParts(tx, workspace, updates); err != nil || len(users) == 0 {
					return err
				}
				return batchdb.Later(tx, sqlNameUsers, workspace, users, names)
			})
		})
	}
	return batchdb.Wrapf(err, "record %d exchanges", len(updates))
}

// Ends returns no more than most ends of a lane, the furthest first.
func (s *Store) Ends(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, most int) ([]session.End, error) {
	var ends []session.End
	err := batchdb.ForEach(ctx, batchdb.Of(s.runner, workspace), func(row pgx.CollectableRow) error {
		var head []byte
		var end session.End
		if err := row.Scan(&head, &end.Position); err != nil {
			return err
		}
		end.Head = conversation.Hash(head)
		ends = append(ends, end)
		return nil
	}, sqlEnds, workspace, lane, most)
	if err != nil {
		return nil, fmt.Errorf("ends of lane %s: %w", lane, orAway(err))
	}
	return ends, nil
}

func findHead(tx *gorm.DB, workspace tenants.WorkspaceID, heads []conversation.Hash) (lane uuid.UUID, position int, err error) {
	row := tx.Statement.ConnPool.QueryRowContext(tx.Statement.Context, sqlHead, workspace, newestFirst(heads))
	err = row.Scan(&lane, &position)
	if errors.Is(err, sql.ErrNoRows) {
		err = session.ErrNotFound
	}
	return lane, position, err
}

// newestFirst returns heads in the order of the look-up.
func newestFirst(heads []conversation.Hash) [][]byte {
	turned := make([][]byte, 0, len(heads))
	for i := range slices.Backward(heads) {
		turned = append(turned, heads[i][:])
	}
	return turned
}

func notify(tx *gorm.DB, workspace tenants.WorkspaceID, lane uuid.UUID, number int) error {
	return batchdb.Later(tx, sqlNotify, Channel, fmt.Sprintf("%s/%s/%d", workspace, lane, number))
}

// isOvertaken reports whether err says that an epoch with that number exists.
func isOvertaken(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.Code == uniqueViolation && failure.TableName == "epochs"
}

var _ session.Store = (*Store)(nil)
