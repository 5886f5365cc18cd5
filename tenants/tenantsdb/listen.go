package tenantsdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"
)

// The channels on which all replicas are told about changes once they are committed.
const (
	KeysChannel     = "palimpsest_keys"     // API keys changed: the id of their workspace, or of the person behind them
	SettingsChannel = "palimpsest_settings" // a workspace's pipeline or provider keys changed: its id
	LoginsChannel   = "palimpsest_logins"   // a login has ended: its id
	MailsChannel    = "palimpsest_mails"    // a mail waits or was asked for: nothing
)

const (
	probeEvery   = 5 * time.Second // silence after which a connection is tried
	probeTimeout = 5 * time.Second
	minPause     = 50 * time.Millisecond // before connecting again
	maxPause     = 5 * time.Second
)

// Listener hears notifications on a connection of its own, which it opens again
// whenever it breaks.
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

// NewListener returns a Listener that is not started yet.
func (db *DB) NewListener(log *slog.Logger) *Listener {
	return &Listener{url: db.listenURL, log: log, handlers: make(map[string][]handler)}
}

// Handle has told called with the payload of each notification on a channel, one
// at a time, and missed when some may have been lost: as soon as the connection
// is known to be broken, and once more when it is back. It must be called before
// Start.
func (l *Listener) Handle(channel string, told func(payload string), missed func()) {
	l.handlers[channel] = append(l.handlers[channel], handler{told: told, missed: missed})
}

// Start connects and returns when notifications are heard.
func (l *Listener) Start(ctx context.Context) error {
	connection, err := l.connect(ctx)
	if err != nil {
		return err
	}
	ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.stopped.Go(func() { l.run(ctx, connection) })
	return nil
}

// Stop ends the listener and waits for a handler that is running. It may be
// called twice, and without Start.
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

// run hears notifications until ctx ends.
func (l *Listener) run(ctx context.Context, connection *pgx.Conn) {
	for connection != nil {
		err := l.hear(ctx, connection)
		_ = connection.Close(context.WithoutCancel(ctx)) // broken or done with
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

// hear passes notifications on until the connection breaks or ctx ends.
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

// probe finds out whether a silent connection still is one.
func probe(ctx context.Context, connection *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return connection.Ping(ctx)
}

// reconnect tries until it succeeds; it returns nil when ctx ends.
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

// notify tells all replicas once the transaction is committed.
func notify(tx *gorm.DB, channel, payload string) error {
	return tx.Exec("SELECT pg_notify(?, ?)", channel, payload).Error
}
