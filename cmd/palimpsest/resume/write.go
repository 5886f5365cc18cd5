package resume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// realFolder returns a folder with symbolic links followed, as clients see it.
func realFolder(path string) string {
	if followed, err := filepath.EvalSymlinks(path); err == nil {
		return followed
	}
	return path
}

// ErrThere is returned if the client has the session already.
var ErrThere = errors.New("is there already and stays as it is")

// Save writes a session's file atomically, readable only by its owner. It never replaces a file.
func (f File) Save() (err error) {
	if known, err := filepath.Glob(f.Known); err == nil && len(known) > 0 {
		return fmt.Errorf("%s %w", known[0], ErrThere)
	}
	folder := filepath.Dir(f.Path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make the folder of the session: %w", err)
	}
	part, err := os.CreateTemp(folder, ".palimpsest-*") // readable only by its owner
	if err != nil {
		return fmt.Errorf("write the session: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(part.Name())) }()
	_, err = part.Write(f.Content)
	if err == nil {
		err = part.Sync()
	}
	if err = errors.Join(err, part.Close()); err != nil {
		return fmt.Errorf("write the session: %w", err)
	}
	// Link fails if the file exists, while a rename would replace it.
	err = os.Link(part.Name(), f.Path)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s %w", f.Path, ErrThere)
	}
	if err != nil {
		return fmt.Errorf("write the session: %w", err)
	}
	return nil
}
