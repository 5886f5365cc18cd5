package sessiondb

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/sums"
	"palimpsest/tenants"
)

const (
	defaultLimit = 50
	maxLimit     = 200
)

const (
	sqlOfLanes = `SELECT l.id, l.parent_id, l.fork_at, l.kind, l.position, l.created_at, l.last_at,
			(SELECT count(*) FROM lane_entries(l.workspace_id, l.id)),
			(SELECT count(*) FROM epochs e WHERE e.workspace_id = l.workspace_id AND e.lane_id = l.id),
			CASE WHEN l.asked_at >= coalesce(l.tried_at, l.asked_at) AND NOT EXISTS (
				SELECT FROM epochs e WHERE e.workspace_id = l.workspace_id AND e.lane_id = l.id AND e.created_at >= l.asked_at
			) THEN l.asked_at END,
			l.asked_by, l.asked_instructions,
			l.fruitless, l.tried_reason,
			CASE WHEN l.warm_seconds > 0 THEN l.warm_at + make_interval(secs => l.warm_seconds) END,
			(SELECT p.session_id FROM lanes p WHERE p.workspace_id = l.workspace_id AND p.id = l.parent_id AND p.session_id <> l.session_id),
			ARRAY(SELECT DISTINCT c.session_id FROM lanes c
				WHERE c.workspace_id = l.workspace_id AND c.parent_id = l.id AND c.fork_at = 0 AND c.parent_id IS NOT NULL AND c.session_id <> l.session_id)
		FROM lanes l WHERE l.workspace_id = $1 AND l.session_id = $2
		ORDER BY l.kind <> 'main', l.last_at DESC, l.id DESC`
	sqlNewest = sqlProjections + ` DESC LIMIT 1`
	sqlEpochs = sqlLine + `
		SELECT e.number, e.lane_id, e.covers, e.reason, e.tokens_before, e.tokens_after, e.created_at,
			coalesce(e.level_tokens[1], 0), coalesce(e.level_tokens[2], 0), coalesce(e.level_tokens[3], 0),
			coalesce(e.certificate, 'null'),
			coalesce((SELECT (array_agg(x.window_tokens ORDER BY x.at))[1] FROM exchanges x
				WHERE x.workspace_id = $1 AND x.lane_id = e.lane_id AND x.projection = e.number AND x.projection > 0), 0)
		FROM line l JOIN epochs e ON e.workspace_id = $1 AND e.lane_id = l.id
		WHERE e.number <= l.number AND e.covers <= l.covers ORDER BY e.number`
)

// sessionColumns returns the columns of listRow, except those of a bounded look.
func sessionColumns() string {
	return sums.SQL(sessionSums(), "%", ", ") + otherColumns
}

const otherColumns = `, id, api_key_id, format, name, source, title, client, model, started_at, last_at,
	single, bridged, pinned_at, coalesce(end_user, '') AS end_user, project,
	EXISTS (SELECT FROM lanes l JOIN lane_inserts i ON i.workspace_id = l.workspace_id AND i.lane_id = l.id
		WHERE l.workspace_id = sessions.workspace_id AND l.session_id = sessions.id AND i.module = 'rehydrator') AS rehydrated`

// listRow is a row of sessions.
type listRow struct {
	session.Overview

	PinnedAt *time.Time

	// For a bounded look: whether the row matches the query, and its number, from 1.
	Fits  bool
	Place int
}

// Browser reads sessions for people and applies their requests: pins, orders, deletion.
type Browser struct{ *core }

// Sessions returns a page of a workspace's sessions, the most recently active first. It returns
// session.ErrCursor for an invalid cursor.
func (s Browser) Sessions(ctx context.Context, workspace tenants.WorkspaceID, filter session.Filter) (session.Page, error) {
	limit := filter.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	limit = min(limit, maxLimit)
	if !filter.Sorts(filter.Sort) {
		filter.Sort = session.Sort{}
	}
	after, err := parseCursor(filter.Cursor)
	if err != nil {
		return session.Page{}, err
	}
	var rows []listRow
	err = s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		look, err := lookAt(tx, workspace, filter, after)
		if err != nil {
			return err
		}
		query := look.from.Select(sessionColumns() + ", true AS fits")
		if look.bounded {
			query = look.from.Select(sessionColumns()+", place, "+fits+" AS fits", fitting(filter)...).
				Where("place = ? OR "+fits, append([]any{mostLooked}, fitting(filter)...)...)
		}
		return query.Order(orderOf(filter.Sort)).Limit(limit + 1).Scan(&rows).Error
	})
	if err != nil {
		return session.Page{}, fmt.Errorf("list sessions: %w", err)
	}
	page := pageOf(rows, limit, filter)
	if err := s.nameUsers(ctx, workspace, page.Sessions); err != nil {
		return session.Page{}, err
	}
	for i := range page.Sessions {
		if filter.Masked && !slices.Contains(filter.Shown, page.Sessions[i].APIKey) {
			page.Sessions[i].Mask()
		}
	}
	return page, nil
}

// pageOf returns the found sessions and the cursor of the next page.
func pageOf(rows []listRow, limit int, filter session.Filter) session.Page {
	var page session.Page
	for i, row := range rows {
		if len(page.Sessions) == limit {
			page.Next, page.Cut = rows[i-1].place(filter.Sort.By).cursor(), false
			return page
		}
		if row.Fits {
			page.Sessions = append(page.Sessions, row.Overview)
		}
		if row.Place == mostLooked {
			page.Next, page.Cut = row.place(filter.Sort.By).cursor(), true
		}
	}
	return page
}

// IDs returns up to limit sessions of a workspace whose ids follow after, in order. uuid.Nil starts at the
// first.
func (s Browser) IDs(ctx context.Context, workspace tenants.WorkspaceID, after uuid.UUID, limit int) ([]uuid.UUID, error) {
	ids, err := batchdb.Scan[[]uuid.UUID](ctx, batchdb.Of(s.runner, workspace), "SELECT id FROM sessions WHERE workspace_id = ? AND id > ? ORDER BY id LIMIT ?", workspace, after, limit)
	return ids, batchdb.Wrapf(err, "list sessions")
}

// Session returns a session with its lanes, or session.ErrNotFound, also for a session that the reader may not see.
func (s Browser) Session(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (session.Detail, error) {
	var detail session.Detail
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		var rows []listRow
		query := tx.Table("sessions").Select(sessionColumns()).Where("workspace_id = ? AND id = ?", workspace, id)
		if err := visible(query).Scan(&rows).Error; err != nil {
			return err
		}
		if len(rows) == 0 {
			return session.ErrNotFound
		}
		detail.Overview = rows[0].Overview
		if at := rows[0].PinnedAt; at != nil {
			detail.PinnedAt = *at
		}
		var err error
		detail.Lanes, err = lanesOf(tx, workspace, id)
		return err
	})
	if err == nil {
		named := []session.Overview{detail.Overview}
		err = s.nameUsers(ctx, workspace, named)
		detail.Overview = named[0]
	}
	return detail, batchdb.Wrapf(err, "session %s", id)
}

func lanesOf(tx *gorm.DB, workspace tenants.WorkspaceID, id uuid.UUID) ([]session.LaneOverview, error) {
	return batchdb.Rows(tx, func(row pgx.CollectableRow) (lane session.LaneOverview, err error) {
		var parent, continues uuid.NullUUID
		var asked, warm sql.NullTime
		var askedBy uuid.NullUUID
		var instructions string
		var attempts session.Attempts
		err = row.Scan(&lane.ID, &parent, &lane.ForkAt, &lane.Kind, &lane.Position, &lane.CreatedAt, &lane.LastAt, &lane.Archived, &lane.Epochs,
			&asked, &askedBy, &instructions, &attempts.Fruitless, &attempts.Reason, &warm, &continues, &lane.Continued)
		if err != nil {
			return lane, err
		}
		lane.WarmUntil = warm.Time
		lane.Parent, lane.Continues = parent.UUID, continues.UUID
		if asked.Valid {
			lane.Order = &session.Order{At: asked.Time, By: askedBy.UUID, Instructions: instructions}
		}
		if attempts.IsOpen() {
			lane.Breaker = attempts.Reason
		}
		return lane, nil
	}, sqlOfLanes, workspace, id)
}

// Projection returns a lane's newest projection, its own or an inherited one, or session.ErrNotFound.
func (s Browser) Projection(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) (session.Projection, error) {
	key, err := s.keys.Key(ctx, workspace)
	if err != nil {
		return session.Projection{}, fmt.Errorf("projection of lane %s: %w", lane, err)
	}
	var packed []storedProjection
	packed, err = batchdb.Read(ctx, batchdb.Of(s.runner, workspace), func(tx *gorm.DB) ([]storedProjection, error) { return projectionsOf(tx, sqlNewest, workspace, lane) })
	newest, err := batchdb.First(packed, err, session.ErrNotFound)
	if err != nil {
		return session.Projection{}, fmt.Errorf("projection of lane %s: %w", lane, err)
	}
	projection, err := s.open(key, newest)
	return projection, batchdb.Wrapf(err, "projection of lane %s", lane)
}

// Projections returns a lane's projections, oldest first, including inherited ones.
func (s Browser) Projections(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) ([]session.Projection, error) {
	key, err := s.keys.Key(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("projections of lane %s: %w", lane, err)
	}
	packed, err := batchdb.Read(ctx, batchdb.Of(s.runner, workspace), func(tx *gorm.DB) ([]storedProjection, error) {
		return projectionsOf(tx, sqlProjections, workspace, lane)
	})
	projections := make([]session.Projection, 0, len(packed))
	for _, one := range packed {
		projection, openErr := s.open(key, one)
		projections, err = append(projections, projection), errors.Join(err, openErr)
	}
	return projections, batchdb.Wrapf(err, "projections of lane %s", lane)
}

// Epochs returns a lane's epochs, oldest first, including inherited ones.
func (s Browser) Epochs(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) ([]session.EpochOverview, error) {
	epochs, err := batchdb.List(ctx, batchdb.Of(s.runner, workspace), func(row pgx.CollectableRow) (epoch session.EpochOverview, err error) {
		err = row.Scan(&epoch.Number, &epoch.Lane, &epoch.Covers, &epoch.Reason, &epoch.Before, &epoch.After, &epoch.At,
			&epoch.Levels[0], &epoch.Levels[1], &epoch.Levels[2], &epoch.Certificate, &epoch.Window)
		return epoch, err
	}, sqlEpochs, workspace, lane)
	return epochs, batchdb.Wrapf(err, "epochs of lane %s", lane)
}

// place returns the end of a page, in an order, whose last row this is.
func (r listRow) place(by session.SortKey) place {
	switch by {
	case session.ByNet:
		return place{value: r.Sums.NetMicroUSD, id: r.ID}
	case session.ByReceived:
		return place{value: r.Sums.TokensBefore, id: r.ID}
	default:
		return place{value: r.LastAt.UnixMicro(), id: r.ID}
	}
}

// place is the end of a page of sessions.
type place struct {
	value int64 // sort value; for a time its microseconds
	id    uuid.UUID
}

// sortColumn returns the column of a list's order.
func sortColumn(by session.SortKey) string {
	switch by {
	case session.ByNet:
		return "net_microusd"
	case session.ByReceived:
		return "tokens_before"
	default:
		return "last_at"
	}
}

func orderOf(sort session.Sort) string {
	if sort.Up {
		return sortColumn(sort.By) + ", id"
	}
	return sortColumn(sort.By) + " DESC, id DESC"
}

// behind returns the condition for rows after a place in an order, with its values.
func (p place) behind(sort session.Sort) (condition string, values []any) {
	sign := map[bool]string{false: "<", true: ">"}[sort.Up]
	var value any = p.value
	if sort.By == session.ByLast {
		value = time.UnixMicro(p.value)
	}
	return "(" + sortColumn(sort.By) + ", id) " + sign + " (?, ?)", []any{value, p.id}
}

func (p place) cursor() string {
	packed := binary.BigEndian.AppendUint64(nil, uint64(p.value)) //nolint:gosec // the bits are kept
	return base64.RawURLEncoding.EncodeToString(append(packed, p.id[:]...))
}

// parseCursor returns nil for an empty cursor.
func parseCursor(cursor string) (*place, error) {
	if cursor == "" {
		return nil, nil //nolint:nilnil // the first page begins nowhere
	}
	packed, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(packed) != 8+len(uuid.UUID{}) {
		return nil, session.ErrCursor
	}
	micros := int64(binary.BigEndian.Uint64(packed)) //nolint:gosec // the bits are kept
	return &place{value: micros, id: uuid.UUID(packed[8:])}, nil
}

// uuidArray returns ids as a Postgres array, because gorm would spread a slice.
func uuidArray(ids []uuid.UUID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return "{" + strings.Join(texts, ",") + "}"
}
