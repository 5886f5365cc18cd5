package programtest

import (
	"strings"
	"testing"
)

func TestProgramIsFoundByTheAddressThatItLogs(t *testing.T) {
	t.Parallel()

	const script = `echo starting
		echo 'level=INFO msg="admin listening" addr=127.0.0.1:9090' >&2
		echo 'level=INFO msg=listening addr=127.0.0.1:4711' >&2
		exec sleep 60`
	program, err := Start(t.Context(), "/bin/sh", []string{"-c", script}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if program.URL != "http://127.0.0.1:4711" || program.PID() == 0 {
		t.Errorf("URL %s, PID %d", program.URL, program.PID())
	}
	if program.Admin != "http://127.0.0.1:9090" {
		t.Errorf("admin address %s", program.Admin)
	}
	if err := program.Stop(); err != nil {
		t.Error(err)
	}
}

func TestProgramThatEndsEarlyIsQuoted(t *testing.T) {
	t.Parallel()

	_, err := Start(t.Context(), "/bin/sh", []string{"-c", "echo PALIMPSEST_ADDR: wrong >&2; exit 1"}, nil)
	if err == nil || !strings.Contains(err.Error(), "PALIMPSEST_ADDR: wrong") {
		t.Errorf("error %v", err)
	}
}

func TestProgramThatWasNotStartedHasNoProcess(t *testing.T) {
	t.Parallel()

	if pid := (&Program{URL: "http://127.0.0.1:1"}).PID(); pid != 0 {
		t.Errorf("PID %d", pid)
	}
}
