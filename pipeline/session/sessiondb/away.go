package sessiondb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"palimpsest/pipeline/session"
)

// orAway returns an error that is a session.ErrAway, too, if it says that the database does
// not answer or takes nothing just now.
func orAway(err error) error {
	if err == nil || !isAway(err) {
		return err
	}
	return fmt.Errorf("%w: %w", session.ErrAway, err)
}

// isAway reports whether an error says nothing of what was asked. Postgres' classes 08, 53, 57
// and 58 are connections, a full disk or memory, an operator's doing and the system; 25006 is
// a replica that takes no writes yet.
func isAway(err error) bool {
	if refused, is := errors.AsType[*pgconn.PgError](err); is {
		_, connecting := errors.AsType[*pgconn.ConnectError](err)
		return connecting || refused.Code == "25006" || slices.Contains([]string{"08", "53", "57", "58"}, refused.Code[:2])
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connecting || network || pgconn.SafeToRetry(err) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
