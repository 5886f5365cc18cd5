package prompt_test

import (
	"testing"

	"palimpsest/pipeline/fulltest"
)

func TestMain(m *testing.M) {
	fulltest.CollectLess()
	m.Run()
}
