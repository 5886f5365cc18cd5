package journal

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// suffix ends the name of a complete entry's file. An incomplete file has another suffix.
const suffix = ".epoch"

// maxEntry bounds the unpacked size of an entry, in bytes.
const maxEntry = 512 << 20

// errUnreadable says that an entry was damaged after it was written.
var errUnreadable = errors.New("the entry is damaged")

// entry is a waiting epoch, described by its file's name.
type entry struct {
	number    uint64
	workspace tenants.WorkspaceID
	lane      uuid.UUID
	at        time.Time
	size      int64
}

// content is the content of an entry's file, packed and sealed.
type content struct {
	Seen       session.Update
	Projection session.Projection
	Empty      []int // parts without a message, whose Raw is empty and not nil, a difference that gob loses
	Entries    int   // messages of Seen that follow
}

func contentOf(update session.Update, projection session.Projection) content {
	held := content{Seen: update, Projection: projection}
	for i, part := range projection.Parts {
		if part.Raw != nil && len(part.Raw) == 0 {
			held.Empty = append(held.Empty, i)
		}
	}
	return held
}

func (e entry) name() string {
	return fmt.Sprintf("%020d_%s_%s%s", e.number, e.workspace, e.lane, suffix)
}

// entryOf reads a file's name.
func entryOf(name string) (entry, error) {
	var one entry
	var workspace, lane string
	if _, err := fmt.Sscanf(strings.ReplaceAll(strings.TrimSuffix(name, suffix), "_", " "), "%d %s %s", &one.number, &workspace, &lane); err != nil {
		return entry{}, fmt.Errorf("%s is no entry of a journal: %w", name, err)
	}
	var errs [2]error
	one.workspace, errs[0] = tenants.ParseWorkspaceID(workspace)
	one.lane, errs[1] = uuid.Parse(lane)
	return one, errors.Join(errs[:]...)
}

// load finds the entries of earlier processes.
func (j *Journal) load() error {
	files, err := os.ReadDir(j.config.Dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), suffix) {
			_ = os.Remove(filepath.Join(j.config.Dir, file.Name())) // an incomplete file of a program that has ended
			continue
		}
		one, err := entryOf(file.Name())
		if err != nil {
			return err
		}
		info, err := file.Info()
		if err != nil {
			return err
		}
		one.size, one.at = info.Size(), info.ModTime()
		j.add(one)
		j.next = max(j.next, one.number+1)
	}
	return nil
}

// keep writes an epoch to the disk.
func (j *Journal) keep(ctx context.Context, update session.Update, projection session.Projection) error {
	key, err := j.config.Keys.Key(ctx, update.Scope.Workspace)
	if err != nil {
		return err
	}
	packed, err := pack(contentOf(update, projection))
	if err != nil {
		return err
	}
	one := entry{workspace: update.Scope.Workspace, lane: update.Lane, at: j.config.Now(), size: int64(len(packed))}
	if err := j.reserve(&one); err != nil {
		return err
	}
	if err := write(j.config.Dir, one.name(), key.Seal([]byte(one.name()), packed)); err != nil {
		j.release(one)
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.bytes -= one.size // add counts it again
	j.lanes[one.lane]--
	j.add(one)
	j.kept++
	return nil
}

// read returns the content of an entry.
func (j *Journal) read(ctx context.Context, one entry) (content, error) {
	sealed, err := os.ReadFile(filepath.Join(j.config.Dir, one.name()))
	if errors.Is(err, fs.ErrNotExist) {
		return content{}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if err != nil {
		return content{}, err
	}
	key, err := j.config.Keys.Key(ctx, one.workspace)
	if err != nil {
		return content{}, err
	}
	packed, err := key.Open([]byte(one.name()), sealed)
	if err != nil {
		return content{}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return unpack(packed)
}

// reserve assigns a number and space to an entry.
func (j *Journal) reserve(one *entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.bytes+one.size > j.config.MaxBytes {
		return fmt.Errorf("%w: %d bytes wait, and %d may", ErrFull, j.bytes, j.config.MaxBytes)
	}
	one.number = j.next
	j.next++
	j.bytes += one.size
	j.lanes[one.lane]++ // later epochs of the lane wait, too
	return nil
}

// release undoes reserve.
func (j *Journal) release(one entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.bytes -= one.size
	j.forget(one.lane)
}

// waiting returns the entries, oldest first.
func (j *Journal) waiting() []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// add inserts an entry in order. The caller holds the lock.
func (j *Journal) add(one entry) {
	at, _ := slices.BinarySearchFunc(j.entries, one, func(a, b entry) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	j.entries = slices.Insert(j.entries, at, one)
	j.lanes[one.lane]++
	j.bytes += one.size
}

// remove deletes a stored entry.
func (j *Journal) remove(one entry) {
	_ = os.Remove(filepath.Join(j.config.Dir, one.name())) // if that fails, it is stored again without effect
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = slices.DeleteFunc(j.entries, func(other entry) bool { return other.number == one.number })
	j.bytes -= one.size
	j.forget(one.lane)
}

// forget decrements a lane's count. The caller holds the lock.
func (j *Journal) forget(lane uuid.UUID) {
	if j.lanes[lane]--; j.lanes[lane] == 0 {
		delete(j.lanes, lane)
	}
}

// write makes a file durable under its name.
func write(dir, name string, bytes []byte) error {
	place := filepath.Join(dir, name)
	file, err := os.OpenFile(place+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // in the data directory, under a name made here
	if err != nil {
		return err
	}
	_, err = file.Write(bytes)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), place)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	folder, err := os.Open(dir) //nolint:gosec // the data directory
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// format is the first byte of a file, before it is sealed.
const format = 2

// pack returns content in its file format. The messages follow one by one, because gob keeps a whole value in
// memory while it writes it.
func pack(held content) ([]byte, error) {
	entries := held.Seen.Messages.Entries
	held.Seen.Messages.Entries, held.Entries = nil, len(entries)
	packed := bytes.NewBuffer([]byte{format})
	encoder, err := zstd.NewWriter(packed, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	values := gob.NewEncoder(encoder)
	err = values.Encode(toWritten(&held))
	for i := range entries {
		err = errors.Join(err, values.Encode(&entries[i]))
	}
	if err := errors.Join(err, encoder.Close()); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func unpack(packed []byte) (content, error) {
	packed, known := bytes.CutPrefix(packed, []byte{format})
	if !known {
		return content{}, fmt.Errorf("%w: its format is unknown", errUnreadable)
	}
	decoder, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderMaxMemory(maxEntry), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return content{}, err
	}
	defer decoder.Close()
	var read written
	values := gob.NewDecoder(decoder)
	if err := values.Decode(&read); err != nil {
		return content{}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	held := read.content()
	for range held.Entries {
		var one archive.Entry
		if err := values.Decode(&one); err != nil {
			return content{}, fmt.Errorf("%w: %w", errUnreadable, err)
		}
		held.Seen.Messages.Entries = append(held.Seen.Messages.Entries, one)
	}
	for _, i := range held.Empty {
		held.Projection.Parts[i].Raw = []byte{}
	}
	return held, nil
}
