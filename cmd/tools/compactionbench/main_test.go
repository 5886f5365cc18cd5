package compactionbench_test

import (
	"testing"

	"go.uber.org/goleak"

	"palimpsest/pipeline/fulltest"
)

// S33: no test leaves a goroutine behind.
func TestMain(m *testing.M) {
	fulltest.CollectLess()
	goleak.VerifyTestMain(m)
}
