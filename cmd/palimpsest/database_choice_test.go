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
