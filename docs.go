// Package palimpsest holds the documentation, so that the program can show it.
package palimpsest

import "embed"

// Docs are the pages of the documentation, such as docs/clients.md.
//
//go:embed docs/*.md
var Docs embed.FS
