package settings

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Database is one of several databases of an installation, with the public URL for the users and clients of
// its workspaces.
type Database struct {
	PublicURL string
	URL       string
	Host      string // of PublicURL: the database's name in commands, metrics, logs, and the data directory
}

// databasesDir holds a directory for each of several databases, in the data directory.
const databasesDir = "databases"

// entryForm describes an entry of DATABASE_URLS. Errors never show an entry because it holds a password.
const entryForm = "an entry is <public URL>=<database URL>, such as https://app.example.com=postgres://owner:password@db1/palimpsest, and spaces or newlines separate entries" //nolint:gosec // an example

// databaseSettings lists the setting of an installation with several databases.
func databaseSettings() []setting {
	return []setting{{"DATABASE_URLS", func(config *Config, value string) (err error) {
		config.Storage.Databases, err = parseDatabases(value)
		return err
	}}}
}

// parseDatabases reads the entries of DATABASE_URLS.
func parseDatabases(value string) ([]Database, error) {
	var list []Database
	where := map[string]int{} // number of the entry, by host and by server and database name
	for i, entry := range strings.Fields(value) {
		number := i + 1
		public, address, _ := strings.Cut(entry, "=")
		database, err := newDatabase(public, address)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", number, err)
		}
		if before := where[database.Host]; before > 0 {
			return nil, fmt.Errorf("entries %d and %d have the same host %s; give each database a public URL of its own", before, number, database.Host)
		}
		held := "database " + database.held()
		if before := where[held]; before > 0 {
			return nil, fmt.Errorf("entries %d and %d name the same database; each public URL needs a database of its own", before, number)
		}
		where[database.Host], where[held] = number, number
		list = append(list, database)
	}
	return list, nil
}

// newDatabase returns the database of an entry. Its error reveals nothing of the entry, since that may hold
// a password.
func newDatabase(public, address string) (Database, error) {
	parsed, err := url.Parse(public)
	if err != nil || parsed.Host == "" || parsed.User != nil || strings.Trim(parsed.Path, "/")+parsed.RawQuery+parsed.Fragment != "" || checkURL("", public, "http", "https") != nil {
		return Database{}, errors.New("the public URL must be http:// or https:// and a host, without a path; " + entryForm)
	}
	if _, err := pgconn.ParseConfig(address); err != nil || address == "" || checkURL("", address, "postgres", "postgresql") != nil {
		return Database{}, errors.New("the database URL must start with postgres:// and be one that PostgreSQL takes; " + entryForm)
	}
	return Database{PublicURL: public, URL: address, Host: HostOf(public, parsed.Host)}, nil
}

// held returns the server and the name of the database, without the login.
func (d Database) held() string {
	config, err := pgconn.ParseConfig(d.URL)
	if err != nil {
		return d.URL
	}
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))) + "/" + cmp.Or(config.Database, config.User)
}

// HostOf returns a host in the form of URLs and requests, without the default port of a public URL.
func HostOf(public, host string) string {
	port := ":443"
	if strings.HasPrefix(strings.ToLower(public), "http:") {
		port = ":80"
	}
	return strings.TrimSuffix(strings.ToLower(host), port)
}

// checkDatabases returns an error if DATABASE_URLS is set together with a setting that it replaces.
func (c Config) checkDatabases() error {
	if len(c.Storage.Databases) == 0 {
		return nil
	}
	for _, replaced := range []struct{ name, value string }{
		{"DATABASE_URL", c.Storage.DatabaseURL}, {"DATABASE_APP_URL", c.Storage.DatabaseAppURL}, {"DATABASE_WORKER_URL", c.Storage.DatabaseWorkerURL}, {"DATABASE_READ_URL", c.Storage.DatabaseReadURL}, {"PALIMPSEST_PUBLIC_URL", c.Serving.PublicURL},
	} {
		if replaced.value != "" {
			return fmt.Errorf("%s: is set beside DATABASE_URLS, which replaces it; unset one of the two", replaced.name)
		}
	}
	return nil
}

// Each returns the settings for each database.
func (c Config) Each() []Config {
	if len(c.Storage.Databases) == 0 {
		return []Config{c}
	}
	list := make([]Config, len(c.Storage.Databases))
	for i, database := range c.Storage.Databases {
		list[i] = c
		list[i].Storage.Databases, list[i].Storage.Host = nil, database.Host
		list[i].Serving.PublicURL, list[i].Storage.DatabaseURL = database.PublicURL, database.URL
	}
	return list
}

// Choose returns the settings for the database with a host, or all of them without a host.
func (c Config) Choose(host string) (Config, error) {
	if host == "" {
		return c, nil
	}
	if strings.HasPrefix(host, "postgres://") || strings.HasPrefix(host, "postgresql://") {
		if len(c.Storage.Databases) > 0 {
			return Config{}, errors.New("--database: DATABASE_URLS names the databases of this installation; give the host of a public URL in it, or unset it")
		}
		c.Storage.DatabaseURL = host
		return c, nil
	}
	of := slices.IndexFunc(c.Storage.Databases, func(database Database) bool { return database.Host == HostOf(database.PublicURL, host) })
	switch {
	case len(c.Storage.Databases) == 0:
		return Config{}, errors.New("--database: give a URL (postgres://USER:PASSWORD@HOST/NAME); a host is for an installation with DATABASE_URLS, which is not set")
	case of < 0:
		return Config{}, fmt.Errorf("--database: %q is not in DATABASE_URLS; it must be %s", host, c.hosts())
	}
	return c.Each()[of], nil
}

// LoadOne returns load for commands that work on one database.
func LoadOne(load func() (Config, error)) func() (Config, error) {
	return func() (Config, error) {
		config, err := load()
		if err == nil && len(config.Storage.Databases) > 0 {
			err = fmt.Errorf("DATABASE_URLS is set: choose a database with --database %s", config.hosts())
		}
		return config, err
	}
}

// hosts lists the hosts of several databases.
func (c Config) hosts() string {
	hosts := make([]string, len(c.Storage.Databases))
	for i, database := range c.Storage.Databases {
		hosts[i] = database.Host
	}
	return strings.Join(hosts, " or ")
}

// WaitingDir returns the directory for data that waits for the database. Each of several databases has its
// own.
func (c Config) WaitingDir() string {
	if c.Storage.Host == "" {
		return c.Storage.DataDir
	}
	return filepath.Join(c.Storage.DataDir, databasesDir, c.Storage.Host)
}

// About adds the database's host to a name, if there are several.
func (c Config) About(name string) string {
	if c.Storage.Host == "" {
		return name
	}
	return name + " of " + c.Storage.Host
}
