package sessiondb

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// C1
func TestEveryProjectionUnpacksToWhatWasPacked(t *testing.T) {
	t.Parallel()
	packer := newPacker()
	rapid.Check(t, func(t *rapid.T) {
		want := drawProjection(t)
		packed, err := packer.pack(want)
		if err != nil {
			t.Fatal(err)
		}
		again, err := packer.pack(want)
		if err != nil || !bytes.Equal(packed, again) {
			t.Fatalf("the same projection packs differently, %v", err)
		}
		got, err := packer.unpack(packed)
		if err != nil {
			t.Fatal(err)
		}
		if !got.At.Equal(want.At) {
			t.Fatalf("at %v, want %v", got.At, want.At)
		}
		got.At = want.At
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func drawProjection(t *rapid.T) session.Projection {
	projection := session.Projection{
		Number: rapid.IntRange(1, 1000).Draw(t, "number"),
		Chain:  conversation.Hash(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "chain")),
		Reason: rapid.String().Draw(t, "reason"),
		Before: rapid.IntRange(0, 1e6).Draw(t, "before"),
		After:  rapid.IntRange(0, 1e6).Draw(t, "after"),
		At:     time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), 123456789).UTC(),
		Parts:  []session.Part{},
	}
	for range rapid.IntRange(0, 8).Draw(t, "parts") {
		part := session.Part{
			From: projection.Covers, To: projection.Covers + rapid.IntRange(1, 9).Draw(t, "messages"),
			Level: rapid.IntRange(0, 3).Draw(t, "level"), Tokens: rapid.IntRange(0, 1e5).Draw(t, "tokens"),
			Messages: rapid.IntRange(0, 9).Draw(t, "rendered"),
		}
		if rapid.Bool().Draw(t, "rewritten") {
			part.Raw = append(json.RawMessage{}, rapid.SliceOf(rapid.Byte()).Draw(t, "raw")...)
		}
		projection.Covers = part.To
		projection.Parts = append(projection.Parts, part)
	}
	return projection
}

func TestABrokenProjectionIsAnError(t *testing.T) {
	t.Parallel()
	packer := newPacker()
	whole, err := packer.pack(session.Projection{Number: 1, Covers: 2, Parts: []session.Part{{To: 2, Raw: json.RawMessage(`{"role":"user"}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := packer.decoder.DecodeAll(whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	broken := map[string][]byte{
		"not zstd":       []byte("{}"),
		"empty":          nil,
		"a byte changed": append(whole[:len(whole)-6:len(whole)-6], append([]byte{whole[len(whole)-6] ^ 1}, whole[len(whole)-5:]...)...),
		"no head":        packer.encoder.EncodeAll([]byte("no line feed"), nil),
		"no JSON":        packer.encoder.EncodeAll([]byte("{\n"), nil),
		"no chain":       packer.encoder.EncodeAll([]byte("{}\n"), nil),
		"cut off":        packer.encoder.EncodeAll(plain[:len(plain)-1], nil),
		"too long":       packer.encoder.EncodeAll(append(bytes.Clone(plain), 'x'), nil),
	}
	for name, packed := range broken {
		if _, err := packer.unpack(packed); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v, want errBroken", name, err)
		}
	}
}
