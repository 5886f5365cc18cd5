//go:build unix

package main

import "syscall"

// freeSpace returns the number of free bytes on the disk of a folder.
func freeSpace(dir string) (uint64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, err
	}
	return disk.Bavail * uint64(disk.Bsize), nil //nolint:gosec // the size of a block
}

// mostFiles returns the process's limit on open files.
func mostFiles() (files uint64, known bool) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return limit.Cur, err == nil
}
