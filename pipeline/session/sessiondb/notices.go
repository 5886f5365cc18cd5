package sessiondb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/cost"
	"palimpsest/tenants"
)

// Each query returns how many sessions a notice is about, and the most urgent one.
const (
	// An active session may still earn back the cost of its only epoch, or of inserts without an epoch.
	sqlLosses = `SELECT count(*) OVER (), id, title, (sum(net_microusd) OVER ())::bigint, epochs
		FROM sessions WHERE workspace_id = $1 AND last_at >= $2 AND net_microusd < 0
			AND (epochs > 1 OR last_at < $3)
		ORDER BY net_microusd, id LIMIT 1`
	sqlTruncated = `SELECT count(*) OVER (), s.id, s.title, 0::bigint, 0
		FROM (SELECT session_id, max(at) AS at FROM exchanges
			WHERE workspace_id = $1 AND at >= $2 AND compression = 'truncated' GROUP BY session_id) e
		JOIN sessions s ON s.workspace_id = $1 AND s.id = e.session_id
		ORDER BY e.at DESC, s.id LIMIT 1`
	sqlLost = `SELECT count(*) OVER (), s.id, s.title, 0::bigint, e.lost
		FROM (SELECT l.session_id, max(o.created_at) AS at, sum(o.lost)::integer AS lost
			FROM epochs o JOIN lanes l ON l.workspace_id = $1 AND l.id = o.lane_id
			WHERE o.workspace_id = $1 AND o.created_at >= $2 AND o.lost > 0 GROUP BY l.session_id) e
		JOIN sessions s ON s.workspace_id = $1 AND s.id = e.session_id
		ORDER BY e.at DESC, s.id LIMIT 1`
	// Many compactions of a session are fine while they save money. Lanes and epochs are looked up session by
	// session, because few of a workspace's sessions have an epoch and were active recently, and a plain join
	// would read all its lanes.
	sqlMany = `SELECT count(*) OVER (), s.id, s.title, 0::bigint, made.epochs
		FROM sessions s CROSS JOIN LATERAL (
			SELECT max(o.number) AS epochs FROM lanes l JOIN epochs o ON o.workspace_id = $1 AND o.lane_id = l.id
			WHERE l.workspace_id = $1 AND l.session_id = s.id
		) made
		WHERE s.workspace_id = $1 AND s.last_at >= $2 AND s.epochs > 0 AND s.net_microusd <= 0 AND made.epochs >= $3
		ORDER BY made.epochs DESC, s.id LIMIT 1`
)

// rest is the time without a request after which a session counts as ended.
const rest = time.Hour

// Notices returns problems among the sessions that were active since a moment before now. It includes lanes
// with at least epochs epochs unless epochs is 0.
func (s Browser) Notices(ctx context.Context, workspace tenants.WorkspaceID, since, now time.Time, epochs int) ([]cost.Notice, error) {
	var notices []cost.Notice
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		ask := func(kind, query string, arguments ...any) error {
			return batchdb.Each(tx, func(row pgx.CollectableRow) error {
				notice := cost.Notice{Kind: kind}
				if err := row.Scan(&notice.Sessions, &notice.Session, &notice.Title, &notice.Net, &notice.Epochs); err != nil {
					return err
				}
				notices = append(notices, notice)
				return nil
			}, query, arguments...)
		}
		if err := ask(cost.NoticeLoss, sqlLosses, workspace, since, now.Add(-rest)); err != nil {
			return err
		}
		if err := ask(cost.NoticeTruncated, sqlTruncated, workspace, since); err != nil {
			return err
		}
		if err := ask(cost.NoticeIncomplete, sqlLost, workspace, since); err != nil || epochs == 0 {
			return err
		}
		return ask(cost.NoticeEpochs, sqlMany, workspace, since, epochs)
	})
	return notices, batchdb.Wrapf(err, "notices of workspace %s", workspace)
}

const sqlModels = `SELECT model, count(*) FROM sessions WHERE workspace_id = $1 AND last_at >= $2 AND model <> '' GROUP BY model ORDER BY 2 DESC, 1 LIMIT $3`

// mostModels bounds how many models are counted separately.
const mostModels = 1000

// Models returns, for each model as named by requests, how many sessions of a workspace active since a time
// used it last.
func (s Browser) Models(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (map[string]int, error) {
	used := map[string]int{}
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return batchdb.Each(tx, func(row pgx.CollectableRow) error {
			var name string
			var sessions int
			if err := row.Scan(&name, &sessions); err != nil {
				return err
			}
			used[name] = sessions
			return nil
		}, sqlModels, workspace, since, mostModels)
	})
	return used, batchdb.Wrapf(err, "models of workspace %s", workspace)
}
