package localcache_test

import (
	"testing"

	"palimpsest/pipeline/localcache"
)

func TestChangesKeepOnlyValuesReadAfterTheLatest(t *testing.T) {
	t.Parallel()
	var changes localcache.Changes
	before := changes.Count()
	var heard uint64
	changes.Heard(func(count uint64) { heard = count })
	after := changes.Count()
	for since, want := range map[uint64]bool{before: false, after: true} {
		kept := false
		if changes.Keep(since, func() { kept = true }); kept != want {
			t.Errorf("since %d of %d: kept %t", since, after, kept)
		}
	}
	if heard != after {
		t.Errorf("the change has number %d, want %d", heard, after)
	}
}
