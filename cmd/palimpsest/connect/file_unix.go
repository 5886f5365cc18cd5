//go:build unix

package connect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// own gives a file to the owner of another one.
func own(file *os.File, like fs.FileInfo) error {
	if like == nil {
		return nil
	}
	owner, is := like.Sys().(*syscall.Stat_t)
	if !is || int(owner.Uid) == os.Geteuid() && int(owner.Gid) == os.Getegid() {
		return nil
	}
	if err := file.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
		return fmt.Errorf("keep its owner: %w; run this as the user who owns the file", err)
	}
	return nil
}

// syncFolder makes the changes of a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	err = folder.Sync()
	if errors.Is(err, syscall.EINVAL) { // the file system cannot sync folders
		err = nil
	}
	return errors.Join(err, folder.Close())
}
