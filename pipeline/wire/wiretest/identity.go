package wiretest

import (
	"bytes"
	"encoding/json"
	"testing"

	"palimpsest/pipeline/wire"
)

// C5.
func testSame(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	for _, sample := range samples.Same {
		first := normalize(t, codec, sample.Raw[0])
		for _, raw := range sample.Raw[1:] {
			if other := normalize(t, codec, raw); !bytes.Equal(first, other) {
				t.Errorf("%s: %q and %q", sample.Name, first, other)
			}
		}
	}
}

// C5: another order of keys, other escapes, no white space.
func testSpelling(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	for _, sample := range samples.Messages {
		var value any
		decoder := json.NewDecoder(bytes.NewReader([]byte(sample.Raw)))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil {
			t.Fatalf("%s: %v", sample.Name, err)
		}
		respelt, err := json.Marshal(value)
		if err != nil {
			t.Fatalf("%s: %v", sample.Name, err)
		}
		one, other := normalize(t, codec, sample.Raw), normalize(t, codec, string(respelt))
		if !bytes.Equal(one, other) {
			t.Errorf("%s: %q and %q", sample.Name, one, other)
		}
	}
}

func testDistinct(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	seen := map[string]string{}
	for _, raw := range samples.Distinct {
		message := parse(t, codec, raw)
		key := string(message.Role) + string(codec.Normalize(message))
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s count as the same", other, raw)
		}
		seen[key] = raw
	}
}

func normalize(t *testing.T, codec wire.Codec, raw string) []byte {
	t.Helper()
	return codec.Normalize(parse(t, codec, raw))
}
