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

// MAC is what a key makes of a manifest.
func MAC(manifest string, key []byte) string { return string(macOf([]byte(manifest), key)) }
