package sessiondb

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

const (
	// zstd's magic number tells what is not sealed yet.
	sqlOpenProjections = `SELECT lane_id, number, projection FROM epochs
		WHERE workspace_id = $1 AND substr(projection, 1, 1) = '\x28' LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED`
	sqlSealProjection = `UPDATE epochs SET projection = $4 WHERE workspace_id = $1 AND lane_id = $2 AND number = $3`
	sqlOpenSummaries  = `SELECT lane_id, number, covers, chain, text FROM summaries
		WHERE workspace_id = $1 AND text <> '' AND sealed IS NULL LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED`
	sqlSealSummary = `UPDATE summaries SET text = '', sealed = $4 WHERE workspace_id = $1 AND lane_id = $2 AND number = $3`
	sqlOpenInserts = `SELECT lane_id, number, text, to_json(items)::text FROM lane_inserts
		WHERE workspace_id = $1 AND sealed IS NULL LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED`
	sqlSealInsert = `UPDATE lane_inserts SET text = '', items = '{}', sealed = $4
		WHERE workspace_id = $1 AND lane_id = $2 AND number = $3`
	sqlOpenPlans = `SELECT lane_id, settings, plan FROM lane_plans
		WHERE workspace_id = $1 AND substr(plan, 1, 1) = '\x28' LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED`
	sqlSealPlan = `UPDATE lane_plans SET plan = $3 WHERE workspace_id = $1 AND lane_id = $2`
)

// sealBatch bounds what one transaction seals of each table.
const sealBatch = 64

// Seal seals the projections, plans, summaries and inserts of a workspace that were
// stored before there were keys, and returns how many. It may be run again at any
// time, and by several processes at once.
func (s Upkeep) Seal(ctx context.Context, workspace tenants.WorkspaceID) (int, error) {
	key, err := s.key(ctx, workspace)
	if err != nil || key == nil {
		return 0, err
	}
	total := 0
	for {
		sealed := 0
		err := s.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
			for _, seal := range []func(*gorm.DB, *archive.Key, tenants.WorkspaceID) (int, error){
				sealProjections, sealPlans, sealSummaries, sealInserts,
			} {
				count, err := seal(tx, key, workspace)
				if err != nil {
					return err
				}
				sealed += count
			}
			return nil
		})
		if err != nil {
			return total, fmt.Errorf("seal workspace %s: %w", workspace, err)
		}
		if total += sealed; sealed == 0 {
			return total, nil
		}
	}
}

func sealProjections(tx *gorm.DB, key *archive.Key, workspace tenants.WorkspaceID) (int, error) {
	open, err := batchdb.Rows(tx, func(row pgx.CollectableRow) (one storedProjection, err error) {
		err = row.Scan(&one.lane, &one.number, &one.packed)
		return one, err
	}, sqlOpenProjections, workspace, sealBatch)
	if err != nil {
		return 0, err
	}
	for _, one := range open {
		_, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, sqlSealProjection, workspace, one.lane, one.number,
			sealProjection(key, one.lane, one.number, one.packed))
		if err != nil {
			return 0, err
		}
	}
	return len(open), nil
}

func sealPlans(tx *gorm.DB, key *archive.Key, workspace tenants.WorkspaceID) (int, error) {
	type openPlan struct {
		lane             uuid.UUID
		settings, packed []byte
	}
	open, err := batchdb.Rows(tx, func(row pgx.CollectableRow) (one openPlan, err error) {
		err = row.Scan(&one.lane, &one.settings, &one.packed)
		return one, err
	}, sqlOpenPlans, workspace, sealBatch)
	if err != nil {
		return 0, err
	}
	for _, one := range open {
		_, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, sqlSealPlan, workspace, one.lane,
			sealPacked(key, aboutPlan(one.lane, one.settings), one.packed))
		if err != nil {
			return 0, err
		}
	}
	return len(open), nil
}

func sealSummaries(tx *gorm.DB, key *archive.Key, workspace tenants.WorkspaceID) (int, error) {
	type openSummary struct {
		lane           uuid.UUID
		number, covers int
		chain          []byte
		text           string
	}
	open, err := batchdb.Rows(tx, func(row pgx.CollectableRow) (one openSummary, err error) {
		err = row.Scan(&one.lane, &one.number, &one.covers, &one.chain, &one.text)
		return one, err
	}, sqlOpenSummaries, workspace, sealBatch)
	if err != nil {
		return 0, err
	}
	for _, one := range open {
		_, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, sqlSealSummary, workspace, one.lane, one.number,
			key.Seal(aboutSummary(one.lane, one.covers, one.chain), []byte(one.text)))
		if err != nil {
			return 0, err
		}
	}
	return len(open), nil
}

func sealInserts(tx *gorm.DB, key *archive.Key, workspace tenants.WorkspaceID) (int, error) {
	type openInsert struct {
		lane   uuid.UUID
		number int
		text   string
		items  []byte // JSON in one line
	}
	open, err := batchdb.Rows(tx, func(row pgx.CollectableRow) (one openInsert, err error) {
		err = row.Scan(&one.lane, &one.number, &one.text, &one.items)
		return one, err
	}, sqlOpenInserts, workspace, sealBatch)
	if err != nil {
		return 0, err
	}
	for _, one := range open {
		_, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, sqlSealInsert, workspace, one.lane, one.number,
			sealInsert(key, one.lane, one.number, one.text, one.items))
		if err != nil {
			return 0, err
		}
	}
	return len(open), nil
}
