package batchdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnopened says that the program has not opened the database yet: it was away when the program started.
var ErrUnopened = errors.New("the database is not open yet")

// IsAway reports whether an error says that the database does not answer, or takes nothing just
// now: it says nothing about what was asked. Postgres' classes 08, 53, 57 and 58 are connections,
// a full disk or memory, an operator's doing and the system; 25006 is a replica that takes no
// writes yet.
func IsAway(err error) bool {
	if err == nil {
		return false
	}
	if refused, is := errors.AsType[*pgconn.PgError](err); is {
		_, connecting := errors.AsType[*pgconn.ConnectError](err)
		return connecting || refused.Code == "25006" || slices.Contains([]string{"08", "53", "57", "58"}, refused.Code[:2])
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connecting || network || errors.Is(err, ErrUnopened) || pgconn.SafeToRetry(err) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
