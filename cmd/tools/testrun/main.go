// Command testrun runs go test, or another command, with the PostgreSQL cluster that all test programs of
// one run share, and with the commit that selects this run's part of each large sweep (see
// pipeline/fulltest). The cluster ends with the command:
//
//	testrun COMMAND [ARGUMENT…]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: testrun COMMAND [ARGUMENT…]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1], os.Args[2:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run returns the exit status of the command.
func run(ctx context.Context, name string, arguments []string) (code int, err error) {
	url, stop, err := dbtest.Serve(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()

	command := exec.CommandContext(ctx, name, arguments...) //nolint:gosec // the developer's own command
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), dbtest.Variable+"="+url, fulltest.CommitVariable+"="+commit(ctx))
	err = command.Run()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// commit returns the hash of the checked-out commit, "" outside a repository.
func commit(ctx context.Context) string {
	hash, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(hash))
}
