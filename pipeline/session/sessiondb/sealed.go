package sessiondb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
)

// sealedProjection begins a stored projection that is sealed. One that is not
// begins with zstd's magic number, 28 b5 2f fd.
const sealedProjection = 1

// errNoKey says that text is sealed and this process was given no keys.
var errNoKey = errors.New("the text is sealed, and no keys are set")

// WithKeys returns the store that seals messages, projections and summaries under
// the key of their workspace. What was stored before can still be read.
func (s *Store) WithKeys(keys *archive.Keys) *Store {
	return &Store{door: s.door, archive: s.archive.WithKeys(keys), packer: s.packer, keys: keys}
}

// key returns the key of a workspace; nil where nothing is sealed. It is asked for
// before a transaction begins, so that none waits for another.
func (s *Store) key(ctx context.Context, workspace uuid.UUID) (*archive.Key, error) {
	if s.keys == nil {
		return nil, nil //nolint:nilnil // a store without keys seals nothing
	}
	return s.keys.Key(ctx, workspace)
}

// storedProjection is a projection as it is stored with its lane.
type storedProjection struct {
	lane   uuid.UUID
	number int
	packed []byte
}

func projectionsOf(tx *gorm.DB, statement string, workspace, lane uuid.UUID) ([]storedProjection, error) {
	rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, statement, workspace, lane)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []storedProjection
	for rows.Next() {
		var one storedProjection
		if err := rows.Scan(&one.lane, &one.number, &one.packed); err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, rows.Err()
}

// sealProjection seals a packed projection, if there is a key.
func sealProjection(key *archive.Key, lane uuid.UUID, number int, packed []byte) []byte {
	if key == nil {
		return packed
	}
	return append([]byte{sealedProjection}, key.Seal(aboutProjection(lane, number), packed)...)
}

// open returns the projection that was stored, sealed or not.
func (s *Store) open(key *archive.Key, stored storedProjection) (session.Projection, error) {
	packed := stored.packed
	if len(packed) > 0 && packed[0] == sealedProjection {
		var err error
		if packed, err = openText(key, aboutProjection(stored.lane, stored.number), packed[1:]); err != nil {
			return session.Projection{}, fmt.Errorf("%w: %w", errBroken, err)
		}
	}
	return s.packer.unpack(packed)
}

func openText(key *archive.Key, about, sealed []byte) ([]byte, error) {
	if key == nil {
		return nil, errNoKey
	}
	return key.Open(about, sealed)
}

// aboutProjection is what a sealed projection is bound to, beside its workspace.
func aboutProjection(lane uuid.UUID, number int) []byte {
	about := append([]byte("projection "), lane[:]...)
	return binary.BigEndian.AppendUint64(about, uint64(number)) //nolint:gosec // epochs of a lane
}

// aboutSummary is what a sealed summary is bound to, beside its workspace.
func aboutSummary(lane uuid.UUID, covers int, chain []byte) []byte {
	about := append([]byte("summary "), lane[:]...)
	about = binary.BigEndian.AppendUint64(about, uint64(covers)) //nolint:gosec // messages of a lane
	return append(about, chain...)
}

const (
	// zstd's magic number tells what is not sealed yet.
	sqlOpenProjections = `SELECT lane_id, number, projection FROM epochs
		WHERE workspace_id = $1 AND substr(projection, 1, 1) = '\x28' LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED`
	sqlSealProjection = `UPDATE epochs SET projection = $4 WHERE workspace_id = $1 AND lane_id = $2 AND number = $3`
	sqlOpenSummaries  = `SELECT lane_id, number, covers, chain, text FROM summaries
		WHERE workspace_id = $1 AND text <> '' AND sealed IS NULL LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED`
	sqlSealSummary = `UPDATE summaries SET text = '', sealed = $4 WHERE workspace_id = $1 AND lane_id = $2 AND number = $3`
)

// sealBatch bounds what one transaction seals.
const sealBatch = 64

// Seal seals the projections and summaries of a workspace that were stored before
// there were keys, and returns how many. It may be run again at any time, and by
// several processes at once.
func (s *Store) Seal(ctx context.Context, workspace uuid.UUID) (int, error) {
	key, err := s.key(ctx, workspace)
	if err != nil || key == nil {
		return 0, err
	}
	total := 0
	for {
		sealed := 0
		err := s.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
			projections, err := sealProjections(tx, key, workspace)
			if err != nil {
				return err
			}
			summaries, err := sealSummaries(tx, key, workspace)
			sealed = projections + summaries
			return err
		})
		if err != nil {
			return total, fmt.Errorf("seal workspace %s: %w", workspace, err)
		}
		if total += sealed; sealed == 0 {
			return total, nil
		}
	}
}

func sealProjections(tx *gorm.DB, key *archive.Key, workspace uuid.UUID) (int, error) {
	rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, sqlOpenProjections, workspace, sealBatch)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var open []storedProjection
	for rows.Next() {
		var one storedProjection
		if err := rows.Scan(&one.lane, &one.number, &one.packed); err != nil {
			return 0, err
		}
		open = append(open, one)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
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

func sealSummaries(tx *gorm.DB, key *archive.Key, workspace uuid.UUID) (int, error) {
	type openSummary struct {
		lane           uuid.UUID
		number, covers int
		chain          []byte
		text           string
	}
	rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, sqlOpenSummaries, workspace, sealBatch)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var open []openSummary
	for rows.Next() {
		var one openSummary
		if err := rows.Scan(&one.lane, &one.number, &one.covers, &one.chain, &one.text); err != nil {
			return 0, err
		}
		open = append(open, one)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
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
