package buildtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"palimpsest/cmd/palimpsest/buildtest"
)

// watched notes why a test ended.
type watched struct {
	testing.TB

	failed string
}

func (*watched) Helper() {}

func (w *watched) Fatalf(format string, values ...any) {
	w.failed = fmt.Sprintf(format, values...)
	runtime.Goexit()
}

func TestProgramsThatAreBuiltAreTakenFromTheirFolder(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(buildtest.Folder, folder)
	made := filepath.Join(folder, "palimpsest")
	if err := os.WriteFile(made, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if path := buildtest.Palimpsest(t); path != made {
		t.Errorf("path %s", path)
	}

	w, done := &watched{}, make(chan struct{})
	go func() {
		defer close(done)
		buildtest.Versitygw(w)
	}()
	<-done
	if !strings.Contains(w.failed, "make test-programs") {
		t.Errorf("without the program: %q", w.failed)
	}
}
