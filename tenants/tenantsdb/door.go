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

// Whom a transaction works for; row-level security reads it.
const (
	forWorkspace = "app.workspace_id"
	forUser      = "app.user_id"
	forEmail     = "app.email"
	forAPIKey    = "app.api_key" //nolint:gosec // name of a setting
	forToken     = "app.token"
	forDomain    = "app.domain"
)

// InTenant runs fn in a transaction that sees and changes the rows of one
// workspace only. It commits if fn returns nil; an error or a panic rolls back.
// Inside Together it takes part in that transaction.
func (db *DB) InTenant(ctx context.Context, workspace uuid.UUID, fn func(tx *gorm.DB) error) error {
	if common, ok := ctx.Value(commonKey{}).(common); ok && common.workspace == workspace {
		return fn(common.tx)
	}
	return db.transaction(ctx, forWorkspace, workspace.String(), fn)
}

// Together runs fn with a context in which everything that is done for a
// workspace is one transaction: all of it is durable when Together returns nil,
// and nothing of it was done when it returns an error.
func (db *DB) Together(ctx context.Context, workspace uuid.UUID, fn func(ctx context.Context) error) error {
	return db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return fn(context.WithValue(ctx, commonKey{}, common{workspace: workspace, tx: tx}))
	})
}

// common is the transaction that a context's statements share.
type common struct {
	workspace uuid.UUID
	tx        *gorm.DB
}

type commonKey struct{}

// inUser runs fn in a transaction that sees one person, their memberships and
// their logins.
func (db *DB) inUser(ctx context.Context, user uuid.UUID, fn func(tx *gorm.DB) error) error {
	return db.transaction(ctx, forUser, user.String(), fn)
}

// withEmail runs fn in a transaction that sees the person with an address.
func (db *DB) withEmail(ctx context.Context, email string, fn func(tx *gorm.DB) error) error {
	return db.transaction(ctx, forEmail, email, fn)
}

// withKey runs fn in a transaction that sees the API key with a hash.
func (db *DB) withKey(ctx context.Context, hash []byte, fn func(tx *gorm.DB) error) error {
	return db.transaction(ctx, forAPIKey, hex.EncodeToString(hash), fn)
}

// AsWorker runs fn in a transaction of the worker login, which sees across workspaces what
// background jobs need. It returns ErrNoWorker if the program has no such login.
func (db *DB) AsWorker(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return db.asOperator(ctx, uuid.Nil, fn)
}

// asOperator is AsWorker with a user: only the worker login can call the operator functions,
// and they check that the user is an operator.
func (db *DB) asOperator(ctx context.Context, operator uuid.UUID, fn func(tx *gorm.DB) error) error {
	if db.work == nil {
		return ErrNoWorker
	}
	return db.transactionOn(ctx, db.work, forUser, operator.String(), fn)
}

// unscoped runs fn in a transaction that sees no tenant's rows. It can queue work for the
// worker login.
func (db *DB) unscoped(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return db.transaction(ctx, forWorkspace, "", fn)
}

func (db *DB) transaction(ctx context.Context, setting, value string, fn func(tx *gorm.DB) error) error {
	return db.transactionOn(ctx, db.requests, setting, value, fn)
}

// transactionOn runs fn in a transaction on a connection of a pool. Its error is a
// tenants.ErrAway, too, if the database does not answer.
func (db *DB) transactionOn(ctx context.Context, pool *pool, setting, value string, fn func(tx *gorm.DB) error) error {
	err := pool.gorm.WithContext(ctx).Connection(func(session *gorm.DB) error {
		work, err := begin(session, setting, value)
		if err != nil {
			return err
		}
		ctx := context.WithValue(ctx, insideKey{}, inside{value: value, work: work, sealer: db.sealer})
		tx := session.Session(&gorm.Session{Context: ctx, NewDB: true})
		tx.Statement.ConnPool = work
		return work.run(ctx, func() error { return fn(tx) })
	})
	if batchdb.IsAway(err) && !errors.Is(err, tenants.ErrAway) {
		return fmt.Errorf("%w: %w", tenants.ErrAway, err)
	}
	return err
}

// workFor says whom the rest of the transaction works for.
func workFor(tx *gorm.DB, setting, value string) error { return later(tx, sqlWorkFor, setting, value) }
