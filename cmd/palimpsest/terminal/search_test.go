package terminal

import (
	"bytes"
	"strings"
	"testing"
)

func TestTailSaysHowToUndoACompaction(t *testing.T) {
	t.Parallel()
	for compression, compacts := range map[string]bool{"none": false, "frozen": false, "bypassed": false, "unreachable": false, "epoch": true, "emergency": true, "truncated": true} {
		var out bytes.Buffer
		app := &App{Out: &out}
		if err := app.printRequest(requestJSON{Session: "s1", Compression: compression, Before: 142_000, After: 31_000}, false); err != nil {
			t.Fatal(err)
		}
		want := "\n          142k → 31k tokens, originals kept, undo: palimpsest sessions undo s1\n"
		if said := out.String(); strings.HasSuffix(said, want) != compacts {
			t.Errorf("%s: it says %q", compression, said)
		}
		out.Reset()
		if err := app.printRequest(requestJSON{Compression: compression}, true); err != nil || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s: as JSON it says %q, %v", compression, out.String(), err)
		}
	}
}
