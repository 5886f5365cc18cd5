package main

import (
	"bytes"
	"os"
	"palimpsest/cmd/palimpsest/settings"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// said runs a command and returns what it printed.
func saidBy(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newCommand()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(arguments)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestVersionNamesThePlatform(t *testing.T) {
	t.Parallel()
	said, err := saidBy(t, "version")
	if err != nil || !strings.HasPrefix(said, "palimpsest ") || !strings.Contains(said, runtime.GOOS+"/"+runtime.GOARCH) {
		t.Errorf("%q, %v", said, err)
	}
}

func TestVersionVerifiesAFile(t *testing.T) {
	t.Parallel()
	key := filepath.Join("signature", "testdata", "minisign.pub")
	signed := filepath.Join("signature", "testdata", "file.txt")
	said, err := saidBy(t, "version", "--verify", signed, "--key", key)
	if err != nil || !strings.Contains(said, "signature is valid") {
		t.Errorf("%q, %v", said, err)
	}
	changed := filepath.Join(t.TempDir(), "file.txt")
	if err := os.WriteFile(changed, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		arguments []string
		want      string
	}{
		"a changed file":   {[]string{"--verify", changed, "--key", key, "--signature", signed + ".minisig"}, "don't use the file"},
		"no signature":     {[]string{"--verify", changed, "--key", key}, "--signature"},
		"no key":           {[]string{"--verify", signed}, "--key"},
		"no key of that":   {[]string{"--verify", signed, "--key", "x"}, "public key"},
		"a file not there": {[]string{"--verify", "nowhere", "--key", key, "--signature", signed + ".minisig"}, "nowhere"},
	} {
		if said, err := saidBy(t, append([]string{"version"}, c.arguments...)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %q", name, said, err, c.want)
		}
	}
}

func TestDatabaseFlagTakesAURL(t *testing.T) {
	t.Parallel()
	const url = "postgres://me:secret@db.example.com/palimpsest"
	config, err := settings.Config{}.Choose(url)
	if err != nil || config.Storage.DatabaseURL != url {
		t.Errorf("%q, %v", config.Storage.DatabaseURL, err)
	}
	if _, err := (settings.Config{Storage: settings.Storage{Databases: []settings.Database{{}}}}).Choose(url); err == nil || !strings.Contains(err.Error(), "DATABASE_URLS") {
		t.Errorf("beside DATABASE_URLS: %v", err)
	}
}
