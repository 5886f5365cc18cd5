package spool

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

const (
	suffix = ".spool" // of the names of segments
	about  = "an exchange that is not recorded yet"
	header = 4 + len(uuid.UUID{}) // the length of the sealed part, and the workspace
	// longest bounds a record in bytes: a greater length is damaged data.
	longest = 1 << 30
)

// segment is a file of records. Its process holds its lock.
type segment struct {
	path    string
	file    *os.File
	size    int64
	waiting int // pending records
	since   time.Time
}

// create makes an empty segment.
func create(dir string) (*segment, error) {
	path := filepath.Join(dir, uuid.Must(uuid.NewV7()).String()+suffix)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in the data directory, under a name made here
	if err != nil {
		return nil, err
	}
	if err := lock(file); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(path))
	}
	return &segment{path: path, file: file, since: time.Now()}, nil
}

// reopen returns a segment of an ended process; nil if a process uses it.
func reopen(path string) (*segment, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // in the data directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // whose it was has removed it
	}
	if err != nil {
		return nil, err
	}
	if lock(file) != nil {
		return nil, file.Close()
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &segment{path: path, file: file, size: info.Size(), since: info.ModTime()}, nil
}

// frame fills in the header in front of a record's sealed part.
func frame(framed []byte, workspace tenants.WorkspaceID) {
	binary.BigEndian.PutUint32(framed, uint32(len(framed)-header)) //nolint:gosec // a request is bounded
	copy(framed[4:], workspace[:])
}

// each calls visit with the places of the records, in order. It leaves out an incomplete record at the end.
func (s *segment) each(visit func(offset, size int64)) error {
	reader := bufio.NewReader(io.NewSectionReader(s.file, 0, s.size))
	var head [header]byte
	for offset := int64(0); ; {
		if _, err := io.ReadFull(reader, head[:]); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		} else if err != nil {
			return err
		}
		length := int64(binary.BigEndian.Uint32(head[:]))
		if length > longest || offset+int64(header)+length > s.size {
			return nil
		}
		if _, err := io.CopyN(io.Discard, reader, length); err != nil {
			return err
		}
		if tenants.WorkspaceID(head[4:]) != (tenants.WorkspaceID{}) { // not withdrawn
			visit(offset, int64(header)+length)
		}
		offset += int64(header) + length
	}
}

// read returns a record.
func (s *segment) read(offset, size int64) (workspace tenants.WorkspaceID, sealed []byte, err error) {
	framed := make([]byte, size)
	if _, err := s.file.ReadAt(framed, offset); err != nil {
		return tenants.WorkspaceID{}, nil, fmt.Errorf("read from the spool: %w", err)
	}
	return tenants.WorkspaceID(framed[4:header]), framed[header:], nil
}

// append writes a record completely or not at all.
func (s *segment) append(framed []byte) error {
	if _, err := s.file.WriteAt(framed, s.size); err != nil {
		return errors.Join(err, s.file.Truncate(s.size))
	}
	s.size += int64(len(framed))
	return nil
}

// withdraw removes a record's workspace, so that the record is ignored.
func (s *segment) withdraw(offset int64) error {
	_, err := s.file.WriteAt(make([]byte, header-4), offset+4)
	return err
}

// empty removes all records.
func (s *segment) empty() error {
	s.size = 0
	return s.file.Truncate(0)
}

// remove deletes the segment.
func (s *segment) remove() error { return discard(s.path, s.file) }

// close unlocks the file first, because a child process that is just being started may still hold a copy of
// it.
func (s *segment) close() error {
	return errors.Join(unlock(s.file), s.file.Close())
}
