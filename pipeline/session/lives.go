package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"palimpsest/pipeline/localcache"
	"palimpsest/tenants"
)

const (
	// livesAge is how long lives are used before they are read again.
	livesAge = 10 * time.Minute
	// livesTimeout bounds one read, and livesReaders how many run in parallel.
	livesTimeout = 5 * time.Second
	livesReaders = 2
	// knownLives bounds the remembered pairs of workspace and client.
	knownLives = 10_000
)

// Lives caches the lifetimes of clients' subagents in each workspace, as their final lengths in messages. It
// reads them in the background, so that no request waits.
type Lives struct {
	read    func(ctx context.Context, workspace tenants.WorkspaceID, client string) ([]int, error)
	known   *localcache.Cache[string, lives] // by workspace and client
	reading *semaphore.Weighted
	now     func() time.Time
}

type lives struct {
	messages []int // in order
	at       time.Time
}

// NewLives returns Lives that read those of subagents that have ended.
func NewLives(read func(ctx context.Context, workspace tenants.WorkspaceID, client string) ([]int, error), now func() time.Time) (*Lives, error) {
	known, err := localcache.New[string](localcache.Options[lives]{MaximumSize: knownLives})
	if err != nil {
		return nil, fmt.Errorf("known lives: %w", err)
	}
	return &Lives{read: read, known: known, reading: semaphore.NewWeighted(livesReaders), now: now}, nil
}

// Of returns the final lengths, in messages, of a client's subagents in a workspace, sorted. It is nil until
// they have been read. The caller must not change it.
func (l *Lives) Of(workspace tenants.WorkspaceID, client string) []int {
	of := workspace.String() + " " + client
	found, isKnown := l.known.Get(of)
	if (!isKnown || l.now().Sub(found.at) > livesAge) && l.reading.TryAcquire(1) {
		l.known.Set(of, lives{messages: found.messages, at: l.now()}) // others need not read it
		go func() {
			defer l.reading.Release(1)
			l.refresh(of, workspace, client)
		}()
	}
	return found.messages
}

// refresh reads lives again. If that fails, the known ones stay.
func (l *Lives) refresh(of string, workspace tenants.WorkspaceID, client string) {
	ctx, cancel := context.WithTimeout(context.Background(), livesTimeout)
	defer cancel()
	messages, err := l.read(ctx, workspace, client)
	if err != nil {
		return
	}
	slices.Sort(messages)
	l.known.Set(of, lives{messages: messages, at: l.now()})
}
