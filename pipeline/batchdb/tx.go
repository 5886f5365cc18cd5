package batchdb

import (
	"context"

	"gorm.io/gorm"

	"palimpsest/tenants"
)

// TxRunner opens the transactions in which rows can be seen and changed.
type TxRunner interface {
	// InTenant runs fn in a transaction that sees the rows of one workspace.
	InTenant(ctx context.Context, tenant tenants.Tenant, fn func(tx *gorm.DB) error) error

	// AsWorker runs fn in a transaction that sees what background work needs of all
	// workspaces.
	AsWorker(ctx context.Context, fn func(tx *gorm.DB) error) error
}
