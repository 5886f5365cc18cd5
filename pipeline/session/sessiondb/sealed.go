package sessiondb

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// sealedFormat is the first byte of a sealed projection or plan.
const sealedFormat = 1

// storedProjection is a projection stored with its lane.
type storedProjection struct {
	lane   uuid.UUID
	number int
	packed []byte
}

func projectionsOf(tx *gorm.DB, statement string, workspace tenants.WorkspaceID, lane uuid.UUID) ([]storedProjection, error) {
	return batchdb.Rows(tx, func(row pgx.CollectableRow) (one storedProjection, err error) {
		err = row.Scan(&one.lane, &one.number, &one.packed)
		return one, err
	}, statement, workspace, lane)
}

// sealPacked seals a packed projection.
func sealPacked(key *archive.Key, about, packed []byte) []byte {
	return append([]byte{sealedFormat}, key.Seal(about, packed)...)
}

// open returns the projection that was stored.
func (c *core) open(key *archive.Key, stored storedProjection) (session.Projection, error) {
	return c.openPacked(key, aboutProjection(stored.lane, stored.number), stored.packed)
}

// openPacked is open for a projection that belongs to no epoch yet.
func (c *core) openPacked(key *archive.Key, about, packed []byte) (session.Projection, error) {
	if len(packed) == 0 || packed[0] != sealedFormat {
		return session.Projection{}, fmt.Errorf("%w: its format is unknown", errBroken)
	}
	packed, err := key.Open(about, packed[1:])
	if err != nil {
		return session.Projection{}, fmt.Errorf("%w: %w", errBroken, err)
	}
	return c.packer.unpack(packed)
}

// aboutProjection is the associated data of a sealed projection, besides its workspace.
func aboutProjection(lane uuid.UUID, number int) []byte {
	about := append([]byte("projection "), lane[:]...)
	return binary.BigEndian.AppendUint64(about, uint64(number)) //nolint:gosec // epochs of a lane
}

// aboutSummary is the associated data of a sealed summary, besides its workspace.
func aboutSummary(lane uuid.UUID, covers int, chain []byte) []byte {
	about := append([]byte("summary "), lane[:]...)
	about = binary.BigEndian.AppendUint64(about, uint64(covers)) //nolint:gosec // messages of a lane
	return append(about, chain...)
}

// aboutPlan is the associated data of a sealed plan, besides its workspace.
func aboutPlan(lane uuid.UUID, settings []byte) []byte {
	return append(append([]byte("plan "), lane[:]...), settings...)
}

// aboutInsert is the associated data of a sealed insert, besides its workspace.
func aboutInsert(lane uuid.UUID, number int) []byte {
	about := append([]byte("insert "), lane[:]...)
	return binary.BigEndian.AppendUint64(about, uint64(number)) //nolint:gosec // inserts of a lane
}

// sealInsert seals an insert's content: its items, as JSON in one line, and its text.
func sealInsert(key *archive.Key, lane uuid.UUID, insert session.Insert) ([]byte, error) {
	said, err := json.Marshal(insert.Items)
	if err != nil {
		return nil, fmt.Errorf("items of insert %d: %w", insert.Number, err)
	}
	said = append(append(said, '\n'), insert.Text...)
	return key.Seal(aboutInsert(lane, insert.Number), said), nil
}

// openInsert sets the text and the items of a lane's sealed insert.
func openInsert(key *archive.Key, lane uuid.UUID, insert *session.Insert, sealed []byte) error {
	said, err := key.Open(aboutInsert(lane, insert.Number), sealed)
	if err != nil {
		return fmt.Errorf("insert %d of lane %s: %w", insert.Number, lane, err)
	}
	items, text, _ := bytes.Cut(said, []byte{'\n'})
	insert.Text = string(text)
	if err := json.Unmarshal(items, &insert.Items); err != nil {
		return fmt.Errorf("items of insert %d: %w", insert.Number, err)
	}
	return nil
}
