// Package tenantsdb stores workspaces, people, keys, pipeline configs and usage in Postgres. DB has one store
// for each noun. All share a core, which opens the transactions: for one workspace, one person, the owner of
// a key or link, or the worker. An exported method of a store is one transaction, an unexported function one
// query.
package tenantsdb

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Config configures a DB.
type Config struct {
	// URL is the database with the login that serves requests. It may point to a pgbouncer in transaction
	// mode.
	URL string

	// WorkerURL is the database with the login for background jobs and operators' pages,
	// optional; without it both return ErrNoWorker.
	WorkerURL string

	// ReadURL is a replica of the database, with an app login, from which Reader reads; optional.
	ReadURL string

	// ReadFailed receives the reason why Reader reads from the database itself for a while; optional.
	ReadFailed func(error)

	// ListenURL is the database for notifications, without a pgbouncer; "" means URL.
	ListenURL string

	// Sealer seals the texts of waiting mails; nil stores them unsealed.
	Sealer tenants.Sealer

	// MaxConns limits the connections of URL; 0 means pool_max_conns of the URL, by default 16. WorkerURL has
	// its own pool_max_conns, by default 6.
	MaxConns int32
}

// DB is the product's database: one store for each noun, all on the same connections.
type DB struct {
	core *core

	people
	gateway
	traffic
	shown
	upkeep
}

// people are the stores of users, logins and memberships.
type people struct {
	Accounts    Accounts
	Logins      Logins
	Devices     DeviceLogins
	Factors     Factors
	SignOn      SignOn
	Workspaces  Workspaces
	Invitations Invitations
	Operators   Operators
}

// gateway are the stores for a workspace's requests.
type gateway struct {
	APIKeys       APIKeys
	ProviderKeys  ProviderKeys
	DataKeys      DataKeys
	Pipelines     Pipelines
	ModelWindows  ModelWindows
	ProxySettings ProxySettings
}

// traffic are the stores of request counts.
type traffic struct {
	Exchanges Exchanges
	Usage     Usage
	Alerts    Alerts
}

// shown are the stores of people's data in the dashboard.
type shown struct {
	Views    Views
	Stars    Stars
	Comments Comments
}

// upkeep are the stores of a workspace as a whole.
type upkeep struct {
	Audit    Audit
	Data     Data
	Deletion Deletion
	Mail     Mail
}

// newDB returns a DB with a core's stores.
func newDB(c *core) *DB {
	return &DB{
		core: c,

		people: people{
			Accounts: Accounts{c}, Logins: Logins{c}, Devices: DeviceLogins{c}, Factors: Factors{c}, SignOn: SignOn{c},
			Workspaces: Workspaces{c}, Invitations: Invitations{c}, Operators: Operators{c},
		},
		gateway: gateway{
			APIKeys: APIKeys{c}, ProviderKeys: ProviderKeys{c}, DataKeys: DataKeys{c},
			Pipelines: Pipelines{c}, ModelWindows: ModelWindows{c},
			ProxySettings: ProxySettings{Data: Data{c}, Pipelines: Pipelines{c}, providerKeys: ProviderKeys{c}, modelWindows: ModelWindows{c}},
		},
		traffic: traffic{Exchanges: Exchanges{c}, Usage: Usage{c}, Alerts: Alerts{c}},
		shown:   shown{Views: Views{c}, Stars: Stars{c}, Comments: Comments{c}},
		upkeep:  upkeep{Audit: Audit{c}, Data: Data{c}, Deletion: Deletion{c}, Mail: Mail{c}},
	}
}

// Open creates the DB and connects to it. It returns the errors of Connect.
func Open(ctx context.Context, config Config) (*DB, error) {
	db, err := New(config)
	if err != nil {
		return nil, err
	}
	if err := db.Connect(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// New creates the DB without connecting. Until Connect has returned nil, operations fail as if the database
// were away.
func New(config Config) (*DB, error) {
	requests, err := newPool(config.URL, config.MaxConns, defaultMaxConns, isBound)
	if err != nil {
		return nil, err
	}
	db := newDB(&core{requests: requests, listenURL: cmp.Or(config.ListenURL, config.URL), sealer: config.Sealer})
	if config.ReadURL != "" {
		if db.core.replica, err = newReplica(config); err != nil {
			db.Close()
			return nil, fmt.Errorf("%w: %w", ErrReplica, err)
		}
	}
	if config.WorkerURL == "" {
		return db, nil
	}
	if db.core.work, err = newPool(config.WorkerURL, 0, defaultWorkConns, isWorker); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// Connect checks the logins and opens the DB for operations. It returns ErrUnbound if the login of URL is not
// an app login, with ErrReplica for that of ReadURL, and ErrNoWorker if the login of WorkerURL is not a
// worker login. After an error it may be called again.
func (db *DB) Connect(ctx context.Context) error {
	if err := db.core.requests.connect(ctx); err != nil {
		return err
	}
	if db.core.replica != nil {
		if err := db.core.replica.connect(ctx); err != nil {
			return fmt.Errorf("%w: %w", ErrReplica, err)
		}
	}
	if db.core.work == nil {
		return nil
	}
	return db.core.work.connect(ctx)
}

// InTenant runs fn in a transaction that sees and changes the rows of one workspace only. It commits if fn
// returns nil; an error or a panic rolls back. With the tenant of Together, it joins that transaction.
func (db *DB) InTenant(ctx context.Context, tenant tenants.Tenant, fn func(tx *gorm.DB) error) error {
	return db.core.inTenant(ctx, tenant, fn)
}

// Together implements tenants.Transactor.
func (db *DB) Together(ctx context.Context, tenant tenants.Tenant, fn func(tenant tenants.Tenant) error) error {
	return db.core.together(ctx, tenant, fn)
}

// AsWorker runs fn in a transaction of the worker login, which can read the data for background jobs in all
// workspaces. It returns ErrNoWorker if the program has no such login.
func (db *DB) AsWorker(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return db.core.asWorker(ctx, fn)
}

// Pool returns the connections for requests, for statements that need pgx itself. Tenants' rows are visible
// through InTenant only.
func (db *DB) Pool() *pgxpool.Pool { return db.core.requests.pgx }

// WorkPool returns the connections for background jobs, for libraries that need pgx itself.
// It is nil without a WorkerURL.
func (db *DB) WorkPool() *pgxpool.Pool {
	if db.core.work == nil {
		return nil
	}
	return db.core.work.pgx
}

// ListenURL is the database for notifications, without a pgbouncer.
func (db *DB) ListenURL() string { return db.core.listenURL }

// Ping returns an error if the database does not answer.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.core.requests.pgx.Ping(ctx); err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	return nil
}

// Close closes all connections; it waits for those in use.
func (db *DB) Close() {
	db.core.requests.close()
	if db.core.replica != nil {
		db.core.replica.pool.close()
	}
	if db.core.work != nil {
		db.core.work.close()
	}
}

// The setting that names a transaction's workspace or person; row-level security reads it.
const (
	forWorkspace = "app.workspace_id"
	forUser      = "app.user_id"
	forEmail     = "app.email"
	forAPIKey    = "app.api_key" //nolint:gosec // name of a setting
	forToken     = "app.token"
	forDomain    = "app.domain"
	forOrigin    = "app.origin"
)

// core is the connections that all stores of a database share.
type core struct {
	requests  *pool
	work      *pool    // nil if there is no WorkerURL
	replica   *replica // nil if there is no ReadURL
	reads     *replica // of a Reader: runs its transactions of workspaces; nil for requests
	listenURL string
	sealer    tenants.Sealer
}

// inTenant is DB.InTenant.
func (c *core) inTenant(ctx context.Context, tenant tenants.Tenant, fn func(tx *gorm.DB) error) error {
	if _, joins := tenant.(*transaction); !joins && c.reads != nil {
		if did, err := c.reads.read(ctx, c, tenant.Workspace(), fn); did {
			return err
		}
	}
	return c.current(ctx, tenant, fn)
}

// current is inTenant on the database itself, even for a Reader.
func (c *core) current(ctx context.Context, tenant tenants.Tenant, fn func(tx *gorm.DB) error) error {
	if begun, joins := tenant.(*transaction); joins {
		return fn(begun.tx)
	}
	return c.transaction(ctx, forWorkspace, tenant.Workspace().String(), fn)
}

// together is DB.Together.
func (c *core) together(ctx context.Context, tenant tenants.Tenant, fn func(tenant tenants.Tenant) error) error {
	return c.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		begun, err := transactionOf(tx)
		if err != nil {
			return err
		}
		return fn(begun)
	})
}

// inUser runs fn in a transaction that sees one person, their memberships and
// their logins.
func (c *core) inUser(ctx context.Context, user uuid.UUID, fn func(tx *gorm.DB) error) error {
	return c.transaction(ctx, forUser, user.String(), fn)
}

// withEmail runs fn in a transaction that sees the person with an address.
func (c *core) withEmail(ctx context.Context, email string, fn func(tx *gorm.DB) error) error {
	return c.transaction(ctx, forEmail, email, fn)
}

// withKey runs fn in a transaction that sees the API key with a hash.
func (c *core) withKey(ctx context.Context, hash []byte, fn func(tx *gorm.DB) error) error {
	return c.transaction(ctx, forAPIKey, hex.EncodeToString(hash), fn)
}

// asWorker is DB.AsWorker.
func (c *core) asWorker(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return c.asOperator(ctx, uuid.Nil, fn)
}

// asOperator is asWorker with a user. Only the worker login can call the operator functions, and they check
// that the user is an operator.
func (c *core) asOperator(ctx context.Context, operator uuid.UUID, fn func(tx *gorm.DB) error) error {
	if c.work == nil {
		return ErrNoWorker
	}
	return c.transactionOn(ctx, c.work, forUser, operator.String(), fn)
}

// unscoped runs fn in a transaction that sees no tenant's rows. It can queue work for the worker login.
func (c *core) unscoped(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return c.transaction(ctx, forWorkspace, "", fn)
}

func (c *core) transaction(ctx context.Context, setting, value string, fn func(tx *gorm.DB) error) error {
	return c.transactionOn(ctx, c.requests, setting, value, fn)
}

// transactionOn runs fn in a transaction on a connection of a pool. If the database does not answer, the
// error is also a tenants.ErrAway.
func (c *core) transactionOn(ctx context.Context, pool *pool, setting, value string, fn func(tx *gorm.DB) error) error {
	err := pool.gorm.WithContext(ctx).Connection(func(session *gorm.DB) error {
		work, err := begin(session, setting, value)
		if err != nil {
			return err
		}
		tx := session.Session(&gorm.Session{Context: ctx, NewDB: true})
		tx.Statement.ConnPool = work
		work.sealer, work.tx = c.sealer, tx
		return work.run(ctx, func() error { return fn(tx) })
	})
	if batchdb.IsAway(err) && !errors.Is(err, tenants.ErrAway) {
		return fmt.Errorf("%w: %w", tenants.ErrAway, err)
	}
	return err
}

// workFor sets the workspace or person of the rest of the transaction.
func workFor(tx *gorm.DB, setting, value string) error { return later(tx, sqlWorkFor, setting, value) }

// each converts each row.
func each[R, T any](rows []R, to func(*R) T) []T {
	made := make([]T, len(rows))
	for i := range rows {
		made[i] = to(&rows[i])
	}
	return made
}
