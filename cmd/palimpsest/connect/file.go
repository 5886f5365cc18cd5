package connect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	privateFile   = 0o600
	privateFolder = 0o700
)

// disk reads and replaces files.
type disk struct {
	// before is called before each step that changes a file; nil outside of tests.
	before func(step string)
}

// found is a file's state on disk.
type found struct {
	path    string // with symbolic links followed
	about   fs.FileInfo
	content []byte
}

func (f found) exists() bool { return f.about != nil }

// read reads a file; a missing one is empty.
func (d disk) read(path string) (found, error) {
	path, err := follow(path)
	if err != nil {
		return found{}, err
	}
	about, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found{path: path}, nil
	case err != nil:
		return found{}, fmt.Errorf("look at %s: %w", path, err)
	case !about.Mode().IsRegular():
		return found{}, fmt.Errorf("%s is not a file: move it away first", path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return found{}, fmt.Errorf("read %s: %w", path, err)
	}
	return found{path: path, about: about, content: content}, nil
}

// mostLinks limits the symbolic links to follow.
const mostLinks = 16

// follow returns the target of symbolic links, even if it does not exist yet.
func follow(path string) (string, error) {
	for range mostLinks {
		whole, err := filepath.EvalSymlinks(path)
		if err == nil {
			return whole, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("follow %s: %w", path, err)
		}
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // neither a file nor a link
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return "", fmt.Errorf("%s: its symbolic links lead in a circle", path)
}

// writable returns an error with advice if a file must not be changed.
func (f found) writable() error {
	if !f.exists() {
		return nil
	}
	if f.about.Mode().Perm()&0o222 == 0 {
		return fmt.Errorf("%s is read-only: make it writable first", f.path)
	}
	file, err := os.OpenFile(f.path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", f.path, err)
	}
	return file.Close()
}

// newFile is the suffix of a new file that is about to replace another.
const newFile = ".palimpsest-new"

// replace writes a file with a content and a mode, replacing any old one atomically. After a kill there is
// either the old file or the new one. The new one belongs to the owner of like, or to the process's user if
// like is nil.
func (d disk) replace(path string, content []byte, mode fs.FileMode, like fs.FileInfo) (err error) {
	next := path + newFile
	d.step("begin " + path)
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a killed process
		return fmt.Errorf("write %s: %w", path, err)
	}
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(next)
		}
	}()
	d.step("write " + path)
	_, err = file.Write(content)
	if err == nil {
		err = own(file, like)
	}
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	d.step("rename " + path)
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	d.step("end " + path)
	return syncFolder(filepath.Dir(path))
}

// remove removes a file and the folders around it, up to made, if they are empty then.
func (d disk) remove(path, made string) error {
	d.step("remove " + path)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for folder := filepath.Dir(path); made != "" && len(folder) >= len(made); folder = filepath.Dir(folder) {
		if err := os.Remove(folder); err != nil {
			return nil //nolint:nilerr // it is not empty
		}
	}
	return nil
}

// folder creates the folder of a file. It returns the topmost folder it created, or "" if the folder
// existed.
func (d disk) folder(path string) (made string, err error) {
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(folder); err == nil || folder == filepath.Dir(folder) {
			break
		}
		made = folder
	}
	d.step("make the folder of " + path)
	return made, os.MkdirAll(filepath.Dir(path), privateFolder)
}

func (d disk) step(name string) {
	if d.before != nil {
		d.before(name)
	}
}
