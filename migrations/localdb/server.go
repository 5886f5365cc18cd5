//go:build unix

package localdb

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// server is a running postgres process.
type server struct {
	command *exec.Cmd
	done    chan struct{} // closed when the process has ended
	err     error         // the outcome; valid after done
}

// launch starts a process that is signaled when this one dies, if the system supports that.
func launch(command *exec.Cmd) (*server, error) {
	s := &server{command: command, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel sends the parent-death signal when the thread that started the process ends, so the
		// thread must live as long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			s.err = command.Wait()
		}
		close(s.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return s, nil
}

// run runs a process to its end and returns its output.
func run(command *exec.Cmd) ([]byte, error) {
	runtime.LockOSThread() // as in launch
	defer runtime.UnlockOSThread()
	return command.CombinedOutput()
}

func (s *server) pid() int { return s.command.Process.Pid }

// failure describes how a process ended unexpectedly.
func (s *server) failure() error {
	if s.err != nil {
		return s.err
	}
	return errors.New("without a reason")
}

// stop shuts the server down: first in order, and if that takes too long immediately, as after a crash.
func (s *server) stop() error {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
		select {
		case <-s.done:
			return nil
		default:
		}
		_ = s.command.Process.Signal(signal) // fails only if it has ended
		select {
		case <-s.done:
			return nil
		case <-time.After(stopTimeout):
		}
	}
	return fmt.Errorf("postgres (process %d) does not end", s.pid())
}
