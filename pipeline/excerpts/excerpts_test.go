package excerpts_test

import (
	"strconv"
	"testing"

	"palimpsest/pipeline/excerpts"
)

func TestBytesSplitsNoCharacter(t *testing.T) {
	t.Parallel()
	for bytes, want := range []string{"", "a", "a", "aé", "aé", "aé", "aé€", "aé€"} {
		if got := excerpts.Bytes("aé€", bytes); got != want {
			t.Errorf("%d bytes: %q, want %q", bytes, got, want)
		}
	}
}

func TestExcerptsCountCharacters(t *testing.T) {
	t.Parallel()
	for characters, want := range []struct{ first, start, ends string }{
		{"", "…", "[4]"}, {"a", "…", "[3]€"}, {"aé", "a…", "a[2]€"}, {"aéb", "aé…", "aé[1]€"}, {"aéb€", "aéb€", "aéb€"}, {"aéb€", "aéb€", "aéb€"},
	} {
		gap := func(left int) string { return "[" + strconv.Itoa(left) + "]" }
		if got := excerpts.First("aéb€", characters); got != want.first {
			t.Errorf("the first %d: %q, want %q", characters, got, want.first)
		}
		if got := excerpts.Start("aéb€", characters); got != want.start {
			t.Errorf("the start of %d: %q, want %q", characters, got, want.start)
		}
		if got := excerpts.Ends("aéb€", characters, gap); got != want.ends {
			t.Errorf("the ends of %d: %q, want %q", characters, got, want.ends)
		}
	}
}
