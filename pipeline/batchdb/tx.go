package batchdb

import (
	"context"

	"gorm.io/gorm"

	"palimpsest/tenants"
)

// TxRunner opens database transactions with access to tenants' rows.
type TxRunner interface {
	// InTenant runs fn in a transaction that sees the rows of one workspace.
	InTenant(ctx context.Context, tenant tenants.Tenant, fn func(tx *gorm.DB) error) error

	// AsWorker runs fn in a transaction that sees the rows of all workspaces that background work needs.
	AsWorker(ctx context.Context, fn func(tx *gorm.DB) error) error
}
