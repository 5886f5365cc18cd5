package wiretest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Fuzz gives a format arbitrary input. It must not panic, must write unchanged messages byte for byte, and
// changed ones as valid JSON.
func Fuzz(f *testing.F, codec wire.Codec, samples Samples) {
	f.Helper()
	for _, sample := range samples.Messages {
		f.Add([]byte(sample.Raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
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

// FuzzAnswers gives a format's tap arbitrary answers in arbitrary chunks. It must not panic, and the chunks
// must not change the result. The bytes of cuts plus one are the chunk lengths.
func FuzzAnswers(f *testing.F, codec wire.Codec, samples Samples) {
	f.Helper()
	for i, sample := range samples.Answers {
		f.Add([]byte(sample.Stream), []byte{byte(i), byte(7 * i)})
		f.Add([]byte(sample.Body), []byte{byte(i)})
	}
	f.Fuzz(func(t *testing.T, text, cuts []byte) {
		for _, stream := range []bool{true, false} {
			whole := tapped(codec, stream, string(text))
			var chunks []string
			rest := string(text)
			for i := 0; rest != "" && len(cuts) > 0; i++ {
				size := min(len(rest), int(cuts[i%len(cuts)])+1)
				chunks, rest = append(chunks, rest[:size]), rest[size:]
			}
			if got := tapped(codec, stream, append(chunks, rest)...); !reflect.DeepEqual(got, whole) {
				t.Fatalf("stream %v, cut %q:\n got %s\nwant %s", stream, chunks, show(got), show(whole))
			}
		}
	})
}
