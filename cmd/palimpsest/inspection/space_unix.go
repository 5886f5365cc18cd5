//go:build unix

package inspection

import "syscall"

// freeSpace returns the number of free bytes on the disk of a folder.
func freeSpace(dir string) (uint64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, err
	}
	return disk.Bavail * uint64(disk.Bsize), nil //nolint:gosec // the size of a block
}
