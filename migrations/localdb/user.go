//go:build unix

package localdb

import (
	"errors"
	"fmt"
	"os"
	osuser "os/user"
	"strconv"
	"syscall"
)

// firstDescriptor is the number of the first file that a process inherits.
const firstDescriptor = 3

// user is the user that runs the PostgreSQL programs. PostgreSQL refuses to run as root.
type user struct {
	name       string
	credential *syscall.Credential // nil means this process's
}

// serverUser returns the user to run as: this process's own or, for root, postgres or else "nobody".
func serverUser() (user, error) {
	if os.Geteuid() != 0 {
		return user{name: "uid " + strconv.Itoa(os.Geteuid())}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := osuser.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(found.Uid, 10, 32)
		if err != nil {
			continue
		}
		gid, err := strconv.ParseUint(found.Gid, 10, 32)
		if err != nil {
			continue
		}
		return user{name: name, credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return user{}, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody: start as another user, or set DATABASE_URL")
}

// own makes the user the owner of a file or directory.
func (u user) own(path string) error {
	if u.credential == nil {
		return nil
	}
	if err := os.Chown(path, int(u.credential.Uid), int(u.credential.Gid)); err != nil {
		return fmt.Errorf("give the database directory to user %s: %w", u.name, err)
	}
	return nil
}

// folder is a directory as the user's process opens it.
type folder struct {
	path   string
	handle *os.File // to be passed on; nil if not needed
}

func (f folder) files() []*os.File {
	if f.handle == nil {
		return nil
	}
	return []*os.File{f.handle}
}

func (f folder) close() {
	if f.handle != nil {
		_ = f.handle.Close() // opened only to be passed on
	}
}
