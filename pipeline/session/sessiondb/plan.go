package sessiondb

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// JobPlan is the kind of job that plans an epoch ahead.
const JobPlan jobs.Kind = "plan"

// JobExpirePlan is the kind of job that deletes an unused plan.
const JobExpirePlan jobs.Kind = "expire_plan"

// planAge is how long a plan waits for its lane's next request.
const planAge = 7 * 24 * time.Hour

// PlanChannel notifies all replicas of a new plan as "workspace/lane/number", with its projection's number.
const PlanChannel = "palimpsest_plans"

const (
	// A plan belongs to the prompt it was made from, so a newer prompt removes it.
	sqlAhead = `INSERT INTO lane_plans (workspace_id, lane_id, sent_at, due_at, outline)
		SELECT $1, lane_id, sent_at, due_at, outline
		FROM unnest($2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::bytea[]) AS t (lane_id, sent_at, due_at, outline)
		ON CONFLICT (workspace_id, lane_id) DO UPDATE SET sent_at = excluded.sent_at, due_at = excluded.due_at,
			outline = excluded.outline, plan = NULL, settings = '', factor = 0
		WHERE excluded.sent_at > lane_plans.sent_at`
	sqlToPlan = `SELECT sent_at, due_at, outline FROM lane_plans WHERE workspace_id = $1 AND lane_id = $2`
	sqlPlan   = `SELECT p.plan, p.settings, p.factor
		FROM lane_plans p JOIN lanes l ON l.workspace_id = $1 AND l.id = p.lane_id
		WHERE p.workspace_id = $1 AND p.lane_id = $2 AND p.plan IS NOT NULL AND p.sent_at = l.warm_at`
	sqlPlanned = `UPDATE lane_plans p SET plan = $4, settings = $5, factor = $6
		FROM lanes l WHERE l.workspace_id = $1 AND l.id = $2 AND l.warm_at = p.sent_at
			AND p.workspace_id = $1 AND p.lane_id = $2 AND p.sent_at = $3`
	sqlPlanExpired = `DELETE FROM lane_plans WHERE workspace_id = $1 AND lane_id = $2 AND sent_at = $3`
	sqlPlanUsed    = `DELETE FROM lane_plans WHERE workspace_id = $1 AND lane_id = $2 AND plan IS NOT NULL`
)

// recordAhead stores the inputs of plans, and a job for each.
func (s *Store) recordAhead(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) error {
	if s.queue == nil {
		return nil
	}
	byLane := make(map[uuid.UUID]*session.Update)
	for i := range updates {
		if ahead := updates[i].Ahead; ahead != nil {
			if known := byLane[updates[i].Lane]; known == nil || known.Ahead.SentAt.Before(ahead.SentAt) {
				byLane[updates[i].Lane] = &updates[i]
			}
		}
	}
	if len(byLane) == 0 {
		return nil
	}
	var (
		lanes     []uuid.UUID
		sent, due []time.Time
		outlines  [][]byte
		waiting   []jobs.Job
	)
	for _, row := range sorted(byLane, func(a, b *session.Update) int { return bytes.Compare(a.Lane[:], b.Lane[:]) }) {
		lanes, sent = append(lanes, row.Lane), append(sent, row.Ahead.SentAt)
		due, outlines = append(due, row.Ahead.Due), append(outlines, row.Ahead.Outline)
		waiting = append(waiting,
			jobs.Job{Kind: JobPlan, Workspace: workspace, Lane: row.Lane, At: row.Ahead.Due},
			jobs.Job{Kind: JobExpirePlan, Workspace: workspace, Lane: row.Lane, At: row.Ahead.SentAt.Add(planAge)})
	}
	if err := batchdb.Later(tx, sqlAhead, workspace, lanes, sent, due, outlines); err != nil {
		return err
	}
	tenant, err := batchdb.Tenant(tx)
	if err != nil {
		return err
	}
	return s.queue.Enqueue(tx.Statement.Context, tenant, waiting...)
}

// ToPlan returns the input of a lane's next plan. It returns session.ErrNotFound if it is absent or was
// used.
func (s *Store) ToPlan(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) (session.Ahead, error) {
	var ahead session.Ahead
	err := batchdb.Row(ctx, batchdb.Of(s.runner, workspace), session.ErrNotFound, []any{&ahead.SentAt, &ahead.Due, &ahead.Outline}, sqlToPlan, workspace, lane)
	return ahead, batchdb.Wrapf(err, "what to plan for lane %s", lane)
}

// SavePlan keeps the plan for the prompt sent at sentAt and notifies all replicas. It returns
// session.ErrOvertaken if another prompt of the lane has gone out since.
func (s *Store) SavePlan(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, sentAt time.Time, plan *session.Plan) error {
	packed, err := s.packer.pack(plan.Projection)
	if err != nil {
		return err
	}
	key, err := s.keys.Key(ctx, workspace)
	if err != nil {
		return fmt.Errorf("save plan of lane %s: %w", lane, err)
	}
	packed = sealPacked(key, aboutPlan(lane, plan.Settings[:]), packed)
	err = s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		pool := tx.Statement.ConnPool
		result, err := pool.ExecContext(ctx, sqlPlanned, workspace, lane, sentAt, packed, plan.Settings[:], plan.Factor)
		if err != nil {
			return err
		}
		if kept, err := result.RowsAffected(); err != nil || kept == 0 {
			return errors.Join(err, session.ErrOvertaken)
		}
		_, err = pool.ExecContext(ctx, sqlNotify, PlanChannel, fmt.Sprintf("%s/%s/%d", workspace, lane, plan.Projection.Number))
		return err
	})
	return batchdb.Wrapf(err, "save plan of lane %s", lane)
}

// ExpirePlan deletes a lane's plan and its input if they are too old by now, otherwise it snoozes. It is the
// jobs.Handler of JobExpirePlan with an explicit clock.
func (s *Store) ExpirePlan(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, now time.Time) error {
	ahead, err := s.ToPlan(ctx, workspace, lane)
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if until := ahead.SentAt.Add(planAge); now.Before(until) {
		return jobs.Snooze{At: until}
	}
	_, err = batchdb.Changed(ctx, batchdb.Of(s.runner, workspace), sqlPlanExpired, workspace, lane, ahead.SentAt)
	return batchdb.Wrapf(err, "expire plan of lane %s", lane)
}

// planOf returns the plan for a lane's last prompt, or nil.
func (s *Store) planOf(tx *gorm.DB, key *archive.Key, workspace tenants.WorkspaceID, lane uuid.UUID) (*session.Plan, error) {
	var packed, settings []byte
	var plan session.Plan
	err := tx.Statement.ConnPool.QueryRowContext(tx.Statement.Context, sqlPlan, workspace, lane).Scan(&packed, &settings, &plan.Factor)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // no plan is what most lanes have
	}
	if err != nil {
		return nil, err
	}
	if len(settings) != len(conversation.Hash{}) {
		return nil, fmt.Errorf("%w: plan with settings of %d bytes", errBroken, len(settings))
	}
	plan.Settings = conversation.Hash(settings)
	if plan.Projection, err = s.openPacked(key, aboutPlan(lane, settings), packed); err != nil {
		return nil, err
	}
	return &plan, nil
}
