package tenantsdb

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/tenants"
)

// NewestOf returns the newest exchanges of each session, at most most, the newest first. It reads only the
// data for charts: size, window, levels, status and compression.
func (db Exchanges) NewestOf(ctx context.Context, workspace tenants.WorkspaceID, sessions []uuid.UUID, most int) (map[uuid.UUID][]tenants.Exchange, error) {
	const statement = `SELECT session_id, at, status, compression, tokens_after, window_tokens, level_0, level_1, level_2, level_3
		FROM unnest(?::uuid[]) AS s (id) CROSS JOIN LATERAL (
			SELECT session_id, at, status, compression, tokens_after, window_tokens, level_0, level_1, level_2, level_3
			FROM exchanges WHERE workspace_id = ? AND session_id = s.id ORDER BY at DESC, id DESC LIMIT ?) e`
	texts := make([]string, len(sessions))
	for i, id := range sessions {
		texts[i] = id.String()
	}
	var rows []exchangeRow
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(statement, "{"+strings.Join(texts, ",")+"}", workspace, most).Scan(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("newest exchanges of %d sessions: %w", len(sessions), err)
	}
	newest := make(map[uuid.UUID][]tenants.Exchange, len(sessions))
	for i := range rows {
		newest[rows[i].SessionID] = append(newest[rows[i].SessionID], rows[i].toExchange())
	}
	return newest, nil
}
