package apiclients

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"palimpsest/api/npmtest"
)

// packages says which clients are installed, at which versions.
//
//go:embed npm/package.json npm/package-lock.json
var packages embed.FS

// Install installs the clients into a directory. It needs npm and its registry.
func Install(ctx context.Context, directory string) error {
	source, err := fs.Sub(packages, "npm")
	if err != nil {
		return fmt.Errorf("the list of clients: %w", err)
	}

	return npmtest.Install(ctx, source, directory)
}
