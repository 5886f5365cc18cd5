//go:build unix

package settings

import "syscall"

// mostFiles returns the process's limit on open files.
func mostFiles() (files uint64, known bool) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return limit.Cur, err == nil
}
