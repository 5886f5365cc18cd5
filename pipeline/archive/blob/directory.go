package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"palimpsest/pipeline/archive"
)

// The modes of a Directory's files: accessible only to this program's user.
const (
	directoryMode = 0o700
	fileMode      = 0o600
)

// Directory is a bucket in a directory of a local file system that has hard links.
type Directory struct{ root string }

// NewDirectory returns a bucket below root. It creates root if needed.
func NewDirectory(root string) (*Directory, error) {
	if err := makeDirectory(root); err != nil {
		return nil, err
	}
	return &Directory{root: root}, nil
}

// Put stores bytes under a name. They survive a power loss once it returns. It returns archive.ErrTaken if
// the name is in use.
func (d *Directory) Put(_ context.Context, name string, content []byte) error {
	path, err := d.path(name)
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	if err := makeDirectory(folder); err != nil {
		return err
	}
	temporary, err := writeTemporary(folder, content)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	// A link, unlike a rename, never replaces an existing file.
	linked := os.Link(temporary, path)
	if err := errors.Join(os.Remove(temporary), syncDirectory(folder)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if errors.Is(linked, fs.ErrExist) {
		return fmt.Errorf("write %s: %w", name, archive.ErrTaken)
	}
	return linked
}

// Get returns the bytes under a name, or archive.ErrNotFound.
func (d *Directory) Get(_ context.Context, name string) ([]byte, error) {
	path, err := d.path(name)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path) //nolint:gosec // path is local to the root
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w", name, archive.ErrNotFound)
	}
	return content, err
}

// Range returns length bytes of an object from an offset. It returns archive.ErrNotFound if the object is
// absent, or archive.ErrDamaged if it is too short.
func (d *Directory) Range(_ context.Context, name string, offset, length int) ([]byte, error) {
	path, err := d.path(name)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path) //nolint:gosec // path is local to the root
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w", name, archive.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	content := make([]byte, length)
	_, err = file.ReadAt(content, int64(offset))
	if errors.Is(err, io.EOF) && length > 0 {
		err = fmt.Errorf("read %s: %w: it ends before byte %d", name, archive.ErrDamaged, offset+length)
	} else if errors.Is(err, io.EOF) {
		err = nil
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return content, nil
}

// Delete removes an object. A missing object is no error.
func (d *Directory) Delete(_ context.Context, name string) error {
	path, err := d.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d *Directory) path(name string) (string, error) {
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) {
		return "", fmt.Errorf("name %q leads out of the directory", name)
	}
	return filepath.Join(d.root, local), nil
}

// temporaryPrefix begins the names of files that are being written.
const temporaryPrefix = ".new-"

// writeTemporary writes bytes to a new temporary file.
func writeTemporary(folder string, content []byte) (path string, err error) {
	file, err := os.CreateTemp(folder, temporaryPrefix+"*")
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(fileMode)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// makeDirectory creates a directory and its missing parents so that they survive a power loss.
func makeDirectory(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	above := filepath.Dir(path)
	if above != path {
		if err := makeDirectory(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, directoryMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make directory: %w", err)
	}
	return syncDirectory(above)
}

// syncDirectory makes the names in a directory survive a power loss.
func syncDirectory(path string) error {
	directory, err := os.Open(path) //nolint:gosec // the caller's own directory
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

var _ archive.Bucket = (*Directory)(nil)
