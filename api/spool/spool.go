// Package spool keeps data on its way to the database on the local disk, so that a killed process loses none
// of it. The data survives the process, but not a power failure, because files are written without flushing
// them to the disk.
package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

const (
	// DefaultBytes bounds the size of a spool.
	DefaultBytes = 256 << 20
	// segmentBytes is the size at which a file is full.
	segmentBytes = 16 << 20
	// bufferBytes bounds the memory of each buffer that is kept for later records.
	bufferBytes = 64 << 10
	// keepFor is the age at which a record that can't be stored is deleted, for example because its workspace
	// has been deleted.
	keepFor = 7 * 24 * time.Hour
	// batchRecords and batchBytes bound a batch of Replay.
	batchRecords, batchBytes = 100, 8 << 20
)

// ErrFull says that a spool has no room for a record.
var ErrFull = errors.New("the local spool is full")

// Config says where a Spool keeps its records.
type Config struct {
	Dir      string
	MaxBytes int64
	Keys     *archive.Keys
	Log      *slog.Logger
	Now      func() time.Time
}

// Spool stores records on disk until they are stored elsewhere. It is safe for concurrent use.
type Spool struct {
	config  Config
	buffers sync.Pool // of *bytes.Buffer

	replaying sync.Mutex

	mu      sync.Mutex
	current *segment // receives the next record; nil before the first
	bytes   int64
	records int
	failed  []Record // to be handed over again, oldest first
	handed  int
}

// Stats describe the waiting records on the disk.
type Stats struct {
	Records int
	Bytes   int64
	Handed  int // records that Replay has handed over so far

	// Since is the start of the file with the oldest record that could not be stored; the zero time without
	// such a record.
	Since time.Time
}

// Record is one record of a spool. The methods of the zero Record do nothing.
type Record struct {
	spool   *Spool
	segment *segment
	offset  int64
	size    int64
}

// Open returns the spool of a directory, which it makes. Records of ended processes there wait for Replay.
func Open(config Config) (*Spool, error) {
	s := &Spool{config: config, buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the spool's directory: %w", err)
	}
	files, err := os.ReadDir(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("read the spool: %w", err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), suffix) {
			continue
		}
		if err := s.load(filepath.Join(config.Dir, file.Name())); err != nil {
			return nil, fmt.Errorf("read %s of the spool: %w", file.Name(), err)
		}
	}
	return s, nil
}

// load takes over a segment, unless another process holds it.
func (s *Spool) load(path string) error {
	one, err := reopen(path)
	if err != nil || one == nil {
		return err
	}
	if err := one.each(func(offset, size int64) {
		one.waiting++
		s.bytes, s.records = s.bytes+size, s.records+1
		s.failed = append(s.failed, Record{spool: s, segment: one, offset: offset, size: size})
	}); err != nil {
		return errors.Join(err, one.close())
	}
	if one.waiting == 0 {
		return one.remove()
	}
	return nil
}

// Put stores a record of a workspace, written by write, sealed until the Record is Done.
func (s *Spool) Put(ctx context.Context, workspace tenants.WorkspaceID, write func(*bytes.Buffer) error) (Record, error) {
	key, err := s.config.Keys.Key(ctx, workspace)
	if err != nil {
		return Record{}, fmt.Errorf("seal for the spool: %w", err)
	}
	buffer, _ := s.buffers.Get().(*bytes.Buffer)
	defer s.release(buffer)
	_, _ = buffer.Write(make([]byte, header+archive.SealedRoom))
	if err := write(buffer); err != nil {
		return Record{}, fmt.Errorf("write for the spool: %w", err)
	}
	buffer.Grow(archive.SealedOverhead)
	framed := buffer.Bytes()
	framed = framed[:header+len(key.SealInPlace([]byte(about), framed[header:]))]
	frame(framed, workspace)
	size := int64(len(framed))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+size > s.config.MaxBytes {
		return Record{}, fmt.Errorf("%w: %d bytes wait", ErrFull, s.bytes)
	}
	if err := s.roll(); err != nil {
		return Record{}, fmt.Errorf("open a file of the spool: %w", err)
	}
	record := Record{spool: s, segment: s.current, offset: s.current.size, size: size}
	if err := s.current.append(framed); err != nil {
		return Record{}, fmt.Errorf("write to the spool: %w", err)
	}
	s.current.waiting++
	s.bytes, s.records = s.bytes+size, s.records+1
	return record, nil
}

// release keeps a buffer for the next record, unless it has grown large.
func (s *Spool) release(buffer *bytes.Buffer) {
	if buffer.Cap() <= bufferBytes {
		buffer.Reset()
		s.buffers.Put(buffer)
	}
}

// roll sets current to a segment with room. The caller holds the lock.
func (s *Spool) roll() error {
	if s.current != nil && s.current.size < segmentBytes {
		return nil
	}
	next, err := create(s.config.Dir)
	if err != nil {
		return err
	}
	s.current = next
	return nil
}

// Done deletes a stored record.
func (r Record) Done() {
	if r.spool == nil {
		return
	}
	r.spool.mu.Lock()
	defer r.spool.mu.Unlock()
	r.spool.forget(r)
}

// Withdraw deletes a record, for later processes too, because another record replaces it.
func (r Record) Withdraw() {
	if r.spool == nil {
		return
	}
	r.spool.mu.Lock()
	defer r.spool.mu.Unlock()
	if err := r.segment.withdraw(r.offset); err != nil {
		r.spool.config.Log.Warn("a record of the spool is not withdrawn", "file", r.segment.path, "error", err)
	}
	r.spool.forget(r)
}

// Failed lets Replay hand the record over, because it could not be stored.
func (r Record) Failed() {
	if r.spool == nil {
		return
	}
	r.spool.mu.Lock()
	defer r.spool.mu.Unlock()
	r.spool.failed = append(r.spool.failed, r)
}

// forget drops a record. The caller holds the lock.
func (s *Spool) forget(r Record) {
	s.bytes, s.records = s.bytes-r.size, s.records-1
	r.segment.waiting--
	if r.segment.waiting > 0 {
		return
	}
	var err error
	if r.segment == s.current {
		err = r.segment.empty()
	} else {
		err = r.segment.remove()
	}
	if err != nil { // its records are handed over again, which is harmless
		s.config.Log.Warn("a file of the spool stays", "file", r.segment.path, "error", err)
	}
}

// Handler stores records of one workspace, oldest first: all of them, or, if it returns an error, no record.
type Handler func(ctx context.Context, workspace tenants.WorkspaceID, plain [][]byte) error

// Replay hands over the records that could not be stored, and those of ended processes, oldest first, in
// batches. A refused record waits for the next Replay; if the store is away, so do all records behind it.
func (s *Spool) Replay(ctx context.Context, hand Handler) {
	s.replaying.Lock()
	defer s.replaying.Unlock()
	s.mu.Lock()
	waiting := slices.Clone(s.failed)
	s.mu.Unlock()
	done := make(map[Record]bool, len(waiting))
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = slices.DeleteFunc(s.failed, func(record Record) bool { return done[record] })
	}()
	for len(waiting) > 0 {
		n := together(waiting)
		if !s.handOver(ctx, waiting[:n], hand, done) {
			return
		}
		waiting = waiting[n:]
	}
}

// together returns how many of the first records to read into memory at once, at least one.
func together(waiting []Record) int {
	n, bytes := 0, int64(0)
	for n < min(len(waiting), batchRecords) && (n == 0 || bytes+waiting[n].size <= batchBytes) {
		bytes += waiting[n].size
		n++
	}
	return n
}

// handOver hands over records, workspace by workspace, and adds the finished ones to done. It reports whether
// the store accepts more.
func (s *Spool) handOver(ctx context.Context, records []Record, hand Handler, done map[Record]bool) bool {
	type batch struct {
		records []Record
		plain   [][]byte
	}
	var order []tenants.WorkspaceID
	batches := map[tenants.WorkspaceID]batch{}
	for _, record := range records {
		workspace, plain, err := s.open(ctx, record)
		if plain == nil {
			if !s.end(ctx, workspace, record, err, done) {
				return false
			}
			continue
		}
		of, found := batches[workspace]
		if !found {
			order = append(order, workspace)
		}
		batches[workspace] = batch{append(of.records, record), append(of.plain, plain)}
	}
	for _, workspace := range order {
		of := batches[workspace]
		err := hand(ctx, workspace, of.plain)
		isOne := len(of.records) == 1 || err == nil || isPutOff(ctx, err)
		for i, record := range of.records {
			if !isOne { // find the refused ones
				err = hand(ctx, workspace, of.plain[i:i+1])
			}
			if !s.end(ctx, workspace, record, err, done) {
				return false
			}
		}
	}
	return true
}

// IsAway reports whether an error says that a store or its database does not answer, or is read-only at the
// moment.
func IsAway(err error) bool {
	return errors.Is(err, session.ErrAway) || errors.Is(err, tenants.ErrAway)
}

// isPutOff reports whether an error is independent of the records, so that another try may succeed.
func isPutOff(ctx context.Context, err error) bool {
	return err != nil && (IsAway(err) || ctx.Err() != nil)
}

// end adds a record that is stored, or too old for another try, to done and deletes it. It reports whether
// the store accepts more.
func (s *Spool) end(ctx context.Context, workspace tenants.WorkspaceID, record Record, err error, done map[Record]bool) bool {
	if isPutOff(ctx, err) {
		return false
	}
	if err != nil && s.config.Now().Sub(record.segment.since) <= keepFor {
		return true
	}
	if err != nil {
		s.config.Log.ErrorContext(ctx, "an exchange on the local disk is deleted after seven days", "workspace", workspace, "error", err)
	}
	done[record] = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(record)
	if err == nil {
		s.handed++
	}
	return true
}

// open returns a record as it was put; nil and no error if it is unreadable.
func (s *Spool) open(ctx context.Context, record Record) (workspace tenants.WorkspaceID, plain []byte, err error) {
	workspace, sealed, err := record.segment.read(record.offset, record.size)
	if err != nil {
		return tenants.WorkspaceID{}, nil, err
	}
	key, err := s.config.Keys.Key(ctx, workspace)
	if err != nil {
		return workspace, nil, err
	}
	plain, err = key.Open([]byte(about), sealed)
	if err != nil { // incomplete, or written by another program
		s.config.Log.ErrorContext(ctx, "an exchange on the local disk cannot be read", "workspace", workspace, "error", err)
		return workspace, nil, nil
	}
	return workspace, plain, nil
}

// Stats returns how much waits.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{Records: s.records, Bytes: s.bytes, Handed: s.handed}
	if len(s.failed) > 0 {
		stats.Since = s.failed[0].segment.since
	}
	return stats
}

// Close closes the files. Waiting records stay on the disk.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := map[*segment]bool{}
	for _, record := range s.failed {
		open[record.segment] = true
	}
	var errs []error
	if s.current != nil && s.current.waiting == 0 {
		errs = append(errs, s.current.remove())
	} else if s.current != nil {
		open[s.current] = true
	}
	for one := range open {
		errs = append(errs, one.close())
	}
	s.current = nil
	return errors.Join(errs...)
}
