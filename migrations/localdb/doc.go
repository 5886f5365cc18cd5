// Package localdb runs a private PostgreSQL cluster below a directory, from the
// PostgreSQL programs that are installed on the machine. The cluster ends with the
// program and comes back, with everything that was committed, after a kill.
package localdb

import (
	"errors"
	"log/slog"
)

// ErrInUse says that another running program has a cluster in the directory.
var ErrInUse = errors.New("another program is running on this database directory")

// Config says where a cluster lives.
type Config struct {
	// Dir is the cluster's directory. It is created where it is missing. A program
	// that runs as root hands it to the user postgres, or else nobody.
	Dir string

	// Path lists the directories in which PostgreSQL's programs are looked for before the
	// places where packages put them, as the environment variable PATH does. The server runs
	// with it.
	Path string

	// Log learns of starts and recoveries; nil if no one.
	Log *slog.Logger

	// Volatile gives up durability for speed: what was committed can be lost when
	// the machine fails. For tests only.
	Volatile bool
}
