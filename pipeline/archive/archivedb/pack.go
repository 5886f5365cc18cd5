package archivedb

import (
	"crypto/sha256"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
)

// encoding says how an object's bytes are stored; the values, and sealed added to
// them, are in the database.
type encoding int16

const (
	plain encoding = 0
	zstd1 encoding = 1
)

const (
	// smallest is the size in bytes below which compression only adds a header.
	smallest = 64
	// maxUnpacked bounds what one object may unpack to, in bytes.
	maxUnpacked = 64 << 20
)

// packer compresses messages and proves them when they come back. It may be used
// by several goroutines at once.
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

// pack returns the form in which a message is stored: compressed where that
// makes it smaller.
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

// unpack returns the message that was stored, proven by its hash.
func (p packer) unpack(form encoding, stored []byte, hash conversation.Hash, size int) ([]byte, error) {
	raw := stored
	switch form {
	case plain: // stored as it is
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
