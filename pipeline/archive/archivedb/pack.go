package archivedb

import (
	"crypto/sha256"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
)

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
