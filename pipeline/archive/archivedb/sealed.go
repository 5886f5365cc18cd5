package archivedb

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// sealed, added to an encoding, says that the bytes were sealed after it.
const sealed encoding = 2

// errNoKey says that bytes are sealed and this process was given no keys.
var errNoKey = errors.New("the bytes are sealed, and no keys are set")

// WithKeys returns the archive that seals what it stores under the key of its
// workspace. What was stored before without being sealed can still be read.
func (d *DB) WithKeys(keys *archive.Keys) *DB {
	return &DB{door: d.door, packer: d.packer, bucket: d.bucket, keys: keys}
}

// Prepare opens the key of a workspace. Who is about to store or read inside a
// transaction calls it first, so that no transaction waits for another.
func (d *DB) Prepare(ctx context.Context, workspace tenants.WorkspaceID) error {
	_, err := keyOf(ctx, d.keys, workspace)
	return err
}

// keyOf returns the key of a workspace; nil where nothing is sealed.
func keyOf(ctx context.Context, keys *archive.Keys, workspace tenants.WorkspaceID) (*archive.Key, error) {
	if keys == nil {
		return nil, nil //nolint:nilnil // an archive without keys seals nothing
	}
	return keys.Key(ctx, workspace)
}

// seal seals a packed message, if there is a key.
func seal(key *archive.Key, form encoding, packed []byte, hash conversation.Hash) (encoding, []byte) {
	if key == nil {
		return form, packed
	}
	form |= sealed
	return form, key.Seal(objectAbout(form, hash), packed)
}

// restore returns the message that was stored, opened and proven by its hash.
func (p packer) restore(key *archive.Key, form encoding, stored []byte, hash conversation.Hash, size int) ([]byte, error) {
	if form&sealed == 0 {
		return p.unpack(form, stored, hash, size)
	}
	if key == nil {
		return nil, errNoKey
	}
	packed, err := key.Open(objectAbout(form, hash), stored)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", archive.ErrDamaged, err)
	}
	return p.unpack(form&^sealed, packed, hash, size)
}

// objectAbout is what a sealed message is bound to, beside its workspace.
func objectAbout(form encoding, hash conversation.Hash) []byte {
	return append(append([]byte("object "), byte(form)), hash[:]...) //nolint:gosec // 0 to 3
}

// segmentName is what a segment is called in a bucket: with a key, by a keyed hash, so that
// the database alone does not tell which object it is.
func segmentName(key *archive.Key, workspace tenants.WorkspaceID, id uuid.UUID) string {
	name := id[:]
	if key != nil {
		name = key.Proof(append([]byte("segment name "), id[:]...))
	}
	return workspace.String() + "/" + hex.EncodeToString(name)
}
