package sessiondb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// sealedProjection begins a stored projection that is sealed. One that is not
// begins with zstd's magic number, 28 b5 2f fd.
const sealedProjection = 1

// errNoKey says that text is sealed and this process was given no keys.
var errNoKey = errors.New("the text is sealed, and no keys are set")

// WithKeys returns the store that seals messages, projections, plans, summaries and
// inserts under the key of their workspace. What was stored before can still be read.
func (s *Store) WithKeys(keys *archive.Keys) *Store {
	sealing := *s.core
	sealing.archive, sealing.keys = s.archive.WithKeys(keys), keys
	return &Store{&sealing}
}

// key returns the key of a workspace; nil where nothing is sealed. It is asked for
// before a transaction begins, so that none waits for another.
func (c *core) key(ctx context.Context, workspace tenants.WorkspaceID) (*archive.Key, error) {
	if c.keys == nil {
		return nil, nil //nolint:nilnil // a store without keys seals nothing
	}
	return c.keys.Key(ctx, workspace)
}

// storedProjection is a projection as it is stored with its lane.
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

// sealProjection seals a packed projection, if there is a key.
func sealProjection(key *archive.Key, lane uuid.UUID, number int, packed []byte) []byte {
	return sealPacked(key, aboutProjection(lane, number), packed)
}

// sealPacked is sealProjection for a projection that belongs to no epoch yet.
func sealPacked(key *archive.Key, about, packed []byte) []byte {
	if key == nil {
		return packed
	}
	return append([]byte{sealedProjection}, key.Seal(about, packed)...)
}

// open returns the projection that was stored, sealed or not.
func (c *core) open(key *archive.Key, stored storedProjection) (session.Projection, error) {
	return c.openPacked(key, aboutProjection(stored.lane, stored.number), stored.packed)
}

// openPacked is open for a projection that belongs to no epoch yet.
func (c *core) openPacked(key *archive.Key, about, packed []byte) (session.Projection, error) {
	if len(packed) > 0 && packed[0] == sealedProjection {
		var err error
		if packed, err = openText(key, about, packed[1:]); err != nil {
			return session.Projection{}, fmt.Errorf("%w: %w", errBroken, err)
		}
	}
	return c.packer.unpack(packed)
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

// aboutPlan is what a sealed plan is bound to, beside its workspace.
func aboutPlan(lane uuid.UUID, settings []byte) []byte {
	return append(append([]byte("plan "), lane[:]...), settings...)
}

// aboutInsert is what a sealed insert is bound to, beside its workspace.
func aboutInsert(lane uuid.UUID, number int) []byte {
	about := append([]byte("insert "), lane[:]...)
	return binary.BigEndian.AppendUint64(about, uint64(number)) //nolint:gosec // inserts of a lane
}

// sealInsert seals what an insert says: its items, JSON in one line, and its text.
func sealInsert(key *archive.Key, lane uuid.UUID, number int, text string, items []byte) []byte {
	said := make([]byte, 0, len(items)+1+len(text))
	said = append(append(append(said, items...), '\n'), text...)
	return key.Seal(aboutInsert(lane, number), said)
}

// openInsert returns the text and the items, as JSON, of an insert that is sealed.
func openInsert(key *archive.Key, lane uuid.UUID, number int, sealed []byte) (text string, items []byte, err error) {
	said, err := openText(key, aboutInsert(lane, number), sealed)
	if err != nil {
		return "", nil, err
	}
	items, rest, _ := bytes.Cut(said, []byte{'\n'})
	return string(rest), items, nil
}
