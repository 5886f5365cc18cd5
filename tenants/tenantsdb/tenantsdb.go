package tenantsdb

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says which database is worked with, and how.
type Config struct {
	// URL is the database with the login that serves requests; a pgbouncer in transaction
	// mode may stand in between.
	URL string

	// WorkerURL is the database with the login for background jobs and operators' pages,
	// optional; without it both return ErrNoWorker.
	WorkerURL string

	// ListenURL is where notifications are heard, past any pgbouncer; empty: URL.
	ListenURL string

	// Sealer seals the texts of mails that wait; nil: they wait as they are.
	Sealer Sealer

	// MaxConns limits the connections of URL; 0 means pool_max_conns of the URL, by default
	// 16. WorkerURL is limited by its own pool_max_conns, by default 6.
	MaxConns int32
}

// Sealer seals a secret for what about names.
type Sealer interface {
	SealAbout(about, secret string) ([]byte, error)
	OpenAbout(about string, sealed []byte) (secret string, newest bool, err error)
}

// DB is the product's database.
type DB struct {
	requests  *pool
	work      *pool // nil if there is no WorkerURL
	listenURL string
	sealer    Sealer
}

// Open opens the database. It returns ErrUnbound if the login of URL is not an app login,
// and ErrNoWorker if the login of WorkerURL is not a worker login.
func Open(ctx context.Context, config Config) (*DB, error) {
	requests, err := openPool(ctx, config.URL, config.MaxConns, defaultMaxConns, checkBound)
	if err != nil {
		return nil, err
	}
	db := &DB{requests: requests, listenURL: cmp.Or(config.ListenURL, config.URL), sealer: config.Sealer}
	if config.WorkerURL == "" {
		return db, nil
	}
	if db.work, err = openPool(ctx, config.WorkerURL, 0, defaultWorkConns, checkWorker); err != nil {
		requests.close()
		return nil, err
	}
	return db, nil
}

// Pool returns the connections for requests, for statements that need pgx itself. A
// tenant's rows are seen through InTenant only.
func (db *DB) Pool() *pgxpool.Pool { return db.requests.pgx }

// WorkPool returns the connections for background jobs, for libraries that need pgx itself.
// It is nil without a WorkerURL.
func (db *DB) WorkPool() *pgxpool.Pool {
	if db.work == nil {
		return nil
	}
	return db.work.pgx
}

// Ping returns an error if the database does not answer.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.requests.pgx.Ping(ctx); err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	return nil
}

// Close closes all connections; it waits for those in use.
func (db *DB) Close() {
	db.requests.close()
	if db.work != nil {
		db.work.close()
	}
}
