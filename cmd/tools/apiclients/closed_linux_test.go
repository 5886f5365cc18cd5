package apiclients

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// insideVariable has the test program be the process in the closed network.
const insideVariable = "APICLIENTS_TEST_INSIDE"

func TestClosedNetworkHasALoopbackAndNoWayOut(t *testing.T) {
	if os.Getenv(insideVariable) != "" {
		lookAround(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), insideVariable+"=1")
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	CloseNetwork(command)
	err = command.Run()

	if errors.Is(err, syscall.EPERM) {
		t.Skip("this machine does not let a process have a network of its own")
	}
	if err != nil || !strings.Contains(output.String(), "--- PASS") {
		t.Errorf("%v\n%s", err, output.Bytes())
	}
}

// lookAround runs in the closed network.
func lookAround(t *testing.T) {
	t.Helper()
	if err := OpenLoopback(); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	inside, err := net.DialTimeout("tcp", listener.Addr().String(), time.Second)
	if err != nil {
		t.Fatalf("the loopback: %v", err)
	}
	_ = inside.Close()

	// An address of a documentation network: nothing is there, and no packet leaves.
	outside, err := net.DialTimeout("tcp", "192.0.2.1:443", 5*time.Second)
	if err == nil {
		_ = outside.Close()
	}
	if !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("the outside: %v, want %v", err, syscall.ENETUNREACH)
	}
}
