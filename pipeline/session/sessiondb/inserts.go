package sessiondb

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// InsertChannel notifies all replicas of a lane's new inserts as "workspace/lane/number", with the newest
// number.
const InsertChannel = "palimpsest_inserts"

const (
	// A lane inherits the inserts that its parent had at the fork. Its own numbers continue from them.
	sqlInserts = `WITH RECURSIVE line AS (
			SELECT id, parent_id, fork_at, fork_insert, 2147483647 AS number, 2147483647 AS covers
			FROM lanes WHERE workspace_id = $1 AND id = $2
			UNION ALL
			SELECT p.id, p.parent_id, p.fork_at, p.fork_insert, least(l.number, l.fork_insert), least(l.covers, l.fork_at)
			FROM line l` + sqlParent + `
			WHERE l.fork_insert > 0
		)
		SELECT i.number, i.message, i.chain, i.module, i.tokens, i.sealed, i.lane_id, i.block
		FROM line l CROSS JOIN LATERAL (
			SELECT number, message, chain, module, tokens, sealed, lane_id, block FROM lane_inserts WHERE workspace_id = $1 AND lane_id = l.id OFFSET 0
		) i
		WHERE i.number <= l.number AND i.message < l.covers ORDER BY i.number`
	sqlInsert = `INSERT INTO lane_inserts (workspace_id, lane_id, number, message, chain, module, tokens, sealed)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	sqlWithdraw = `DELETE FROM lane_inserts WHERE workspace_id = $1 AND lane_id = $2 AND number >= $3`
)

// Inject stores the session, lane and entries of the update together with new inserts of its lane. All of it
// is durable when it returns. It returns session.ErrOvertaken if one of their numbers is taken.
func (s *Store) Inject(ctx context.Context, update session.Update, inserts []session.Insert) error {
	workspace := update.Scope.Workspace
	key, err := s.keys.Key(ctx, workspace)
	if err != nil {
		return fmt.Errorf("store %d inserts of lane %s: %w", len(inserts), update.Lane, err)
	}
	err = s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		if err := s.recordInLane(tx, workspace, update); err != nil {
			return err
		}
		newest := 0
		for _, insert := range inserts {
			if err := addInsert(tx, key, workspace, update.Lane, insert); err != nil {
				return err
			}
			newest = insert.Number
		}
		return notifyInsert(tx, workspace, update.Lane, newest)
	})
	var failure *pgconn.PgError
	if errors.As(err, &failure) && failure.Code == uniqueViolation && failure.TableName == "lane_inserts" {
		return fmt.Errorf("inserts of lane %s: %w", update.Lane, session.ErrOvertaken)
	}
	return batchdb.Wrapf(err, "store %d inserts of lane %s", len(inserts), update.Lane)
}

// Withdraw removes a lane's own inserts with a number of from or more and makes all replicas reload the lane.
func (s *Store) Withdraw(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, from int) error {
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		if _, err := tx.Statement.ConnPool.ExecContext(ctx, sqlWithdraw, workspace, lane, from); err != nil {
			return err
		}
		return notify(tx, workspace, lane, 0)
	})
	return batchdb.Wrapf(err, "withdraw inserts of lane %s", lane)
}

// Inserts returns a lane's inserts by number, including inherited ones. It returns an empty list for an
// unknown lane.
func (s Browser) Inserts(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) ([]session.Insert, error) {
	var inserts []session.Insert
	key, err := s.keys.Key(ctx, workspace)
	if err == nil {
		err = s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) (err error) {
			inserts, _, err = insertsOf(tx, key, workspace, lane)
			return err
		})
	}
	return inserts, batchdb.Wrapf(err, "inserts of lane %s", lane)
}

func addInsert(tx *gorm.DB, key *archive.Key, workspace tenants.WorkspaceID, lane uuid.UUID, insert session.Insert) error {
	if insert.Items == nil {
		insert.Items = []string{}
	}
	sealed, err := sealInsert(key, lane, insert)
	if err != nil {
		return err
	}
	_, err = tx.Statement.ConnPool.ExecContext(tx.Statement.Context, sqlInsert, workspace, lane, insert.Number, insert.Message,
		insert.Chain[:], insert.Module, insert.Tokens, sealed)
	return err
}

// insertsOf reads a lane's inserts by number. taken is the number of the newest one that is inherited or left out.
func insertsOf(tx *gorm.DB, key *archive.Key, workspace tenants.WorkspaceID, lane uuid.UUID) (inserts []session.Insert, taken int, err error) {
	err = batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var insert session.Insert
		var chain, sealed []byte
		var owner uuid.UUID
		var block int
		if err := row.Scan(&insert.Number, &insert.Message, &chain, &insert.Module, &insert.Tokens, &sealed, &owner, &block); err != nil {
			return err
		}
		if block > 0 { // a pointer of an earlier version, in place of a tool result
			taken = insert.Number
			return nil
		}
		if len(chain) != len(conversation.Hash{}) {
			return fmt.Errorf("insert %d has a link of %d bytes", insert.Number, len(chain))
		}
		insert.Chain = conversation.Hash(chain)
		if err := openInsert(key, owner, &insert, sealed); err != nil {
			return err
		}
		if owner != lane {
			taken = insert.Number
		}
		inserts = append(inserts, insert)
		return nil
	}, sqlInserts, workspace, lane)
	return inserts, taken, err
}

func notifyInsert(tx *gorm.DB, workspace tenants.WorkspaceID, lane uuid.UUID, number int) error {
	message := fmt.Sprintf("%s/%s/%d", workspace, lane, number)
	_, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, sqlNotify, InsertChannel, message)
	return err
}
