package inspection

import (
	"testing"

	"palimpsest/migrations/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }
