package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
)

// sink is an open file of a backup. It counts and hashes the written bytes.
type sink struct {
	file     *os.File
	digest   hash.Hash
	bytes    int64
	progress func(bytes int64)
}

func createFile(dir, name string, progress func(bytes int64)) (*sink, error) {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode) //nolint:gosec // the operator names the directory
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	return &sink{file: file, digest: sha256.New(), progress: progress}, nil
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	s.digest.Write(p[:n])
	s.bytes += int64(n)
	s.progress(s.bytes)
	return n, err
}

// close makes sure that the file survives a loss of power, and returns its description.
func (s *sink) close(name string) (File, error) {
	if err := errors.Join(s.file.Sync(), s.file.Close()); err != nil {
		return File{}, fmt.Errorf("backup %s: %w", name, err)
	}
	return File{Name: name, Bytes: s.bytes, SHA256: hex.EncodeToString(s.digest.Sum(nil))}, nil
}

func writeFile(dir, name string, content []byte) (File, error) {
	to, err := createFile(dir, name, silent)
	if err != nil {
		return File{}, err
	}
	_, err = to.Write(content)
	file, closeErr := to.close(name)
	return file, errors.Join(err, closeErr)
}

func silent(int64) {}

// check reads a file of a backup and returns an error if it does not match the manifest.
func (f File) check(dir string) error {
	file, err := os.Open(filepath.Join(dir, f.Name)) //nolint:gosec // the operator names the directory
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer func() { _ = file.Close() }()
	digest := sha256.New()
	bytes, err := io.Copy(digest, file)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if sum := hex.EncodeToString(digest.Sum(nil)); bytes != f.Bytes || sum != f.SHA256 {
		return fmt.Errorf("%s is damaged: it has %d bytes and the SHA-256 %s, not %d and %s", f.Name, bytes, sum, f.Bytes, f.SHA256)
	}
	return nil
}

// syncDirectory makes sure that the names in a directory survive a loss of power.
func syncDirectory(path string) error {
	directory, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}
