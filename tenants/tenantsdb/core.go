package tenantsdb

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

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
