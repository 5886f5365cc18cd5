package sessiondb

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/session"
)

const (
	// One pass over the figures of the lane's requests; their reports are not read.
	sqlCourse = `WITH numbered AS (
			SELECT row_number() OVER (ORDER BY at, id) AS n, count(*) OVER () AS total, at, tokens_before, tokens_after, window_tokens,
				compression, class, level_0, level_1, level_2, level_3, miss_cause, missed_tokens, projection, net_microusd, status, id
			FROM exchanges WHERE workspace_id = $1 AND session_id = $2 AND lane_id = $3 AND tokens_before > 0
		)`
	courseColumns = `n, at, tokens_before, tokens_after, window_tokens, compression, class, level_0, level_1, level_2, level_3,
		miss_cause, missed_tokens, projection, net_microusd, status`
	sqlPoints = sqlCourse + `
		SELECT DISTINCT ON ((n * $4::bigint + total - 1) / total) ` + courseColumns + `, NULL::jsonb, total FROM numbered
		ORDER BY (n * $4::bigint + total - 1) / total, n DESC`
	sqlEvents = sqlCourse + `
		SELECT * FROM (
			SELECT ` + courseColumns + `, (SELECT e.report FROM exchanges e WHERE e.workspace_id = $1 AND e.id = chosen.id), total FROM (
				SELECT * FROM numbered WHERE compression NOT IN ('', 'none', 'frozen', 'bypassed') OR class = 'after-compaction'
				ORDER BY n DESC LIMIT $4
			) chosen
		) newest ORDER BY n`
)

// Course returns how the prompts of a lane grew, in at most points moments. However
// long the session is, no more rows than those and session.MaxEvents leave the database.
func (s *Store) Course(ctx context.Context, workspace, id, lane uuid.UUID, points int) (session.Course, error) {
	var course session.Course
	err := s.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		var err error
		if course.Points, course.Total, err = momentsOf(tx, sqlPoints, workspace, id, lane, points); err != nil {
			return err
		}
		course.Events, _, err = momentsOf(tx, sqlEvents, workspace, id, lane, session.MaxEvents)
		return err
	})
	if err != nil {
		return session.Course{}, fmt.Errorf("course of lane %s: %w", lane, err)
	}
	return course, nil
}

func momentsOf(tx *gorm.DB, query string, workspace, id, lane uuid.UUID, limit int) (moments []session.Moment, total int, err error) {
	rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, query, workspace, id, lane, limit)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var m session.Moment
		err := rows.Scan(&m.Number, &m.At, &m.Before, &m.After, &m.Window, &m.Compression, &m.Class,
			&m.Levels[0], &m.Levels[1], &m.Levels[2], &m.Levels[3],
			&m.MissCause, &m.MissedTokens, &m.Projection, &m.NetMicroUSD, &m.Status, &m.Report, &total)
		if err != nil {
			return nil, 0, err
		}
		moments = append(moments, m)
	}
	return moments, total, rows.Err()
}

// levelTokens returns the tokens that a projection has at L1, L2 and L3, as Postgres
// writes an array.
func levelTokens(projection *session.Projection) string {
	var sums [4]int
	for _, part := range projection.Parts {
		if part.Level > 0 && part.Level < len(sums) {
			sums[part.Level] += part.Tokens
		}
	}
	return fmt.Sprintf("{%d,%d,%d}", sums[1], sums[2], sums[3])
}
