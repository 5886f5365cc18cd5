package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"palimpsest/migrations/dbtest"
)

func TestDatabasesAreReadWithTheirPublicURLs(t *testing.T) {
	t.Parallel()
	config, err := LoadConfig("", environment(map[string]string{
		"DATABASE_URLS": "https://App.example.com=postgres://owner:hunter2@db1/palimpsest?sslmode=require\n\thttp://b.example.com:8080/=postgres://owner:hunter2@db2/palimpsest",
	}))
	if err != nil {
		t.Fatal(err)
	}
	each := config.each()
	if len(each) != 2 {
		t.Fatalf("%d databases", len(each))
	}
	a, b := each[0], each[1]
	if a.Host != "app.example.com" || a.PublicURL != "https://App.example.com" || a.DatabaseURL != "postgres://owner:hunter2@db1/palimpsest?sslmode=require" {
		t.Errorf("the first: %+v", a)
	}
	if b.Host != "b.example.com:8080" || b.DatabaseURL != "postgres://owner:hunter2@db2/palimpsest" || a.waitingDir() == b.waitingDir() || a.DataDir != b.DataDir {
		t.Errorf("the second: %+v", b)
	}
	for _, test := range []struct{ public, host, want string }{
		{"https://a.example", "A.example:443", "a.example"}, {"https://a.example", "a.example:80", "a.example:80"},
		{"http://a.example", "a.example:80", "a.example"}, {"HTTP://a.example", "a.example:443", "a.example:443"},
	} {
		if got := hostOf(test.public, test.host); got != test.want {
			t.Errorf("the host of %s at %s is %s, want %s", test.host, test.public, got, test.want)
		}
	}
	if one := (Config{DataDir: "data"}); len(one.each()) != 1 || one.waitingDir() != "data" || one.about("Schema") != "Schema" {
		t.Errorf("one database: %+v", one.each())
	}
}

func TestWrongDatabasesAreNamedWithoutTheirPasswords(t *testing.T) {
	t.Parallel()
	const good = "https://a.example.com=postgres://owner:hunter2@db1/palimpsest "
	for name, test := range map[string]struct {
		value, says string
		beside      string // another setting
	}{
		"no public URL":         {value: good + "postgres://owner:hunter2@db2/palimpsest", says: "entry 2: the public URL must"},
		"the other way around":  {value: "postgres://owner:hunter2@db1/a=https://a.example.com", says: "entry 1: the public URL must"},
		"a path":                {value: "https://a.example.com/proxy=postgres://owner:hunter2@db1/a", says: "entry 1: the public URL must"},
		"a password in it":      {value: "https://ann:hunter2@a.example.com=postgres://owner@db1/a", says: "entry 1: the public URL must"},
		"no database URL":       {value: good + "https://b.example.com", says: "entry 2: the database URL must"},
		"no PostgreSQL":         {value: good + "https://b.example.com=mysql://owner:hunter2@db2/b", says: "entry 2: the database URL must"},
		"a port of letters":     {value: good + "https://b.example.com=postgres://owner:hunter2@db2:x/b", says: "entry 2: the database URL must"},
		"equal hosts":           {value: good + "https://A.example.com:443=postgres://owner:hunter2@db2/b", says: "entries 1 and 2 have the same host a.example.com"},
		"equal databases":       {value: good + "https://b.example.com=postgresql://other:hunter3@db1:5432/palimpsest?sslmode=disable", says: "entries 1 and 2 name the same database"},
		"beside a database URL": {value: good, beside: "DATABASE_URL", says: "DATABASE_URL: is set beside DATABASE_URLS"},
		"beside an app login":   {value: good, beside: "DATABASE_APP_URL", says: "DATABASE_APP_URL: is set beside DATABASE_URLS"},
		"beside a worker login": {value: good, beside: "DATABASE_WORKER_URL", says: "DATABASE_WORKER_URL: is set beside DATABASE_URLS"},
		"beside a replica":      {value: good, beside: "DATABASE_READ_URL", says: "DATABASE_READ_URL: is set beside DATABASE_URLS"},
		"beside a public URL":   {value: good, beside: "PALIMPSEST_PUBLIC_URL", says: "PALIMPSEST_PUBLIC_URL: is set beside DATABASE_URLS"},
	} {
		settings := map[string]string{"DATABASE_URLS": test.value}
		if test.beside == "PALIMPSEST_PUBLIC_URL" {
			settings[test.beside] = "https://c.example.com"
		} else if test.beside != "" {
			settings[test.beside] = "postgres://owner:hunter2@db3/c"
		}
		_, err := LoadConfig("", environment(settings))
		if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "DATABASE_URLS") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: the error shows a password: %v", name, err)
		}
	}
}

// Commands for one database take that of a host, and say which there are without one. A user
// that one creates is in no other database.
func TestCommandsWorkOnTheDatabaseOfAHost(t *testing.T) {
	t.Parallel()
	a, b := dbtest.New(t), dbtest.New(t)
	file := filepath.Join(t.TempDir(), "palimpsest.yaml")
	content := "PALIMPSEST_DATA_DIR: " + t.TempDir() + "\nPALIMPSEST_SECRET_KEY: " + dbtest.SecretKey +
		"\nDATABASE_URLS: |\n  https://a.example.com=" + a.OwnerURL + "\n  https://b.example.com=" + b.OwnerURL + "\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(words ...string) (string, error) {
		t.Helper()
		var said bytes.Buffer
		command := newCommand()
		command.SetOut(&said)
		command.SetIn(strings.NewReader("correct horse battery\n"))
		command.SetArgs(append(words, "--config", file))
		err := command.ExecuteContext(t.Context())
		return said.String(), err
	}
	create := []string{"user", "create", "--email", "ada@example.com", "--workspace", "Ada"}
	for name, words := range map[string][]string{
		"--database a.example.com or b.example.com": create,
		"must be a.example.com or b.example.com":    append(create, "--database", "c.example.com"),
	} {
		if said, err := run(words...); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %q, %v", words, said, err)
		}
	}
	if said, err := run(append(create, "--database", "B.example.com")...); err != nil {
		t.Fatalf("%q, %v", said, err)
	}
	for database, want := range map[*dbtest.Database]int{a: 0, b: 1} {
		var users int
		if err := database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM users").Scan(&users); err != nil || users != want {
			t.Errorf("%d users, want %d, %v", users, want, err)
		}
	}

	said, err := run("check")
	for _, line := range []string{"Settings of a.example.com", "Settings of b.example.com", "Database of a.example.com", "Schema of b.example.com", "Data directory  "} {
		if !strings.Contains(said, line) {
			t.Errorf("check does not list %q, %v:\n%s", line, err, said)
		}
	}
	if one, _ := run("check", "--database", "b.example.com"); strings.Contains(one, "a.example.com") || !strings.Contains(one, "Schema of b.example.com") {
		t.Errorf("check of one lists:\n%s", one)
	}
	parsed, err := pgx.ParseConfig(a.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Password != "" && strings.Contains(said, parsed.Password) {
		t.Error("check shows a password")
	}
}
