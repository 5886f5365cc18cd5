package ledger_test

import (
	"testing"

	"palimpsest/pipeline/ledger"
)

// D5: what a summary does not hold.
func TestMissingIsWhatATextDoesNotHold(t *testing.T) {
	t.Parallel()
	kept := everything().ledger()
	if missing := kept.Missing(kept.Text(1000, words)); !missing.Empty() {
		t.Errorf("the ledger's own text misses %+v", missing)
	}
	missing := kept.Missing("")
	if len(missing.Directives) != 3 || len(missing.Modified) != 2 || len(missing.Errors) != 1 || len(missing.Decisions) != 1 || missing.Empty() {
		t.Errorf("an empty text misses %+v", missing)
	}

	missing = kept.Missing(`The user said never  touch
vendor/ by hand. Changed: p/a.go. "go test ./a" still fails.
The resolver's cache was missing a lock, which was the issue.`)
	if len(missing.Directives) != 2 || missing.Directives[0].Text != "Always run gofmt." || missing.Directives[1].Kind != ledger.Plan {
		t.Errorf("directives %+v", missing.Directives)
	}
	if len(missing.Modified) != 1 || missing.Modified[0].Path != "/p/b.go" {
		t.Errorf("modified %+v", missing.Modified)
	}
	if len(missing.Errors)+len(missing.Decisions) > 0 {
		t.Errorf("errors %+v, decisions %+v", missing.Errors, missing.Decisions)
	}
}

func TestSolvedErrorsAndDeletedFilesAreNotMissed(t *testing.T) {
	t.Parallel()
	var c talk
	kept := c.user("Go.").call("Write", object("file_path", "/p/a.go", "content", "x"), "ok").bash("rm /p/a.go", "").
		bash("go test ./a", "Exit code 1\nFAIL").bash("go test ./a", "ok").ledger()
	if missing := kept.Missing("nothing"); !missing.Empty() {
		t.Errorf("%+v", missing)
	}
}

func TestAFileIsNamedByTheEndOfItsPath(t *testing.T) {
	t.Parallel()
	var c talk
	kept := c.user("Go.").
		call("Write", object("file_path", "/home/dev/p/cmd/app/main.go", "content", "x"), "ok").
		call("Write", object("file_path", "/home/dev/p/cmd/tool/main.go", "content", "x"), "ok").
		call("Write", object("file_path", "/home/dev/p/parser.go", "content", "x"), "ok").ledger()
	for text, want := range map[string]int{
		"/home/dev/p/cmd/app/main.go, ./cmd/tool/main.go, `parser.go`":      0,
		"app/main.go and tool/main.go; (p/parser.go).":                      0,
		"main.go and parser.go":                                             2, // two are called main.go
		"cmd/app/main.go only":                                              2,
		"xapp/main.go, myparser.go, parser.gohtml, parser.go.bak, parser":   3,
		"/elsewhere/cmd/app/main.go":                                        3,
		"home/dev/p/cmd/app/main.go, home/dev/p/cmd/tool/main.go parser.go": 0,
	} {
		if got := len(kept.Missing(text).Modified); got != want {
			t.Errorf("%q misses %d, want %d", text, got, want)
		}
	}
}
