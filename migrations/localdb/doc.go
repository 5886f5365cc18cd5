// Package localdb runs a private PostgreSQL cluster in a directory, with the PostgreSQL programs installed on
// the machine. The cluster ends with the program. After a kill it comes back with everything that was
// committed.
package localdb

import (
	"errors"
	"log/slog"
)

// ErrInUse is the error if another running program has a cluster in the directory.
var ErrInUse = errors.New("another program is running on this database directory")

// Config configures a cluster.
type Config struct {
	// Dir is the cluster's directory. It is created if missing. A program that runs as root hands it to the
	// user postgres, or else to the user nobody.
	Dir string

	// Path lists directories of PostgreSQL's programs, in the format of the environment variable PATH. They
	// are searched before the packages' usual places. The server runs with it.
	Path string

	// Log gets starts and recoveries; optional.
	Log *slog.Logger

	// Volatile gives up durability for speed: commits can be lost when the machine fails. For tests only.
	Volatile bool
}
