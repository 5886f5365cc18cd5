package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
)

// ours are this program's own parameters of a database's URL, which PostgreSQL's own programs refuse.
func ours() []string {
	return []string{
		"pool_max_conns", "pool_min_conns", "pool_min_idle_conns", "pool_max_conn_lifetime", "pool_max_conn_idle_time", "pool_health_check_period",
		"pool_max_conn_lifetime_jitter", "default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity",
	}
}

// postgres is one of PostgreSQL's own programs, on a database.
type postgres struct {
	program  string // path
	database string // URL of the login
	stdout   io.Writer
}

// maxSaid limits the kept output of a program, in bytes.
const maxSaid = 8 << 10

// run runs the program. It passes the password in the environment because every user can read arguments.
func (p postgres) run(ctx context.Context, arguments ...string) error {
	address, err := url.Parse(p.database)
	if err != nil || address.Scheme == "" {
		return errors.New("DATABASE_URL must begin with postgres://") // the cause would show the password
	}
	environment := os.Environ()
	if password, has := address.User.Password(); has {
		address.User = url.User(address.User.Username())
		environment = append(environment, "PGPASSWORD="+password)
	}
	parameters := address.Query()
	if parameters.Has("password") {
		environment = append(environment, "PGPASSWORD="+parameters.Get("password"))
	}
	for _, name := range append(ours(), "password") {
		parameters.Del(name)
	}
	address.RawQuery = parameters.Encode()
	command := exec.CommandContext(ctx, p.program, append([]string{"--no-password", "--dbname=" + address.String()}, arguments...)...) //nolint:gosec // one of PostgreSQL's programs
	said := &head{}
	command.Env, command.Stdout, command.Stderr = environment, p.stdout, said
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", p.program, err, strings.TrimSpace(said.String()))
	}
	return nil
}

// head keeps the beginning of its input, because the first error causes the rest.
type head struct{ bytes.Buffer }

// Write implements io.Writer.
func (t *head) Write(p []byte) (int, error) {
	if room := maxSaid - t.Len(); room > 0 {
		_, _ = t.Buffer.Write(p[:min(room, len(p))]) // never fails
	}
	return len(p), nil
}
