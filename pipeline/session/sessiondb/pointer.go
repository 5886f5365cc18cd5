package sessiondb

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

const (
	// A link identifies one history in every lane that has it, because these lanes share all earlier
	// messages. A message after it belongs to the newest lane.
	sqlNamed = `SELECT l.session_id, l.id, s.format
		FROM (
			SELECT lane_id, covers AS position FROM epochs WHERE workspace_id = $1 AND chain >= $2 AND chain <= $3
			UNION ALL
			SELECT lane_id, position FROM lane_heads WHERE workspace_id = $1 AND head >= $2 AND head <= $3
		) found
		JOIN lanes l ON l.workspace_id = $1 AND l.id = found.lane_id
		JOIN sessions s ON s.workspace_id = $1 AND s.id = l.session_id
		WHERE ($4::uuid IS NULL OR l.session_id = $4) AND ($5::bool OR s.api_key_id = ANY($6::uuid[])) AND ($7 = '' OR s.end_user = $7)
		ORDER BY found.position <= $8, l.kind <> 'main', l.last_at DESC, l.id DESC LIMIT 1`
	sqlOfLane = `SELECT l.session_id, l.id, s.format
		FROM lanes l JOIN sessions s ON s.workspace_id = $1 AND s.id = l.session_id
		WHERE l.workspace_id = $1 AND l.id = $2 AND ($3::uuid IS NULL OR l.session_id = $3) AND ($4::bool OR s.api_key_id = ANY($5::uuid[])) AND ($6 = '' OR s.end_user = $6)`
	sqlMainLane = `SELECT l.session_id, l.id, s.format
		FROM lanes l JOIN sessions s ON s.workspace_id = $1 AND s.id = l.session_id
		WHERE l.workspace_id = $1 AND l.session_id = $2 AND ($3::bool OR s.api_key_id = ANY($4::uuid[])) AND ($5 = '' OR s.end_user = $5)
		ORDER BY l.kind <> 'main', l.last_at DESC, l.id DESC LIMIT 1`
	sqlNames = `SELECT wanted.place, found.link
		FROM unnest($2::uuid[], $3::int[]) WITH ORDINALITY AS wanted (lane_id, message, place)
		CROSS JOIN LATERAL (
			SELECT head AS link, position FROM lane_heads
			WHERE workspace_id = $1 AND lane_id = wanted.lane_id AND position > wanted.message
			UNION ALL
			SELECT chain, covers FROM epochs
			WHERE workspace_id = $1 AND lane_id = wanted.lane_id AND covers > wanted.message
			ORDER BY position, link LIMIT 1
		) found`
	sqlSessionNamed = `SELECT id FROM sessions WHERE workspace_id = $1 AND name = $2 AND ($3::bool OR api_key_id = ANY($4::uuid[]))
		AND ($5 = '' OR end_user = $5) ORDER BY last_at DESC, id DESC LIMIT 1`
)

// Named returns the lane of a pointer, limited to sessions that a reader may read and to a session if one is
// given. A pointer without a name leads to the session's main lane. It returns session.ErrNotFound if there
// is no such lane.
func (s Browser) Named(ctx context.Context, workspace tenants.WorkspaceID, reader tenants.Reader, within uuid.UUID, pointer archive.Pointer) (session.Named, error) {
	keys := ofKeys(reader)
	query, arguments := sqlMainLane, []any{workspace, within, reader.All, keys, reader.EndUser}
	switch {
	case pointer.Lane != uuid.Nil:
		query, arguments = sqlOfLane, []any{workspace, pointer.Lane, idOrNull(within), reader.All, keys, reader.EndUser}
	case pointer.Name != "":
		first, last := pointer.Name.Links()
		query, arguments = sqlNamed, []any{workspace, first, last, idOrNull(within), reader.All, keys, reader.EndUser, pointer.From}
	}
	var named session.Named
	var format string
	err := batchdb.Row(ctx, batchdb.Of(s.runner, workspace), session.ErrNotFound, []any{&named.Session, &named.Lane, &format}, query, arguments...)
	if err != nil {
		return session.Named{}, fmt.Errorf("lane of %s: %w", pointer, err)
	}
	named.Format = conversation.Format(format)
	return named, nil
}

// Names returns for each message of a lane the name of a history that holds it, or "" without a record.
func (s Browser) Names(ctx context.Context, workspace tenants.WorkspaceID, lanes []uuid.UUID, messages []int) ([]archive.Name, error) {
	names := make([]archive.Name, len(lanes))
	err := batchdb.ForEach(ctx, batchdb.Of(s.runner, workspace), func(row pgx.CollectableRow) error {
		var place int
		var link []byte
		if err := row.Scan(&place, &link); err != nil {
			return err
		}
		names[place-1] = archive.NameOf(conversation.Hash(link))
		return nil
	}, sqlNames, workspace, lanes, messages)
	return names, batchdb.Wrapf(err, "names of %d messages", len(lanes))
}

// SessionNamed returns the newest session with the client's name for it that a reader may read, or
// session.ErrNotFound.
func (s Browser) SessionNamed(ctx context.Context, workspace tenants.WorkspaceID, reader tenants.Reader, name string) (uuid.UUID, error) {
	var id uuid.UUID
	err := batchdb.Row(ctx, batchdb.Of(s.runner, workspace), session.ErrNotFound, []any{&id}, sqlSessionNamed, workspace, storable(name), reader.All, ofKeys(reader), reader.EndUser)
	return id, batchdb.Wrapf(err, "session by name")
}

// ofKeys returns the API keys to whose sessions a reader is limited.
func ofKeys(reader tenants.Reader) []uuid.UUID {
	if !reader.Own {
		return []uuid.UUID{}
	}
	return reader.Keys
}

// idOrNull returns an id for storing, with NULL for uuid.Nil.
func idOrNull(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}
