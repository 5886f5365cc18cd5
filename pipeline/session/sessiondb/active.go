package sessiondb

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// A fork continues with the epochs of the lane it left.
const sqlActive = `SELECT l.id, greatest(e.number, l.fork_epoch), l.last_at
	FROM sessions s JOIN lanes l ON l.workspace_id = $1 AND l.session_id = s.id
	LEFT JOIN LATERAL (SELECT number FROM epochs WHERE workspace_id = $1 AND lane_id = l.id ORDER BY number DESC LIMIT 1) e ON true
	WHERE s.workspace_id = $1 AND s.epochs > 0 AND s.last_at >= $2 AND l.last_at >= $2 AND l.kind <> 'side'
		AND (e.number IS NOT NULL OR l.fork_epoch > 0)
	ORDER BY s.last_at DESC, l.last_at DESC LIMIT $3`

// Active returns at most most compacted lanes of a workspace with requests since a time, from the most
// recently used sessions first.
func (s *Store) Active(ctx context.Context, workspace tenants.WorkspaceID, since time.Time, most int) ([]session.Active, error) {
	var active []session.Active
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) (err error) {
		active, err = batchdb.Rows(tx, func(row pgx.CollectableRow) (one session.Active, err error) {
			one.Workspace = workspace
			err = row.Scan(&one.Lane, &one.Number, &one.At)
			return one, err
		}, sqlActive, workspace, since, most)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("active lanes of workspace %s: %w", workspace, orAway(err))
	}
	return active, nil
}
