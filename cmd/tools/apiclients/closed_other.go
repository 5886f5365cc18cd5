//go:build !linux

package apiclients

import (
	"errors"
	"os/exec"
)

// CloseNetwork does nothing, because only Linux has networks for one process.
func CloseNetwork(*exec.Cmd) {}

// OpenLoopback returns an error because the network is not closed here.
func OpenLoopback() error {
	return errors.New("a closed network needs Linux; with -open the clients keep the network, with dummy keys")
}
