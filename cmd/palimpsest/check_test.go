package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"palimpsest/api/redistest"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/cmd/palimpsest/inspection"
	"palimpsest/cmd/palimpsest/logs"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
)

// mailServer is a real SMTP server that counts what it is given.
type mailServer struct{ taken int }

func (m *mailServer) NewSession(*smtp.Conn) (smtp.Session, error) { return m, nil }
func (m *mailServer) Mail(string, *smtp.MailOptions) error        { m.taken++; return nil }
func (m *mailServer) Rcpt(string, *smtp.RcptOptions) error        { return nil }
func (m *mailServer) Data(io.Reader) error                        { return nil }
func (m *mailServer) Reset()                                      {}
func (m *mailServer) Logout() error                               { return nil }

// newMailServer starts a mail server and returns its host and port.
func newMailServer(t *testing.T) (*mailServer, string) {
	t.Helper()
	kept := &mailServer{}
	server := smtp.NewServer(kept)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return kept, listener.Addr().String()
}

// line is a line of the command's list.
type line struct{ Name, Status, Text, Advice string }

// checked runs the command with settings, and returns what it lists and whether it passed.
func checked(t *testing.T, config settings.Config) (list map[string]line, said string, hasPassed bool) {
	t.Helper()
	command := inspection.Command(func() (settings.Config, error) { return config, nil })
	var out bytes.Buffer
	command.SetArgs([]string{"--json"})
	command.SetOut(&out)
	command.SilenceErrors, command.SilenceUsage = true, true
	err := command.ExecuteContext(t.Context())
	if err != nil && !strings.Contains(err.Error(), "not every check passed") {
		t.Fatal(err)
	}
	var results []line
	if err := json.Unmarshal(out.Bytes(), &results); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	list = map[string]line{}
	for _, one := range results {
		list[one.Name] = one
	}
	return list, out.String(), err == nil
}

// whole returns an installation in which everything is configured and works.
func whole(t *testing.T) (settings.Config, *gateway, *mailServer) {
	t.Helper()
	redis, _ := redistest.Start(t)
	bucket := newGateway(t)
	mails, address := newMailServer(t)
	config := settings.DefaultConfig()
	config.Storage.DataDir, config.Storage.SecretKey = t.TempDir(), dbtest.SecretKey
	config.Storage.DatabaseURL = dbtest.New(t).OwnerURL
	config.Storage.BlobURL, config.Storage.RedisURL = bucket.url(), "redis://"+redis
	config.Accounts.SMTPURL = "smtp://" + address + "?from=palimpsest@example.com"
	databases := &setup.Database{Inputs: setup.New(config, logs.New(io.Discard, "text"), time.Now)}
	defer databases.Close()
	safe, err := config.OpenVault()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := databases.OpenDatabase(t.Context(), safe); err != nil {
		t.Fatal(err)
	}
	return config, bucket, mails
}

func TestCheckPassesAnInstallationThatWorks(t *testing.T) {
	t.Parallel()
	config, bucket, mails := whole(t)
	list, said, hasPassed := checked(t, config)
	for _, name := range []string{"Settings", "Data directory", "Database", "Schema", "Partitions", "Secret key", "App login", "Worker login", "Clock", "Blob store", "Redis", "Mail"} {
		isSlow := name == "Database" && strings.Contains(list[name].Text, " answers after ") // the machine is busy
		if list[name].Status != "ok" && !isSlow {
			t.Errorf("%s: %+v", name, list[name])
		}
	}
	if !hasPassed {
		t.Error("the command failed")
	}
	for _, secret := range []string{dbtest.SecretKey, "key:secret"} {
		if strings.Contains(said, secret) {
			t.Errorf("%q stands in the list:\n%s", secret, said)
		}
	}
	left, err := filepath.Glob(filepath.Join(bucket.root, "originals", "*", "*"))
	if err != nil || len(left) > 0 || mails.taken > 0 {
		t.Errorf("it left %v in the bucket and sent %d mails, %v", left, mails.taken, err)
	}
}

// Each part that is broken fails, and no other one.
func TestCheckNamesThePartThatFails(t *testing.T) {
	t.Parallel()
	sound, bucket, _ := whole(t)
	nowhere := refusing(t)
	for name, c := range map[string]struct {
		breaks func(*settings.Config)
		text   string
	}{
		"Data directory": {func(c *settings.Config) { c.Storage.DataDir = filepath.Join(fileAt(t), "data") }, "cannot be written to"},
		"Secret key":     {func(c *settings.Config) { c.Storage.SecretKey = masterKey("w") }, "not the one of this database"},
		"App login":      {func(c *settings.Config) { c.Storage.DatabaseAppURL = c.Storage.DatabaseURL }, ""},
		"Worker login":   {func(c *settings.Config) { c.Storage.DatabaseWorkerURL = c.Storage.DatabaseURL }, ""},
		"Read replica": {func(c *settings.Config) {
			c.Storage.DatabaseReadURL = "postgres://reader:hunter2@" + nowhere + "/palimpsest"
		}, "read replica"},
		"Blob store": {func(c *settings.Config) {
			c.Storage.BlobURL = strings.Replace(bucket.url(), "key:secret", "key:wrong", 1)
		}, "cannot be put"},
		"Redis": {func(c *settings.Config) { c.Storage.RedisURL = "redis://" + nowhere }, "connection refused"},
		"Mail": {func(c *settings.Config) {
			c.Accounts.SMTPURL = "smtp://palimpsest:hunter2@" + nowhere + "?from=palimpsest@example.com"
		}, "mail server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := sound
			c.breaks(&config)
			list, said, hasPassed := checked(t, config)
			if one := list[name]; hasPassed || one.Status != "fail" || !strings.Contains(one.Text, c.text) || one.Advice == "" {
				t.Errorf("%+v, passed: %v", one, hasPassed)
			}
			for other, one := range list {
				isDerived := name == "Secret key" && strings.HasSuffix(other, "login") // its password follows from the key
				if other != name && one.Status == "fail" && !isDerived {
					t.Errorf("%s failed, too: %+v", other, one)
				}
			}
			if strings.Contains(said, "hunter2") || strings.Contains(said, "key:wrong") {
				t.Errorf("a secret stands in the list:\n%s", said)
			}
		})
	}
}

// refusing returns an address at which nothing listens.
func refusing(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

// fileAt returns the path of a file.
func fileAt(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheckListsWhatItCouldNotLookAt(t *testing.T) {
	t.Parallel()
	config := settings.DefaultConfig()
	config.Storage.DataDir, config.Storage.DatabaseURL = t.TempDir(), "postgres://owner:hunter2@"+refusing(t)+"/palimpsest"
	list, said, hasPassed := checked(t, config)
	if list["Database"].Status != "fail" || hasPassed || strings.Contains(said, "hunter2") {
		t.Errorf("%+v in\n%s", list["Database"], said)
	}
	if entries, err := os.ReadDir(config.Storage.DataDir); err != nil || len(entries) > 0 {
		t.Errorf("it left %v in the data directory, %v", entries, err)
	}
}

func TestCheckComparesTheSchema(t *testing.T) {
	t.Parallel()
	config := settings.DefaultConfig()
	database := dbtest.Empty(t)
	config.Storage.DataDir, config.Storage.DatabaseURL, config.Storage.SecretKey = t.TempDir(), database.OwnerURL, dbtest.SecretKey
	list, _, hasPassed := checked(t, config)
	if list["Schema"].Status != "warn" || list["Secret key"].Status != "off" || list["App login"].Status == "fail" || !hasPassed {
		t.Errorf("an empty database: %+v", list)
	}
	if _, err := migrations.Up(t.Context(), database.OwnerURL); err != nil {
		t.Fatal(err)
	}
	if list, _, _ = checked(t, config); list["Schema"].Status != "ok" {
		t.Errorf("after all migrations: %+v", list["Schema"])
	}
	if _, err := database.Owner(t).Exec(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)"); err != nil {
		t.Fatal(err)
	}
	if list, _, _ = checked(t, config); list["Schema"].Status != "fail" || !strings.Contains(list["Schema"].Text, "newer than this program") {
		t.Errorf("with a migration of a newer version: %+v", list["Schema"])
	}
}

// The program itself prints the list for people, and says by its exit code how it ended.
func TestCheckIsACommandOfTheProgram(t *testing.T) {
	t.Parallel()
	run := func(settings ...string) (string, error) {
		command := exec.Command(buildtest.Palimpsest(t), "check")
		command.Env = append(os.Environ(), append([]string{"PALIMPSEST_DATA_DIR=" + t.TempDir(), "DATABASE_URL=" + dbtest.New(t).OwnerURL, "PALIMPSEST_SECRET_KEY=" + dbtest.SecretKey}, settings...)...)
		out, err := command.CombinedOutput()
		return string(out), err
	}
	if said, err := run(); err != nil || !strings.Contains(said, "ok    Schema") || !strings.Contains(said, " 0 failed") {
		t.Errorf("%v\n%s", err, said)
	}
	if said, err := run("REDIS_URL=redis://" + refusing(t)); err == nil || !strings.Contains(said, "fail  Redis") || !strings.Contains(said, "→ Check REDIS_URL") {
		t.Errorf("%v\n%s", err, said)
	}
	said, err := run("PALIMPSEST_DRAIN_DELAY=soon")
	if err == nil || !slices.ContainsFunc(strings.Split(said, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "fail") && strings.Contains(line, "PALIMPSEST_DRAIN_DELAY")
	}) {
		t.Errorf("a wrong setting: %v\n%s", err, said)
	}
}
