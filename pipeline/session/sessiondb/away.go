package sessiondb

import (
	"fmt"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
)

// orAway returns an error that is a session.ErrAway, too, if it says that the database does
// not answer or takes nothing just now.
func orAway(err error) error {
	if !batchdb.IsAway(err) {
		return err
	}
	return fmt.Errorf("%w: %w", session.ErrAway, err)
}
