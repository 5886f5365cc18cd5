package offline

import "testing"

func TestTextOfAManualPageIsNoMacro(t *testing.T) {
	t.Parallel()
	if got, want := roff(".a\n'b\nc\\d-e…"), "\\&.a\n\\&'b\nc\\ed\\-e\\[u2026]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
