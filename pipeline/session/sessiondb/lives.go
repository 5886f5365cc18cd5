package sessiondb

import (
	"context"

	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// The newest subagents without a recent request, which have ended. Copies of another thread are excluded,
// because their length is not their own.
const sqlLives = `SELECT l.position FROM lanes l
	CROSS JOIN LATERAL (SELECT client FROM sessions WHERE workspace_id = l.workspace_id AND id = l.session_id OFFSET 0) s
	WHERE l.workspace_id = ? AND l.kind = 'subagent' AND l.last_at < now() - interval '20 minutes' AND l.fork_at = 0 AND l.position > 1 AND s.client = ?
	ORDER BY l.last_at DESC LIMIT 300`

// Lives returns the lengths in messages of the newest ended subagents of a client in a workspace.
func (s *Store) Lives(ctx context.Context, workspace tenants.WorkspaceID, client string) (messages []int, err error) {
	err = s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(sqlLives, workspace, client).Scan(&messages).Error
	})
	return messages, batchdb.Wrapf(err, "lives of subagents in workspace %s", workspace)
}
