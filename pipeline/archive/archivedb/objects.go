package archivedb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

const (
	sqlObjectsOf = `SELECT stored.hash, size, encoding, place, segment_id, coalesce(start, 0), coalesce(length, 0), bytes FROM unnest($2::bytea[]) AS wanted (hash)
		CROSS JOIN LATERAL (
			SELECT hash, size, encoding, place, segment_id, start, length, bytes FROM archive_objects
			WHERE workspace_id = $1 AND hash = wanted.hash AND place <> 2 LIMIT 1
		) stored`
	sqlAnswersOf = `SELECT x.id, x.lane_id, x.at, x.answer, o.size
		FROM exchanges x LEFT JOIN LATERAL (SELECT size FROM archive_objects WHERE workspace_id = $1 AND hash = x.answer OFFSET 0) o ON true
		WHERE x.workspace_id = $1 AND x.session_id = $2 AND x.answer IS NOT NULL AND (x.at, x.id) > ($3, $4)
		ORDER BY x.at, x.id LIMIT $5`
	// The newest answer after $4 messages of a lane, among the newest exchanges of its session.
	sqlNewestAnswer = `SELECT x.id, x.at, x.answer FROM (
			SELECT id, lane_id, at, position, answer FROM exchanges WHERE workspace_id = $1 AND session_id = $2 ORDER BY at DESC, id DESC LIMIT 100
		) x WHERE x.lane_id = $3 AND x.position = $4 AND x.answer IS NOT NULL ORDER BY x.at DESC, x.id DESC LIMIT 1`
)

// Objects returns messages by their hashes, in the same order, each verified by its hash or with its damage.
func (d *DB) Objects(ctx context.Context, workspace tenants.WorkspaceID, hashes []conversation.Hash) ([]archive.Object, error) {
	stored, err := d.stored(ctx, workspace, hashes)
	if err != nil {
		return nil, fmt.Errorf("%d messages: %w", len(hashes), err)
	}
	all := make([]*storedBytes, 0, len(stored))
	for _, one := range stored {
		all = append(all, one)
	}
	if err := d.originals(ctx, workspace, all); err != nil {
		return nil, err
	}
	objects := make([]archive.Object, len(hashes))
	for i, hash := range hashes {
		objects[i].Damage = archive.ErrNotFound
		if one, is := stored[hash]; is {
			objects[i].Raw, objects[i].Damage = one.raw, one.damage
		}
	}
	return objects, nil
}

func (d *DB) stored(ctx context.Context, workspace tenants.WorkspaceID, hashes []conversation.Hash) (map[conversation.Hash]*storedBytes, error) {
	wanted := make([][]byte, len(hashes))
	for i := range hashes {
		wanted[i] = hashes[i][:]
	}
	found := make(map[conversation.Hash]*storedBytes, len(hashes))
	err := batchdb.ForEach(ctx, batchdb.Of(d.runner, workspace), func(row pgx.CollectableRow) error {
		one := new(storedBytes)
		var hash []byte
		if err := row.Scan(&hash, &one.size, &one.form, &one.place, &one.segment, &one.start, &one.length, &one.bytes); err != nil {
			return err
		}
		one.hash = conversation.Hash(hash)
		found[one.hash] = one
		return nil
	}, sqlObjectsOf, workspace, wanted)
	return found, err
}

// Answers returns up to limit answers of a session that follow after, oldest first and without their bytes.
// The zero Answer starts at the first.
func (d *DB) Answers(ctx context.Context, workspace tenants.WorkspaceID, session uuid.UUID, after archive.Answer, limit int) ([]archive.Answer, error) {
	answers, err := batchdb.List(ctx, batchdb.Of(d.runner, workspace), func(row pgx.CollectableRow) (answer archive.Answer, err error) {
		var lane uuid.NullUUID
		var hash []byte
		var size *int
		var at time.Time
		if err := row.Scan(&answer.Exchange, &lane, &at, &hash, &size); err != nil {
			return answer, err
		}
		answer.Lane, answer.At, answer.Hash = lane.UUID, at, conversation.Hash(hash)
		if size != nil {
			answer.Size = *size
		}
		return answer, nil
	}, sqlAnswersOf, workspace, session, after.At, after.Exchange, limit)
	return answers, batchdb.Wrapf(err, "answers of session %s", session)
}

// NewestAnswer returns, without its bytes, the newest answer to a request of a lane with the given number of
// messages. It returns archive.ErrNotFound if the newest requests of its session include no such answer.
func (d *DB) NewestAnswer(ctx context.Context, workspace tenants.WorkspaceID, session, lane uuid.UUID, messages int) (archive.Answer, error) {
	answer := archive.Answer{Lane: lane}
	err := d.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		var hash []byte
		row := tx.Statement.ConnPool.QueryRowContext(ctx, sqlNewestAnswer, workspace, session, lane, messages)
		err := row.Scan(&answer.Exchange, &answer.At, &hash)
		if errors.Is(err, sql.ErrNoRows) {
			return archive.ErrNotFound
		}
		answer.Hash = conversation.Hash(hash)
		return err
	})
	return answer, batchdb.Wrapf(err, "newest answer of lane %s", lane)
}

// The statements of an erasure.
const (
	sqlDoomAll = `UPDATE archive_objects SET place = 2, bytes = NULL
		WHERE workspace_id = $1 AND ctid = ANY(ARRAY(SELECT ctid FROM archive_objects WHERE workspace_id = $1 AND place <> 2 LIMIT $2))`
	sqlEraseHere = `DELETE FROM archive_objects
		WHERE workspace_id = $1 AND ctid = ANY(ARRAY(SELECT ctid FROM archive_objects WHERE workspace_id = $1 AND place = 0 LIMIT $2))`
	sqlElsewhere = `SELECT (SELECT count(*) FROM archive_objects WHERE workspace_id = $1 AND place <> 0)
		+ (SELECT count(*) FROM archive_segments WHERE workspace_id = $1)`
)

// eraseBatch is how many objects one transaction of an erasure deletes.
const eraseBatch = 2000

// ErrNoBucket says that archived bytes are in a bucket, but none is configured.
var ErrNoBucket = errors.New("archived bytes are in a bucket; set PALIMPSEST_BLOB_URL to it, as it was")

// Erase deletes all unused archived bytes of a workspace from the database and the bucket. After a failure
// another call continues. It returns ErrNoBucket if bytes are in a bucket and none is configured.
func (m *Mover) Erase(ctx context.Context, workspace tenants.WorkspaceID) error {
	statement := sqlDoomAll
	if m.bucket == nil {
		statement = sqlEraseHere
	}
	for more := true; more; {
		changed, err := m.change(ctx, workspace, statement)
		if err != nil {
			return fmt.Errorf("erase archived bytes: %w", err)
		}
		more = changed > 0
	}
	if m.bucket == nil {
		return m.nothingElsewhere(ctx, workspace)
	}
	pass, err := m.newPass(ctx, workspace)
	if err != nil {
		return fmt.Errorf("erase archived bytes: %w", err)
	}
	if err := pass.erase(ctx); err != nil {
		return fmt.Errorf("erase archived bytes: %w", err)
	}
	return nil
}

// erase deletes all segments of a workspace and the records of their content, without the usual waiting time.
func (p *pass) erase(ctx context.Context) error {
	for more := true; more; {
		var err error
		if more, err = p.forget(ctx); err != nil {
			return err
		}
	}
	if err := p.abandon(ctx); err != nil {
		return err
	}
	if err := p.exec(ctx, p.workspace, sqlRetireAll, p.workspace); err != nil {
		return err
	}
	return p.retire(ctx, 0)
}

func (m *Mover) change(ctx context.Context, workspace tenants.WorkspaceID, statement string) (int64, error) {
	changed, err := batchdb.Changed(ctx, batchdb.Of(m.runner, workspace), statement, workspace, eraseBatch)
	return changed, err
}

func (m *Mover) nothingElsewhere(ctx context.Context, workspace tenants.WorkspaceID) error {
	var elsewhere int
	err := batchdb.Row(ctx, batchdb.Of(m.runner, workspace), sql.ErrNoRows, []any{&elsewhere}, sqlElsewhere, workspace)
	if err == nil && elsewhere > 0 {
		err = fmt.Errorf("%d objects: %w", elsewhere, ErrNoBucket)
	}
	return err
}
