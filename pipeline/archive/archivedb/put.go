package archivedb

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/cores"
	"palimpsest/tenants"
)

const (
	// statementBytes bounds the messages of one statement, except the last.
	statementBytes = 16 << 20
	// statementRows also bounds a write statement, because sending more rows at once takes a multiple of
	// their memory.
	statementRows = 4096
	// laterBytes bounds the stored size of messages that wait to be sent with others.
	laterBytes = 1 << 20
	// runObjects is how many messages a core packs at a time.
	runObjects = 8
)

// The statements of a write. The first locks existing objects so that they cannot be deleted before the
// transaction ends. It looks each hash up separately, because otherwise the planner may read the whole
// workspace. Objects marked for deletion count as absent, and the second statement restores them. Rows are
// sorted so that two writers never deadlock.
const (
	sqlKnown = `SELECT known.hash FROM unnest($2::bytea[]) AS wanted (hash)
		CROSS JOIN LATERAL (
			SELECT hash FROM archive_objects WHERE workspace_id = $1 AND hash = wanted.hash AND place <> 2 FOR KEY SHARE
		) known`
	sqlObjects = `INSERT INTO archive_objects (workspace_id, hash, size, encoding, bytes)
		SELECT $1, hash, size, encoding, bytes
		FROM unnest($2::bytea[], $3::int[], $4::smallint[], $5::bytea[]) AS t (hash, size, encoding, bytes)
		ON CONFLICT (workspace_id, hash) DO UPDATE SET encoding = excluded.encoding, bytes = excluded.bytes, place = 0
			WHERE archive_objects.place = 2`
	sqlManifest = `INSERT INTO archive_entries (workspace_id, lane_id, index, session_id, hash, role, tokens, flags)
		SELECT $1, lane_id, index, session_id, hash, role, tokens, flags
		FROM unnest($2::uuid[], $3::int[], $4::uuid[], $5::bytea[], $6::text[], $7::int[], $8::int[])
			AS t (lane_id, index, session_id, hash, role, tokens, flags)
		ON CONFLICT DO NOTHING`
	sqlUnindexed = `INSERT INTO archive_unindexed (workspace_id, lane_id)
		SELECT $1, lane_id FROM unnest($2::uuid[]) AS t (lane_id)
		ON CONFLICT (workspace_id, lane_id) DO UPDATE SET number = archive_unindexed.number + 1`
)

// Run is a run of messages of one lane.
type Run struct {
	Session uuid.UUID
	Lane    uuid.UUID
	Entries []archive.Entry
}

// Put stores messages of one lane inside the caller's transaction for the workspace. Existing objects and
// existing places in the lane stay unchanged. Each entry needs its bytes and their hash.
func (d *DB) Put(tx *gorm.DB, workspace tenants.WorkspaceID, session, lane uuid.UUID, entries []archive.Entry) error {
	runs := []Run{{Session: session, Lane: lane, Entries: entries}}
	if err := d.PutObjects(tx, workspace, runs); err != nil {
		return err
	}
	return d.PutPlaces(tx, workspace, runs)
}

// PutObjects is the part of Put that stores messages: those of several runs, and others without a place in a
// lane, such as answers. It ignores the runs' lanes.
func (d *DB) PutObjects(tx *gorm.DB, workspace tenants.WorkspaceID, runs []Run, others ...[]byte) error {
	var objects []object
	for _, run := range runs {
		for _, entry := range run.Entries {
			objects = append(objects, object{hash: entry.Hash, raw: entry.Raw})
		}
	}
	for _, raw := range others {
		objects = append(objects, object{hash: sha256.Sum256(raw), raw: raw})
	}
	if len(objects) == 0 {
		return nil
	}
	return d.putObjects(tx, workspace, objects)
}

// PutPlaces is the part of Put that stores the places of messages in their lanes, after PutObjects.
func (d *DB) PutPlaces(tx *gorm.DB, workspace tenants.WorkspaceID, runs []Run) error {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return len(r.Entries) == 0 })
	if len(runs) == 0 {
		return nil
	}
	if err := putManifest(tx, workspace, runs); err != nil {
		return err
	}
	return d.extendChains(tx, workspace, lanesOf(runs))
}

// object is a message and the hash it is stored under.
type object struct {
	hash conversation.Hash
	raw  []byte
}

// putObjects stores new objects and skips existing ones.
func (d *DB) putObjects(tx *gorm.DB, workspace tenants.WorkspaceID, objects []object) error {
	slices.SortFunc(objects, func(a, b object) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	objects = slices.CompactFunc(objects, func(a, b object) bool { return a.hash == b.hash })
	key, err := d.keys.Key(tx.Statement.Context, workspace)
	if err != nil {
		return err
	}
	known := make(map[conversation.Hash]bool)
	for some := range slices.Chunk(objects, statementRows) {
		if err := addKnown(tx, workspace, some, known); err != nil {
			return fmt.Errorf("look up archived messages: %w", err)
		}
	}
	fresh := slices.DeleteFunc(objects, func(one object) bool { return known[one.hash] })
	for len(fresh) > 0 {
		count, size := 0, 0
		for count < min(len(fresh), statementRows) && size < statementBytes {
			size += len(fresh[count].raw)
			count++
		}
		rows, err := d.pack(key, fresh[:count])
		if err != nil {
			return err
		}
		if err := rows.insert(tx, workspace); err != nil {
			return err
		}
		fresh = fresh[count:]
	}
	return nil
}

// pack returns the rows of objects. It uses all cores for many objects, because others may wait for rows that
// the transaction has already written.
func (d *DB) pack(key *archive.Key, objects []object) (objectRows, error) {
	rows := newObjectRows(len(objects))
	err := cores.Each(len(objects), runObjects, func(i int) error {
		one := &objects[i]
		if sha256.Sum256(one.raw) != one.hash {
			return fmt.Errorf("archive message %x: %w", one.hash[:6], archive.ErrDamaged)
		}
		form, stored := d.packer.pack(one.raw)
		form, stored = seal(key, form, stored, one.hash)
		rows.set(i, one, form, stored)
		return nil
	})
	return rows, err
}

// addKnown adds the hashes of stored objects to known, and locks them.
func addKnown(tx *gorm.DB, workspace tenants.WorkspaceID, objects []object, known map[conversation.Hash]bool) error {
	hashes := make([][]byte, len(objects))
	for i := range objects {
		hashes[i] = objects[i].hash[:]
	}
	return batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var hash []byte
		if err := row.Scan(&hash); err != nil {
			return err
		}
		known[conversation.Hash(hash)] = true
		return nil
	}, sqlKnown, workspace, hashes)
}

// objectRows are rows for archive_objects, column by column.
type objectRows struct {
	hashes    [][]byte
	sizes     []int32
	encodings []int16
	stored    [][]byte
}

func newObjectRows(count int) objectRows {
	return objectRows{
		hashes: make([][]byte, count), sizes: make([]int32, count), encodings: make([]int16, count), stored: make([][]byte, count),
	}
}

func (r *objectRows) set(i int, one *object, form encoding, stored []byte) {
	r.hashes[i], r.stored[i] = one.hash[:], stored
	r.sizes[i], r.encodings[i] = int32(len(one.raw)), int16(form) //nolint:gosec // a message is bounded by the body it came in
}

func (r *objectRows) insert(tx *gorm.DB, workspace tenants.WorkspaceID) error {
	size := 0
	for _, stored := range r.stored {
		size += len(stored)
	}
	if size < laterBytes {
		return batchdb.Later(tx, sqlObjects, workspace, r.hashes, r.sizes, r.encodings, r.stored)
	}
	_, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, sqlObjects,
		workspace, r.hashes, r.sizes, r.encodings, r.stored)
	return batchdb.Wrapf(err, "store archived messages")
}

// putManifest stores the places of messages in their lanes.
func putManifest(tx *gorm.DB, workspace tenants.WorkspaceID, runs []Run) error {
	slices.SortStableFunc(runs, func(a, b Run) int { return bytes.Compare(a.Lane[:], b.Lane[:]) })
	var rows entryRows
	for _, run := range runs {
		for i := range run.Entries {
			rows.add(&run, &run.Entries[i])
			if len(rows.indices) < statementRows {
				continue
			}
			if err := rows.insert(tx, workspace); err != nil {
				return err
			}
			rows = entryRows{}
		}
	}
	if err := rows.insert(tx, workspace); err != nil {
		return err
	}
	return batchdb.Later(tx, sqlUnindexed, workspace, lanesOf(runs))
}

// entryRows are rows for archive_entries, column by column.
type entryRows struct {
	lanes, sessions        [][16]byte // encoded faster than uuid.UUID
	indices, tokens, flags []int32
	hashes                 [][]byte
	roles                  []string
}

func (r *entryRows) add(run *Run, entry *archive.Entry) {
	r.lanes, r.sessions = append(r.lanes, run.Lane), append(r.sessions, run.Session)
	r.indices = append(r.indices, int32(entry.Index)) //nolint:gosec // a place in one body
	r.tokens = append(r.tokens, int32(entry.Tokens))  //nolint:gosec // tokens of one message
	r.hashes = append(r.hashes, entry.Hash[:])
	r.roles, r.flags = append(r.roles, string(entry.Role)), append(r.flags, int32(entry.Flags))
}

func (r *entryRows) insert(tx *gorm.DB, workspace tenants.WorkspaceID) error {
	if len(r.indices) == 0 {
		return nil
	}
	if len(r.indices) < statementRows {
		return batchdb.Later(tx, sqlManifest, workspace, r.lanes, r.indices, r.sessions, r.hashes, r.roles, r.tokens, r.flags)
	}
	// A long history is sent in parts, because together they would take a multiple of their memory.
	_, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, sqlManifest,
		workspace, r.lanes, r.indices, r.sessions, r.hashes, r.roles, r.tokens, r.flags)
	return batchdb.Wrapf(err, "store archive manifest")
}

// encoding is the form in which an object's bytes are stored. The values, combined with sealed, are stored in
// the database.
type encoding int16

const (
	plain encoding = 0
	zstd1 encoding = 1
)

const (
	// smallest is the size in bytes below which compression only adds a header.
	smallest = 64
	// maxUnpacked bounds the unpacked size of one object, in bytes.
	maxUnpacked = 64 << 20
)

// packer compresses messages, and unpacks and verifies them. It is safe for concurrent use.
type packer struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newPacker() packer {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(fmt.Sprintf("archivedb: zstd encoder: %v", err))
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxUnpacked), zstd.WithDecoderConcurrency(0))
	if err != nil {
		panic(fmt.Sprintf("archivedb: zstd decoder: %v", err))
	}
	return packer{encoder: encoder, decoder: decoder}
}

// pack returns a message in its stored form: compressed if that makes it smaller.
func (p packer) pack(raw []byte) (encoding, []byte) {
	if len(raw) < smallest {
		return plain, raw
	}
	packed := p.encoder.EncodeAll(raw, make([]byte, 0, len(raw)/2))
	if len(packed) >= len(raw) {
		return plain, raw
	}
	return zstd1, packed
}

// unpack returns the stored message, verified by its hash.
func (p packer) unpack(form encoding, stored []byte, hash conversation.Hash, size int) ([]byte, error) {
	raw := stored
	switch form {
	case plain: // stored uncompressed
	case zstd1:
		unpacked, err := p.decoder.DecodeAll(stored, make([]byte, 0, size))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", archive.ErrDamaged, err)
		}
		raw = unpacked
	default:
		return nil, fmt.Errorf("%w: unknown encoding %d", archive.ErrDamaged, form)
	}
	if sha256.Sum256(raw) != hash {
		return nil, archive.ErrDamaged
	}
	return raw, nil
}

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
