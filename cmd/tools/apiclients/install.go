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

// Install installs the newest version of each client into a directory, or with pinned the exact versions of
// package-lock.json. It needs npm and its registry.
func Install(ctx context.Context, directory string, pinned bool) error {
	source, err := fs.Sub(packages, "npm")
	if err != nil {
		return fmt.Errorf("the list of clients: %w", err)
	}
	if pinned {
		return npmtest.Install(ctx, source, directory)
	}

	return npmtest.InstallNewest(ctx, source, directory)
}

// Pinned returns the version of each package in the CI tests and the docs.
func Pinned() (map[string]string, error) {
	source, err := fs.Sub(packages, "npm")
	if err != nil {
		return nil, fmt.Errorf("the list of clients: %w", err)
	}

	return npmtest.Pinned(source)
}
