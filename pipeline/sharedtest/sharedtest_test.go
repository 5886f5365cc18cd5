package sharedtest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"palimpsest/pipeline/sharedtest"
)

// watched notes how a test ends.
type watched struct {
	testing.TB

	skipped, failed string
}

func (*watched) Helper() {}

func (w *watched) Skipf(format string, values ...any) {
	w.skipped = fmt.Sprintf(format, values...)
	runtime.Goexit()
}

func (w *watched) Fatalf(format string, values ...any) {
	w.failed = fmt.Sprintf(format, values...)
	runtime.Goexit()
}

// end runs a test until it ends.
func end(test func(t testing.TB)) *watched {
	w, done := &watched{}, make(chan struct{})
	go func() {
		defer close(done)
		test(w)
	}()
	<-done
	return w
}

func TestMissingPartIsSkippedUnlessRequired(t *testing.T) {
	for _, needs := range []func(t testing.TB){
		func(t testing.TB) { t.Helper(); sharedtest.Path(t, "data", "no such folder") },
		func(t testing.TB) { t.Helper(); sharedtest.Files(t, "data/no such folder/*.json") },
	} {
		t.Setenv(sharedtest.Variable, "")
		if w := end(needs); w.failed != "" || !strings.Contains(w.skipped, "no such folder") {
			t.Errorf("by default: skipped %q, failed %q", w.skipped, w.failed)
		}
		t.Setenv(sharedtest.Variable, sharedtest.Required)
		if w := end(needs); w.skipped != "" || !strings.Contains(w.failed, "no such folder") {
			t.Errorf("required: skipped %q, failed %q", w.skipped, w.failed)
		}
		t.Setenv(sharedtest.Variable, "yes")
		if w := end(needs); w.skipped != "" || !strings.Contains(w.failed, `set it to "required"`) {
			t.Errorf("with another value: skipped %q, failed %q", w.skipped, w.failed)
		}
	}
}

func TestPartsOfSharedAreFound(t *testing.T) {
	t.Parallel()
	if path := sharedtest.Path(t, "data"); !strings.HasSuffix(path, "/shared/data") {
		t.Errorf("path %s", path)
	}
	for _, file := range sharedtest.Files(t, "data/transcripts/*.anthropic.json") {
		if !strings.HasSuffix(file, ".anthropic.json") {
			t.Errorf("file %s", file)
		}
	}
}
