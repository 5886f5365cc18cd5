package batchdb

import (
	"context"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// TxRunner opens the transactions in which rows can be seen and changed.
type TxRunner interface {
	// InTenant runs fn in a transaction that sees the rows of one workspace.
	InTenant(ctx context.Context, workspace uuid.UUID, fn func(tx *gorm.DB) error) error

	// AsWorker runs fn in a transaction that sees what background work needs of all
	// workspaces.
	AsWorker(ctx context.Context, fn func(tx *gorm.DB) error) error
}
