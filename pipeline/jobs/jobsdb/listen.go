package jobsdb

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// listening is River's driver on a pool that receives notices on a direct connection.
type listening struct {
	*riverpgxv5.Driver

	direct *pgxpool.Pool // River takes its connection from this pool and keeps it
}

// listen returns a driver on a pool that receives notices at an address. It does not connect.
func listen(pool *pgxpool.Pool, address string) (*listening, error) {
	direct, err := pgxpool.New(context.Background(), address)
	if err != nil {
		return nil, errors.New("the URL for notices is no PostgreSQL URL") // the cause would show the password
	}
	return &listening{Driver: riverpgxv5.New(pool), direct: direct}, nil
}

// GetListener implements riverdriver.Driver.
func (l *listening) GetListener(params *riverdriver.GetListenenerParams) riverdriver.Listener {
	return riverpgxv5.New(l.direct).GetListener(params)
}

func (l *listening) close() {
	if l != nil {
		l.direct.Close()
	}
}
