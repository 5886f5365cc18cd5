// Package journal keeps compactions on the local disk while the store does not answer, so
// that a session which outgrows its window then goes on, and hands them over once it does.
package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

const (
	// storeTimeout bounds how long a prompt waits for the store before its epoch is kept here.
	storeTimeout = 2 * time.Second
	// replayTimeout bounds how long the store may take for one entry.
	replayTimeout = 30 * time.Second
	// keepFor is after how long an entry is deleted that the store never takes: its
	// workspace was deleted meanwhile.
	keepFor = 7 * 24 * time.Hour
	// DefaultBytes bounds what a journal holds.
	DefaultBytes = 1 << 30
)

// ErrFull says that a journal has no room for an entry.
var ErrFull = errors.New("the local journal is full")

// Config says where a Journal keeps its entries.
type Config struct {
	Dir      string
	MaxBytes int64
	Store    session.Store
	Keys     *archive.Keys
	Log      *slog.Logger
	Now      func() time.Time
	Outage   *session.Outage // of Store: prompts do not wait for it then

	Peers *Peers // where other processes find what waits here; nil if there is no such place

	// IsAway reports whether an error of Keys says that they do not answer for now.
	IsAway func(error) bool

	// Overtaken hears of a lane of which another process has made the epoch first.
	Overtaken func(lane uuid.UUID)
}

// Journal is a Store that keeps an epoch on the disk where its Store fails.
type Journal struct {
	session.Store

	config Config

	replaying sync.Mutex

	mu      sync.Mutex
	entries []entry           // oldest first
	lanes   map[uuid.UUID]int // entries of each lane
	bytes   int64
	kept    int
	next    uint64 // number of the next entry
}

// Stats tell how much waits on the disk.
type Stats struct {
	Entries int
	Bytes   int64
	Kept    int // entries that were ever written by this process
}

// Stats returns how much waits.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return Stats{Entries: len(j.entries), Bytes: j.bytes, Kept: j.kept}
}

// New returns the journal of a directory, which it makes, with what waits there from before.
func New(config Config) (*Journal, error) {
	j := &Journal{Store: config.Store, config: config, lanes: make(map[uuid.UUID]int)}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the journal's directory: %w", err)
	}
	if err := j.load(); err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	return j, nil
}

// Commit stores an epoch as its Store does. Where that is away, or does not answer in time, it
// is durable on the local disk when Commit returns, unless the epoch can wait.
func (j *Journal) Commit(ctx context.Context, update session.Update, projection session.Projection) error {
	err := session.ErrAway
	if !j.holds(update.Lane) && !j.config.Outage.Lasts() {
		asking, cancel := context.WithTimeout(ctx, storeTimeout)
		err = j.Store.Commit(asking, update, projection)
		cancel()
		if ctx.Err() != nil { // it says nothing of the store
			return err
		}
		j.config.Outage.Note(err)
	}
	if err == nil {
		j.offer(ctx, update, projection, true)
	}
	if !errors.Is(err, session.ErrAway) || projection.Reason == session.ReasonIdle {
		return err
	}
	if kept := j.keep(ctx, update, projection); kept != nil {
		return errors.Join(err, kept)
	}
	j.offer(ctx, update, projection, false)
	j.config.Log.WarnContext(ctx, "epoch is kept on the local disk", "workspace", update.Scope.Workspace, "lane", update.Lane, "epoch", projection.Number, "error", err)
	return nil
}

// offer shows an epoch to other processes: one that the store has, too, because they may not reach
// that just now, or hear of it late.
func (j *Journal) offer(ctx context.Context, update session.Update, projection session.Projection, isStored bool) {
	if j.config.Peers == nil {
		return
	}
	key, err := j.config.Keys.Key(ctx, update.Scope.Workspace)
	if err == nil {
		err = j.config.Peers.offer(ctx, key, update.Scope.Workspace, update.Lane, projection, isStored)
	}
	if err != nil && !isStored {
		j.config.Log.WarnContext(ctx, "other replicas do not see an epoch that is kept on the local disk", "lane", update.Lane, "error", err)
	}
}

// Shown returns what other processes have offered of a lane whose newest epoch has a number here. Of two
// epochs with the same number that wait, the one that was offered first is that of all processes.
func (j *Journal) Shown(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, have int) (session.Shown, error) {
	if j.config.Peers == nil {
		return session.Shown{}, nil
	}
	asking, cancel := context.WithTimeout(ctx, j.config.Peers.within)
	defer cancel()
	key, err := j.config.Keys.Key(asking, workspace)
	if err != nil {
		return session.Shown{}, err
	}
	shown, err := j.config.Peers.shown(asking, key, workspace, lane)
	if newest := shown.Projection; newest != nil && (newest.Number < have || newest.Number == have && !j.holds(lane)) {
		shown.Projection = nil
	}
	return shown, err
}

// holds reports whether epochs of a lane wait here: those behind them have to, too.
func (j *Journal) holds(lane uuid.UUID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lanes[lane] > 0
}

// Replay hands the store what waits, oldest first, until that fails. It may be called at any
// time.
func (j *Journal) Replay(ctx context.Context) {
	j.replaying.Lock()
	defer j.replaying.Unlock()
	failed := map[uuid.UUID]bool{} // lanes whose later entries have to wait
	for _, one := range j.waiting() {
		if ctx.Err() != nil || failed[one.lane] {
			continue
		}
		err := j.handOver(ctx, one)
		switch {
		case err == nil:
			j.remove(one)
		case ctx.Err() != nil || errors.Is(err, session.ErrAway) || j.config.IsAway(err): // not because of the entry
			return
		case j.config.Now().Sub(one.at) > keepFor:
			j.config.Log.ErrorContext(ctx, "epoch on the local disk is deleted after seven days", "workspace", one.workspace, "lane", one.lane, "error", err)
			j.remove(one)
		default:
			failed[one.lane] = true
		}
	}
}

// handOver stores what an entry holds. Where another process was first with the epoch its
// originals are stored all the same.
func (j *Journal) handOver(ctx context.Context, one entry) error {
	ctx, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()
	held, err := j.read(ctx, one)
	if errors.Is(err, errUnreadable) {
		j.config.Log.ErrorContext(ctx, "epoch on the local disk cannot be read", "entry", one.name(), "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	err = j.Store.Commit(ctx, held.Seen, held.Projection)
	if !errors.Is(err, session.ErrOvertaken) && !errors.Is(err, session.ErrWarm) {
		return err
	}
	if err := j.Record(ctx, one.workspace, []session.Update{held.Seen}); err != nil {
		return fmt.Errorf("record originals: %w", err)
	}
	j.config.Overtaken(one.lane)
	return nil
}

// Interface guard.
var _ session.Store = (*Journal)(nil)
