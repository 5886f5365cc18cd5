package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/cmd/palimpsest/settings"
)

// Who stops the program while it waits for its database asked for nothing wrong.
func TestProgramThatIsStoppedWhileItStartsEndsInOrder(t *testing.T) {
	t.Parallel()
	database, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close() })
	var output bytes.Buffer
	command := exec.Command(buildtest.Palimpsest(t), "serve")
	command.Stdout, command.Stderr = &output, &output
	command.Env = append(os.Environ(), "PALIMPSEST_ADDR=127.0.0.1:0", "PALIMPSEST_ADMIN_ADDR=", "PALIMPSEST_DATA_DIR="+t.TempDir(),
		"DATABASE_URL=postgres://palimpsest:secret@"+database.Addr().String()+"/palimpsest?sslmode=disable")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })

	waiting, err := database.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = waiting.Close() })
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%s", err, output.String())
	}
	if said := output.String(); strings.Contains(said, "cancel") || !strings.Contains(said, "stopped before it was up") {
		t.Errorf("it said:\n%s", said)
	}
}

// What is wrong with a start that nobody stopped is an error as before.
func TestStartThatFailsByItselfIsAnError(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	command := serveCommand(func() (settings.Config, error) {
		config := settings.DefaultConfig()
		config.Serving.Addr = taken.Addr().String()
		return config, nil
	})
	command.SetArgs([]string{})
	command.SilenceErrors, command.SilenceUsage = true, true
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "PALIMPSEST_ADDR: listen tcp") {
		t.Errorf("error %v", err)
	}
}
