package tenantsdb

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"palimpsest/tenants"
)

// ExchangesChannel is the channel on which all replicas are told that exchanges were
// recorded: "workspace/count".
const ExchangesChannel = "palimpsest_exchanges"

const (
	announceEvery   = time.Second // at most, however many exchanges are recorded
	announceTimeout = 10 * time.Second
)

// Announcer tells all replicas how many exchanges were recorded, gathered over a
// second: one statement for all workspaces, outside the transactions that record.
type Announcer struct {
	db   *DB
	log  *slog.Logger
	wake chan struct{} // holds one value while something waits

	mu      sync.Mutex
	waiting map[tenants.WorkspaceID]int

	cancel  context.CancelFunc
	stopped sync.WaitGroup
}

// NewAnnouncer returns an Announcer that is not started yet.
func (db *DB) NewAnnouncer(log *slog.Logger) *Announcer {
	return &Announcer{db: db, log: log, wake: make(chan struct{}, 1), waiting: make(map[tenants.WorkspaceID]int)}
}

// Recorded notes that exchanges of a workspace were recorded. It never waits.
func (a *Announcer) Recorded(workspace tenants.WorkspaceID, exchanges int) {
	a.mu.Lock()
	a.waiting[workspace] += exchanges
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Start begins to tell.
func (a *Announcer) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.stopped.Go(func() { a.run(ctx) })
}

// Stop ends the Announcer; what waits is not told any more. It may be called twice, and
// without Start.
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

// announce tells what waits. What cannot be told is forgotten: pages show it when they
// are opened again.
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
