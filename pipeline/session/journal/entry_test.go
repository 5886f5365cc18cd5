package journal

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/klauspost/compress/zstd"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
)

// Entries that were written when messages stood inside the one value are read as well.
func TestEntriesOfEarlierVersionsAreRead(t *testing.T) {
	t.Parallel()
	held := content{Projection: session.Projection{Number: 4, Parts: []session.Part{{Raw: []byte{}}, {From: 1, To: 2}}}, Empty: []int{0}}
	for i := range 3 {
		held.Seen.Entries = append(held.Seen.Entries, archive.Entry{Index: i, Raw: fmt.Appendf(nil, `{"n":%d}`, i), Size: 7})
	}
	var earlier bytes.Buffer
	encoder, err := zstd.NewWriter(&earlier)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(gob.NewEncoder(encoder).Encode(held), encoder.Close()); err != nil {
		t.Fatal(err)
	}
	now, err := pack(held)
	if err != nil {
		t.Fatal(err)
	}
	for name, packed := range map[string][]byte{"earlier": earlier.Bytes(), "now": now} {
		got, err := unpack(packed)
		got.Entries = 0
		if err != nil || !reflect.DeepEqual(got, held) {
			t.Errorf("%s: %+v (%v), want %+v", name, got, err, held)
		}
		if _, err := unpack(packed[:len(packed)-9]); !errors.Is(err, errUnreadable) {
			t.Errorf("%s, cut off: %v", name, err)
		}
	}
}
