package conversation_test

import (
	"testing"

	"palimpsest/pipeline/conversation"
)

func TestCutSplitsNoCharacter(t *testing.T) {
	t.Parallel()
	for bytes, want := range []string{"", "a", "a", "aé", "aé", "aé", "aé€", "aé€"} {
		if got := conversation.Cut("aé€", bytes); got != want {
			t.Errorf("%d bytes: %q, want %q", bytes, got, want)
		}
	}
}
