// Package journal keeps compactions on the local disk while the store does not answer, so that a session that
// outgrows its window can go on. It hands them over once the store answers again.
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
	// keepFor is the age at which an entry is deleted that the store never accepts because its workspace was
	// deleted.
	keepFor = 7 * 24 * time.Hour
	// DefaultBytes is the default size limit of a journal.
	DefaultBytes = 1 << 30
)

// ErrFull says that a journal has no room for an entry.
var ErrFull = errors.New("the local journal is full")

// Config configures a Journal.
type Config struct {
	Dir      string
	MaxBytes int64
	Store    session.Store
	Keys     *archive.Keys
	Log      *slog.Logger
	Now      func() time.Time
	Outage   *session.Outage // of Store, during which prompts do not wait for it

	Peers *Peers // offers waiting epochs to other processes; optional

	// IsAway reports whether an error of Keys is temporary.
	IsAway func(error) bool

	// Overtaken is notified of a lane whose epoch another process made first.
	Overtaken func(lane uuid.UUID)
}

// Journal is a Store that keeps an epoch on the disk if its Store fails.
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
	Kept    int // entries that this process has written in total
}

// Stats returns how much waits on the disk.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return Stats{Entries: len(j.entries), Bytes: j.bytes, Kept: j.kept}
}

// New returns the journal of a directory, with the entries of earlier processes. It creates the directory if
// needed.
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

// Commit stores an epoch as its Store does. If the store is away or too slow, the epoch is durable on the
// local disk when Commit returns, unless the epoch can wait.
func (j *Journal) Commit(ctx context.Context, update session.Update, projection session.Projection) error {
	err := session.ErrAway
	if !j.holds(update.Lane) && !j.config.Outage.Lasts() {
		asking, cancel := context.WithTimeout(ctx, storeTimeout)
		err = j.Store.Commit(asking, update, projection)
		cancel()
		if ctx.Err() != nil { // the error is not the store's
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

// offer offers an epoch to other processes. It does so for stored epochs, too, because others may be unable
// to reach the store or learn of them late.
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

// Shown returns the state that other processes have offered of a lane with have as its newest epoch here. Of
// two waiting epochs with the same number, the one offered first is valid for all processes.
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

// holds reports whether epochs of a lane wait here, so that later ones must wait, too.
func (j *Journal) holds(lane uuid.UUID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lanes[lane] > 0
}

// Replay hands the waiting entries to the store, oldest first, until one fails. It may be called at any time.
func (j *Journal) Replay(ctx context.Context) {
	j.replaying.Lock()
	defer j.replaying.Unlock()
	failed := map[uuid.UUID]bool{} // lanes with later entries that must wait
	for _, one := range j.waiting() {
		if ctx.Err() != nil || failed[one.lane] {
			continue
		}
		err := j.handOver(ctx, one)
		switch {
		case err == nil:
			j.remove(one)
		case ctx.Err() != nil || errors.Is(err, session.ErrAway) || j.config.IsAway(err): // not the entry's fault
			return
		case j.config.Now().Sub(one.at) > keepFor:
			j.config.Log.ErrorContext(ctx, "epoch on the local disk is deleted after seven days", "workspace", one.workspace, "lane", one.lane, "error", err)
			j.remove(one)
		default:
			failed[one.lane] = true
		}
	}
}

// handOver stores the content of an entry. If another process was first with the epoch, or the session is
// pinned, its originals are still stored.
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
	if !errors.Is(err, session.ErrOvertaken) && !errors.Is(err, session.ErrWarm) && !errors.Is(err, session.ErrPinned) {
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
