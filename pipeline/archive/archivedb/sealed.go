package archivedb

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// sealed is added to an encoding if the encoded bytes are sealed. All stored ones are.
const sealed encoding = 2

// Prepare opens the key of a workspace. Call it before a transaction that stores or reads messages, so that
// no transaction waits for another.
func (d *DB) Prepare(ctx context.Context, workspace tenants.WorkspaceID) error {
	_, err := d.keys.Key(ctx, workspace)
	return err
}

// seal seals a packed message.
func seal(key *archive.Key, form encoding, packed []byte, hash conversation.Hash) (encoding, []byte) {
	form |= sealed
	return form, key.Seal(objectAbout(form, hash), packed)
}

// restore returns the stored message, opened and verified by its hash.
func (p packer) restore(key *archive.Key, form encoding, stored []byte, hash conversation.Hash, size int) ([]byte, error) {
	packed, err := key.Open(objectAbout(form, hash), stored)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", archive.ErrDamaged, err)
	}
	return p.unpack(form&^sealed, packed, hash, size)
}

// objectAbout is the associated data of a sealed message, besides its workspace.
func objectAbout(form encoding, hash conversation.Hash) []byte {
	return append(append([]byte("object "), byte(form)), hash[:]...) //nolint:gosec // 2 and 3
}

// segmentName returns the name of a segment in a bucket. It contains a keyed hash, so that the database alone
// does not reveal which object it is.
func segmentName(key *archive.Key, workspace tenants.WorkspaceID, id uuid.UUID) string {
	return workspace.String() + "/" + hex.EncodeToString(key.Proof(append([]byte("segment name "), id[:]...)))
}
