package wiretest

import (
	"bytes"
	"encoding/json"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Fuzz feeds a format with anything: it must not panic, must write unchanged
// messages as they came and changed ones as JSON.
func Fuzz(f *testing.F, codec wire.Codec, samples Samples) {
	f.Helper()
	for _, sample := range samples.Messages {
		f.Add([]byte(sample.Raw))
	}
	for _, sample := range samples.Answers {
		f.Add([]byte(sample.Stream))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, stream := range []bool{true, false} {
			tap := codec.Tap(stream)
			_, _ = tap.Write(raw)
			tap.Answer()
		}
		message, err := codec.Parse(raw)
		if err != nil {
			return
		}
		codec.Normalize(message)
		if encoded, err := codec.Encode(message); err != nil || !bytes.Equal(encoded, raw) {
			t.Fatalf("unchanged, but %v: %q", err, encoded)
		}
		if !json.Valid(raw) {
			return
		}
		for _, ttl := range []string{"", "5m", "1h"} {
			if marked := codec.Mark(raw, ttl); !json.Valid(marked) {
				t.Fatalf("marked %q: %q", ttl, marked)
			}
		}
		checkChanges(t, codec, message)
	})
}

// checkChanges changes each block and reads the message again.
func checkChanges(t *testing.T, codec wire.Codec, message conversation.Message) {
	t.Helper()
	for i := range message.Blocks {
		changed := message
		changed.Replace(i, "short")
		encoded, err := codec.Encode(changed)
		if err != nil {
			continue
		}
		if !json.Valid(encoded) {
			t.Fatalf("block %d changed: %q", i, encoded)
		}
		if _, err := codec.Parse(encoded); err != nil {
			t.Fatalf("block %d changed: %v in %q", i, err, encoded)
		}
	}
}
