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

// ErrUnopened means that the database is not open yet, because it was unreachable when the program started.
var ErrUnopened = errors.New("the database is not open yet")

// IsAway reports whether an error means that the database is unreachable or temporarily refuses work. Such an
// error is not caused by the statement. Postgres' classes 08, 53, 57 and 58 are connection errors, a full
// disk or memory, operator intervention and system errors; 25006 is a replica that does not accept writes
// yet.
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
