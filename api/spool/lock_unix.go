//go:build unix

package spool

import (
	"errors"
	"os"
	"syscall"
)

// lock fails if another process holds the file.
func lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

func unlock(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }

// discard deletes a file while it is locked, so that no other process takes it.
func discard(path string, file *os.File) error { return errors.Join(os.Remove(path), file.Close()) }
