package tenantsdb

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"palimpsest/tenants"
)

// ExchangesChannel notifies all replicas of recorded exchanges: "workspace/count".
const ExchangesChannel = "palimpsest_exchanges"

const (
	announceEvery   = time.Second // at most, however many exchanges are recorded
	announceTimeout = 10 * time.Second
)

// Announcer notifies all replicas of the number of recorded exchanges once a second, with one statement for
// all workspaces, outside the recording transactions.
type Announcer struct {
	db   *DB
	log  *slog.Logger
	wake chan struct{} // holds one value while something waits

	mu      sync.Mutex
	waiting map[tenants.WorkspaceID]int

	cancel  context.CancelFunc
	stopped sync.WaitGroup
}

// NewAnnouncer returns an Announcer. Start starts it.
func (db *DB) NewAnnouncer(log *slog.Logger) *Announcer {
	return &Announcer{db: db, log: log, wake: make(chan struct{}, 1), waiting: make(map[tenants.WorkspaceID]int)}
}

// Recorded counts recorded exchanges of a workspace. It never blocks.
func (a *Announcer) Recorded(workspace tenants.WorkspaceID, exchanges int) {
	a.mu.Lock()
	a.waiting[workspace] += exchanges
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Start starts sending notifications.
func (a *Announcer) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.stopped.Go(func() { a.run(ctx) })
}

// Stop stops the Announcer and drops waiting notifications. It may be called twice, and without Start.
func (a *Announcer) Stop() {
	if a.cancel != nil {
		a.cancel()
	}
	a.stopped.Wait()
}

func (a *Announcer) run(ctx context.Context) {
	pause := time.NewTicker(announceEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		}
		if err := a.announce(ctx); err != nil && ctx.Err() == nil {
			a.log.WarnContext(ctx, "open pages are not told of exchanges", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// announce sends the waiting notifications. It drops failed ones because pages show the data on the next
// load.
func (a *Announcer) announce(ctx context.Context) error {
	a.mu.Lock()
	payloads := make([]string, 0, len(a.waiting))
	for workspace, count := range a.waiting {
		payloads = append(payloads, fmt.Sprintf("%s/%d", workspace, count))
	}
	clear(a.waiting)
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	if _, err := a.db.requests.pgx.Exec(ctx, `SELECT pg_notify($1, payload) FROM unnest($2::text[]) payload`, ExchangesChannel, payloads); err != nil {
		return fmt.Errorf("tell of exchanges: %w", err)
	}
	return nil
}
