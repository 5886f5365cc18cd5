package tenantsdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// The channels that notify all replicas of committed changes.
const (
	KeysChannel     = "palimpsest_keys"     // API keys changed: the id of their workspace, or of the person behind them
	SettingsChannel = "palimpsest_settings" // a workspace's pipeline or provider keys changed: its id
	LoginsChannel   = "palimpsest_logins"   // a login has ended: its id
	MailsChannel    = "palimpsest_mails"    // a mail waits or was requested; empty payload
)

const (
	probeEvery   = 5 * time.Second // silence after which a connection is probed
	probeTimeout = 5 * time.Second
	minPause     = 50 * time.Millisecond // before reconnecting
	maxPause     = 5 * time.Second
)

// Listener receives notifications on its own connection, and reconnects whenever it breaks.
type Listener struct {
	url      string
	log      *slog.Logger
	handlers map[string][]handler

	cancel  context.CancelFunc
	stopped sync.WaitGroup
}

type handler struct {
	told   func(payload string)
	missed func()
}

// NewListener returns a Listener. Start starts it.
func (db *DB) NewListener(log *slog.Logger) *Listener {
	return &Listener{url: db.core.listenURL, log: log, handlers: make(map[string][]handler)}
}

// Handle registers a handler for a channel. told runs with the payload of each notification, one at a time.
// missed runs when notifications may have been lost: at the loss of the connection, and again when it is
// back. Handle must be called before Start.
func (l *Listener) Handle(channel string, told func(payload string), missed func()) {
	l.handlers[channel] = append(l.handlers[channel], handler{told: told, missed: missed})
}

// Start connects and returns when notifications are received.
func (l *Listener) Start(ctx context.Context) error {
	connection, err := l.connect(ctx)
	if err != nil {
		return err
	}
	ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.stopped.Go(func() { l.run(ctx, connection) })
	return nil
}

// Stop stops the listener and waits for a running handler. It may be called twice, and without Start.
func (l *Listener) Stop() {
	if l.cancel != nil {
		l.cancel()
	}
	l.stopped.Wait()
}

func (l *Listener) connect(ctx context.Context) (*pgx.Conn, error) {
	connection, err := pgx.Connect(ctx, l.url)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	for channel := range l.handlers {
		if _, err := connection.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
			return nil, errors.Join(fmt.Errorf("listen on %s: %w", channel, err), connection.Close(ctx))
		}
	}
	return connection, nil
}

// run receives notifications until ctx ends.
func (l *Listener) run(ctx context.Context, connection *pgx.Conn) {
	for connection != nil {
		err := l.hear(ctx, connection)
		_ = connection.Close(context.WithoutCancel(ctx)) // broken or no longer needed
		if ctx.Err() != nil {
			return
		}
		l.log.WarnContext(ctx, "changes of other replicas are not heard", "error", err)
		l.missed()
		if connection = l.reconnect(ctx); connection != nil {
			l.log.InfoContext(ctx, "changes of other replicas are heard again")
			l.missed()
		}
	}
}

func (l *Listener) missed() {
	for _, handlers := range l.handlers {
		for _, handler := range handlers {
			handler.missed()
		}
	}
}

// hear passes on notifications until the connection breaks or ctx ends.
func (l *Listener) hear(ctx context.Context, connection *pgx.Conn) error {
	for {
		waiting, cancel := context.WithTimeout(ctx, probeEvery)
		notification, err := connection.WaitForNotification(waiting)
		cancel()
		switch {
		case err == nil:
			for _, handler := range l.handlers[notification.Channel] {
				handler.told(notification.Payload)
			}
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return err
		default:
			if err := probe(ctx, connection); err != nil {
				return err
			}
		}
	}
}

// probe checks whether a silent connection still works.
func probe(ctx context.Context, connection *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return connection.Ping(ctx)
}

// reconnect retries until it succeeds; it returns nil when ctx ends.
func (l *Listener) reconnect(ctx context.Context) *pgx.Conn {
	pause := minPause
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		attempt, cancel := context.WithTimeout(ctx, probeTimeout)
		connection, err := l.connect(attempt)
		cancel()
		if err == nil {
			return connection
		}
		pause = min(2*pause, maxPause)
	}
}

// notify notifies all replicas after the transaction is committed.
func notify(tx *gorm.DB, channel, payload string) error {
	return batchdb.Write(tx, "SELECT pg_notify(?, ?)", channel, payload)
}

// ExchangesChannel notifies all replicas of recorded exchanges: "workspace/API key/count".
const ExchangesChannel = "palimpsest_exchanges"

const (
	announceEvery   = time.Second // at most, however many exchanges are recorded
	announceTimeout = 10 * time.Second
)

// Announcer notifies all replicas of the number of recorded exchanges once a second, with one statement for
// all API keys, outside the recording transactions.
type Announcer struct {
	db   *DB
	log  *slog.Logger
	wake chan struct{} // holds one value while something waits

	mu      sync.Mutex
	waiting map[sender]int

	cancel  context.CancelFunc
	stopped sync.WaitGroup
}

// sender is the API key that exchanges were sent with.
type sender struct {
	workspace tenants.WorkspaceID
	apiKey    uuid.UUID
}

// NewAnnouncer returns an Announcer. Start starts it.
func (db *DB) NewAnnouncer(log *slog.Logger) *Announcer {
	return &Announcer{db: db, log: log, wake: make(chan struct{}, 1), waiting: make(map[sender]int)}
}

// Recorded counts recorded exchanges of a workspace, given the API key of each. It never blocks.
func (a *Announcer) Recorded(workspace tenants.WorkspaceID, apiKeys []uuid.UUID) {
	a.mu.Lock()
	for _, apiKey := range apiKeys {
		a.waiting[sender{workspace, apiKey}]++
	}
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
	for of, count := range a.waiting {
		payloads = append(payloads, fmt.Sprintf("%s/%s/%d", of.workspace, of.apiKey, count))
	}
	clear(a.waiting)
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	if _, err := a.db.core.requests.pgx.Exec(ctx, `SELECT pg_notify($1, payload) FROM unnest($2::text[]) payload`, ExchangesChannel, payloads); err != nil {
		return fmt.Errorf("tell of exchanges: %w", err)
	}
	return nil
}
