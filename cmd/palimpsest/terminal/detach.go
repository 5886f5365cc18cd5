package terminal

import (
	"os"
	"os/exec"
)

// refreshDetached starts this program to read a session for the status line, without waiting for it.
func refreshDetached(session string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command(program, "status", "--refresh", session) //nolint:gosec,noctx // this program, which goes on after the caller
	detach(command)
	if err := command.Start(); err != nil {
		return err
	}
	return command.Process.Release()
}
