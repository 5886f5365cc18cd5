// Package walks_test walks through the dashboard with a real browser. It is apart from
// the other tests of web, which need none, so that both run at once.
package walks_test

import (
	"testing"

	"palimpsest/migrations/dbtest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

const (
	window     = webtest.Window
	claudeCode = webtest.ClaudeCode
)

func TestMain(m *testing.M) { dbtest.Main(m, browsertest.Stop) }
