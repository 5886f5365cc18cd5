package snapshot

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Compare does the last step of a restore on any database.
func (m *Manifest) Compare(ctx context.Context, ownerURL string) error {
	connection, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	return m.compare(ctx, connection)
}
