// Package pages_test tests the pages of the dashboard through the running product. It is one package
// because a test program for each page would link the whole product again.
package pages_test

import (
	"testing"

	"palimpsest/migrations/dbtest"
	"palimpsest/web/browsertest"
)

func TestMain(m *testing.M) { dbtest.Main(m, browsertest.Stop) }
