package sessiondb

import (
	"fmt"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
)

// orAway wraps an error in a session.ErrAway if the database does not answer or accepts no writes now.
func orAway(err error) error {
	if !batchdb.IsAway(err) {
		return err
	}
	return fmt.Errorf("%w: %w", session.ErrAway, err)
}
