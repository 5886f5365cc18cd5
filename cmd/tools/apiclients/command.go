package apiclients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"palimpsest/api/npmtest"
)

// commandTime limits one command of a client. On a busy machine Kilo takes minutes.
const commandTime = 10 * time.Minute

// command is one start of a client.
type command struct {
	program     string
	arguments   []string
	environment []string // in addition to that of every command

	// input is the command's standard input. It ends once the command has printed until.
	input, until string

	// terminal says that the command runs at a terminal, and ends after it has printed until.
	terminal bool
}

// Output is the output of a command and its end.
type Output struct {
	Line string // the command line
	Text string // both streams
	Err  error  // nil if it ended with code 0
}

// run runs a command in the session's work folder with the session's own home. The command's environment
// takes only PATH from this process, preceded by the programs from npm.
func (c command) run(ctx context.Context, s *session) Output {
	limited, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	process := exec.CommandContext(limited, c.program, c.arguments...) //nolint:gosec // a client that we installed
	process.Dir = s.work
	process.Env = append([]string{
		"PATH=" + npmtest.Programs(s.install) + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"HOME=" + s.home,
		"TMPDIR=" + s.temporary,
		"LANG=C.UTF-8",
		"TERM=dumb",
		"PALIMPSEST_KEY=" + s.key,
	}, c.environment...)
	// Kill the client's process group, so that its own programs end with it.
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGKILL) }
	process.WaitDelay = 5 * time.Second
	printed := &transcript{until: c.until}
	process.Stdout, process.Stderr = printed, printed
	if c.input != "" {
		reader, writer := io.Pipe()
		process.Stdin, printed.answered = reader, writer.Close
		go func() { _, _ = io.WriteString(writer, c.input) }() // ends when the command has read it or exited
		defer func() { _ = writer.Close() }()
	}
	err := c.start(process, printed)
	if process.Process != nil {
		_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL) // leftover processes, if any
	}
	if limited.Err() != nil && ctx.Err() == nil {
		err = errors.Join(fmt.Errorf("not done after %s", commandTime), err)
	}

	return Output{Line: c.program + " " + strings.Join(c.arguments, " "), Text: printed.text.String(), Err: err}
}

// start runs a process to its end.
func (c command) start(process *exec.Cmd, printed *transcript) error {
	if c.terminal {
		return runAtTerminal(process, printed)
	}

	return process.Run()
}

// transcript keeps the output of a command and reports when it contains a text.
type transcript struct {
	text     bytes.Buffer
	until    string
	answered func() error // called when until has been printed; optional
}

// Write implements io.Writer.
func (t *transcript) Write(text []byte) (int, error) {
	t.text.Write(text)
	if t.answered != nil && bytes.Contains(t.text.Bytes(), []byte(t.until)) {
		answered := t.answered
		t.answered = nil
		_ = answered() // closing a pipe never fails, and a failure at a terminal fails the test later
	}

	return len(text), nil
}
