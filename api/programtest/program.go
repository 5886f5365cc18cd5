// Package programtest starts the real program for measurements and tests that
// run it from outside, and signs workspaces up in it the way a script would.
package programtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// startTime bounds the time until a program listens. The first start makes a database, and a demo's also
// months of work.
const startTime = 10 * time.Minute

// Program is a started process that listens on an address of this machine.
type Program struct {
	URL     string
	Admin   string // base URL of its metrics; "" if the program doesn't log one
	Mails   string // URL of the page that shows mails; "" if the program doesn't log one
	command *exec.Cmd
}

// Start runs binary with arguments and with environment added to the process's own, until it logs its
// address. The caller must Stop it.
func Start(ctx context.Context, binary string, arguments, environment []string) (*Program, error) {
	command := exec.CommandContext(ctx, binary, arguments...) //nolint:gosec // the caller's own program
	command.Env = append(os.Environ(), environment...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	command.Stdout, command.Stderr = writer, writer
	err = errors.Join(command.Start(), writer.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", binary, err), reader.Close())
	}

	program := &Program{command: command}
	addresses := make(chan addresses, 1)
	var lines strings.Builder
	go findAddresses(reader, &lines, addresses)
	select {
	case listening, found := <-addresses:
		if found {
			program.URL, program.Admin, program.Mails = listening.product, listening.admin, listening.mails
			return program, nil
		}
		_ = command.Wait() // its output says more than its exit code
		return nil, fmt.Errorf("%s ended before it listened:\n%s", binary, lines.String())
	case <-time.After(startTime):
		return nil, errors.Join(fmt.Errorf("%s does not listen after %s", binary, startTime), program.Stop())
	}
}

// addresses are the base URLs of a program; that of its metrics and the URL of its mails may be "".
type addresses struct{ product, admin, mails string }

// findAddresses reads a program's output until it ends. It sends the address of the line "msg=listening
// addr=…", and those of earlier lines with "admin listening" and the page of mails. Without the former it
// closes found, and lines holds the complete output.
func findAddresses(output io.ReadCloser, lines *strings.Builder, found chan<- addresses) {
	defer func() { _ = output.Close() }()
	listening := regexp.MustCompile(`msg=(listening|"admin listening") addr=(\S+)`)
	mails := regexp.MustCompile(`msg="mails are kept.*" url=(\S+)`)
	var read addresses
	reader := bufio.NewReader(output)
	for {
		line, err := reader.ReadString('\n')
		match := listening.FindStringSubmatch(line)
		switch {
		case match != nil && match[1] == "listening":
			read.product = "http://" + match[2]
			found <- read
			_, _ = io.Copy(io.Discard, reader) // so that the program never blocks on its output
			return
		case match != nil:
			read.admin = "http://" + match[2]
		}
		if match := mails.FindStringSubmatch(line); match != nil {
			read.mails = match[1]
		}
		lines.WriteString(line)
		if err != nil {
			close(found)
			return
		}
	}
}

// PID returns the number of the process; 0 for a program that Start did not start.
func (p *Program) PID() int {
	if p.command == nil {
		return 0
	}

	return p.command.Process.Pid
}

// Stop asks the program to end and waits until it has.
func (p *Program) Stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop: %w", err)
	}
	if err := p.command.Wait(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == -1 {
			return nil // ended by the signal
		}
		return fmt.Errorf("stop: %w", err)
	}

	return nil
}

// Environment returns the settings of a program that listens on free ports of 127.0.0.1, allows providers on
// this machine, and stores its data in a directory of its own.
func Environment(data string) []string {
	return []string{
		"PALIMPSEST_ADDR=127.0.0.1:0",
		"PALIMPSEST_ADMIN_ADDR=127.0.0.1:0",
		"PALIMPSEST_DATA_DIR=" + data,
		"PALIMPSEST_ALLOW_PRIVATE_UPSTREAMS=true",
		"PALIMPSEST_LOG_FORMAT=text",
		"DATABASE_URL=",
		"REDIS_URL=",
		"PALIMPSEST_BLOB_URL=",
	}
}
