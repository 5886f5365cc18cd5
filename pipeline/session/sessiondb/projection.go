package sessiondb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// maxProjection bounds the unpacked size of a stored projection, in bytes.
const maxProjection = 256 << 20

// errBroken says that a stored projection cannot be read.
var errBroken = errors.New("stored projection is broken")

// head is the JSON header of a stored projection. A line feed and the rendered bytes of all parts follow,
// without separators. The bytes are kept outside the JSON because they are replayed unchanged and need not be
// valid JSON.
type head struct {
	Number int        `json:"number"`
	Covers int        `json:"covers"`
	Chain  []byte     `json:"chain"`
	Parts  []partHead `json:"parts"`
	Reason string     `json:"reason"`
	Before int        `json:"before"`
	After  int        `json:"after"`
	At     time.Time  `json:"at"`

	Certificate session.Certificate `json:"certificate,omitempty"`
}

type partHead struct {
	From     int `json:"from"`
	To       int `json:"to"`
	Level    int `json:"level"`
	Size     int `json:"size"` // bytes of Raw; -1 if it is nil (the client's own bytes)
	Tokens   int `json:"tokens"`
	Messages int `json:"messages"`
}

// packer encodes and decodes stored projections. It is safe for concurrent use.
type packer struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newPacker() packer {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic(fmt.Sprintf("sessiondb: zstd encoder: %v", err))
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxProjection), zstd.WithDecoderConcurrency(0))
	if err != nil {
		panic(fmt.Sprintf("sessiondb: zstd decoder: %v", err))
	}
	return packer{encoder: encoder, decoder: decoder}
}

func (p packer) pack(projection session.Projection) ([]byte, error) {
	stored := head{
		Number: projection.Number, Covers: projection.Covers, Chain: projection.Chain[:], Reason: projection.Reason,
		Before: projection.Before, After: projection.After, At: projection.At, Certificate: projection.Certificate, Parts: make([]partHead, len(projection.Parts)),
	}
	for i, part := range projection.Parts {
		size := len(part.Raw)
		if part.Raw == nil {
			size = -1
		}
		stored.Parts[i] = partHead{From: part.From, To: part.To, Level: part.Level, Size: size, Tokens: part.Tokens, Messages: part.Messages}
	}
	plain, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("encode projection %d: %w", projection.Number, err)
	}
	plain = append(plain, '\n')
	for _, part := range projection.Parts {
		plain = append(plain, part.Raw...)
	}
	return p.encoder.EncodeAll(plain, nil), nil
}

func (p packer) unpack(packed []byte) (session.Projection, error) {
	plain, err := p.decoder.DecodeAll(packed, nil)
	if err != nil {
		return session.Projection{}, fmt.Errorf("%w: %w", errBroken, err)
	}
	line, rest, found := bytes.Cut(plain, []byte{'\n'})
	if !found {
		return session.Projection{}, fmt.Errorf("%w: no head", errBroken)
	}
	var stored head
	if err := json.Unmarshal(line, &stored); err != nil {
		return session.Projection{}, fmt.Errorf("%w: %w", errBroken, err)
	}
	if len(stored.Chain) != len(conversation.Hash{}) {
		return session.Projection{}, fmt.Errorf("%w: chain of %d bytes", errBroken, len(stored.Chain))
	}
	projection := session.Projection{
		Number: stored.Number, Covers: stored.Covers, Chain: conversation.Hash(stored.Chain), Reason: stored.Reason,
		Before: stored.Before, After: stored.After, At: stored.At, Certificate: stored.Certificate, Parts: make([]session.Part, len(stored.Parts)),
	}
	for i, part := range stored.Parts {
		if part.Size > len(rest) {
			return session.Projection{}, fmt.Errorf("%w: part %d is cut off", errBroken, i)
		}
		projection.Parts[i] = session.Part{From: part.From, To: part.To, Level: part.Level, Tokens: part.Tokens, Messages: part.Messages}
		if part.Size >= 0 {
			projection.Parts[i].Raw = rest[:part.Size:part.Size]
			rest = rest[part.Size:]
		}
	}
	if len(rest) > 0 {
		return session.Projection{}, fmt.Errorf("%w: %d bytes too many", errBroken, len(rest))
	}
	return projection, nil
}
