package preview_test

import (
	"testing"

	"go.uber.org/goleak"

	"palimpsest/pipeline/fulltest"
)

// S33: no test leaves a goroutine behind.
func TestMain(m *testing.M) {
	fulltest.CollectLess()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/maypok86/otter/v2.periodicCleanUp[...]")) // ends once the cache is collected
}
