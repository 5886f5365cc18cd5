package spool

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// The lock covers one byte far beyond the records, since Windows keeps others from reading locked bytes.
func place() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }

// lock fails if another process holds the file.
func lock(file *os.File) error {
	return windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, place())
}

func unlock(file *os.File) error {
	return windows.UnlockFileEx(windows.Handle(file.Fd()), 0, 1, 0, place())
}

// discard deletes a file. Windows does not delete an open one.
func discard(path string, file *os.File) error { return errors.Join(file.Close(), os.Remove(path)) }
