package migrations

import (
	"context"
	"database/sql"
	"errors"

	"github.com/pressly/goose/v3"
)

// UpByOne applies the next migration alone, and reports whether there was one.
func UpByOne(ctx context.Context, ownerURL string) (bool, error) {
	err := withProvider(ctx, ownerURL, func(_ *sql.DB, provider *goose.Provider) error {
		_, err := provider.UpByOne(ctx)
		return err
	})
	if errors.Is(err, goose.ErrNoNextVersion) {
		return false, nil
	}
	return err == nil, err
}
