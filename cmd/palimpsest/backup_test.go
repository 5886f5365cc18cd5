package main

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/migrations/dbtest"
	"palimpsest/migrations/localdb"
	"palimpsest/migrations/partitions"
	"palimpsest/pipeline/archive/export"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// runs calls a command with settings and returns what it says.
func runs(t *testing.T, config settings.Config, arguments ...string) (string, error) {
	t.Helper()
	load := func() (settings.Config, error) { return config, nil }
	command := backupCommand(load)
	if arguments[0] == "restore" {
		command = restoreCommand(load)
	}
	var said bytes.Buffer
	command.SetArgs(arguments[1:])
	command.SetOut(&said)
	command.SetErr(&said)
	command.SilenceErrors, command.SilenceUsage = true, true
	err := command.ExecuteContext(t.Context())
	return said.String(), err
}

// backedUp is an installation with a compacted session whose originals are partly in a bucket.
type backedUp struct {
	*tenant

	database string // URL of its owner
	exported string // the session, as lines
	body     []byte
	ends     []int
}

func newBackedUp(t *testing.T) *backedUp {
	t.Helper()
	database := dbtest.New(t).OwnerURL
	i := startOn(t, database, providerdouble.Config{Window: 30_000, KeepBodies: 1})
	i.shutdown()
	i.config.Storage.BlobURL, i.config.Serving.Role = "file://"+t.TempDir(), settings.RoleAPI // passes are the test's own
	i.boot()
	b := &backedUp{tenant: i.tenant("backup"), database: database}
	b.setPipelinef("ipc:\n  contextWindow: 30000\n")
	b.body = generated(i.double, 60)
	b.send(0)
	i.program.sites[0].seams.mover.Segments.Wait = 0
	if err := i.program.sites[0].seams.work.Pass(t.Context(), "archive"); err != nil {
		t.Fatal(err)
	}
	b.exported = b.export()
	return b
}

// send sends the session's requests from one on, and waits until its messages are archived.
func (b *backedUp) send(from int) {
	b.t.Helper()
	envelope, ends := requests(b.t, anthropic.New(), b.body)
	b.ends = ends
	for _, length := range ends[from:] {
		response, answer := b.post("/v1/messages", envelope.Seal([]wire.Piece{{From: 0, To: length}}), map[string]string{"X-Palimpsest-Session-Id": "backup"})
		if response.StatusCode != http.StatusOK {
			b.t.Fatalf("status %d: %s", response.StatusCode, answer)
		}
	}
	b.untilArchived(ends[len(ends)-1])
}

// export returns the one session as lines, which must be whole.
func (b *backedUp) export() string {
	b.t.Helper()
	lines := string(b.shown("/api/v1/sessions/" + b.onlySession() + "/export"))
	totals, err := export.Verify(strings.NewReader(lines), func(fault export.Fault) { b.t.Error(fault) })
	if err != nil || totals.Sessions != 1 || totals.Messages == 0 || totals.Answers == 0 {
		b.t.Fatalf("exported %+v: %v", totals, err)
	}
	return lines
}

// A backup that is made while the product runs is restored into an empty database and an empty
// bucket: the session exports to the same bytes, and people, keys and the session go on.
func TestRestoredInstallationIsTheSame(t *testing.T) {
	t.Parallel()
	b := newBackedUp(t)
	keeper := partitions.Manager{OwnerURL: b.database, Days: partitions.LeastDays, Now: time.Now, After: time.After}
	if done, err := keeper.Keep(t.Context()); err != nil || len(done.Made) != 1 {
		t.Fatalf("partitions: %+v (%v)", done, err)
	}
	dir := filepath.Join(t.TempDir(), "backup")
	if said, err := runs(t, b.config, "backup", dir); err != nil || !strings.Contains(said, "1 workspaces, 1 sessions") || !strings.Contains(said, "does not hold the master key") {
		t.Fatalf("backup: %v\n%s", err, said)
	}
	if _, err := os.Stat(filepath.Join(dir, "secret.key")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the backup holds the master key: %v", err)
	}
	source := b.config
	config := source
	empty := dbtest.Empty(t)
	config.Storage.DatabaseURL, config.Storage.DataDir, config.Storage.BlobURL = empty.OwnerURL, t.TempDir(), "file://"+t.TempDir()
	if said, err := runs(t, config, "restore", dir); err != nil || !strings.Contains(said, "Everything is restored") {
		t.Fatalf("restore: %v\n%s", err, said)
	}
	if before, after := schema(t, b.database), schema(t, empty.OwnerURL); before != after {
		t.Errorf("the schema, its owners and rights differ:\n%s", difference(before, after))
	}
	if _, err := runs(t, config, "restore", dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a second restore: %v", err)
	}

	b.shutdown()
	b.config = config
	b.boot()
	if lines := b.export(); lines != b.exported {
		t.Errorf("the export differs:\n%s", difference(b.exported, lines))
	}
	b.checkOriginals(anthropic.New(), b.body, b.ends[len(b.ends)-1])
	b.send(len(b.ends) - 1) // with the stored key of the provider
}

// What must not be restored is refused, and leaves the target as it was.
func TestBackupThatCannotBeTrustedIsNotRestored(t *testing.T) {
	t.Parallel()
	b := newBackedUp(t)
	dir := filepath.Join(t.TempDir(), "backup")
	if said, err := runs(t, b.config, "backup", "--with-secret-key", dir); err != nil || !strings.Contains(said, "holds the master key") {
		t.Fatalf("backup: %v\n%s", err, said)
	}
	if _, err := runs(t, b.config, "backup", dir); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a backup over another: %v", err)
	}
	empty := dbtest.Empty(t)
	config := b.config
	config.Storage.DatabaseURL, config.Storage.DataDir, config.Storage.BlobURL = empty.OwnerURL, t.TempDir(), "file://"+t.TempDir()
	refused := func(what, says string, config settings.Config, dir string, flags ...string) {
		t.Helper()
		if _, err := runs(t, config, append([]string{"restore", "--check", dir}, flags...)...); err == nil && says != "PALIMPSEST_BLOB_URL" {
			t.Errorf("%s: the check passes", what)
		}
		if said, err := runs(t, config, append([]string{"restore", dir}, flags...)...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q\n%s", what, err, says, said)
		}
		if left := schema(t, empty.OwnerURL); left != "" {
			t.Fatalf("%s left\n%s", what, left)
		}
	}
	other := config
	other.Storage.SecretKey = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	refused("another master key", "is not that of the backup", other, dir)
	other.Storage.SecretKey = ""
	refused("no master key", "--key-in-backup", other, dir)
	manifest := read(t, dir, "manifest.json")
	overwrite(t, dir, "manifest.json", strings.Replace(manifest, `"migration"`, `"roles": ["x; COPY t FROM PROGRAM 'id'"], "migration"`, 1))
	refused("a changed manifest", "was changed", config, dir)
	refused("a changed manifest", "was changed", config, dir, "--unauthenticated")
	overwrite(t, dir, "manifest.json", manifest)
	bare := config
	bare.Storage.BlobURL = ""
	refused("no bucket", "PALIMPSEST_BLOB_URL", bare, dir)
	object := strings.Fields(read(t, dir, "objects.sha256"))[1]
	for name, harm := range map[string]func(content string) string{
		"database.dump":  func(content string) string { return content[:len(content)-1] },
		"objects.sha256": func(content string) string { return content[strings.Index(content, "\n")+1:] },
		object:           func(content string) string { return content + "x" },
		"secret.key":     func(string) string { return dbtest.SecretKey },
	} {
		sound := read(t, dir, name)
		overwrite(t, dir, name, harm(sound))
		refused(name+" is damaged", "damaged", config, dir)
		overwrite(t, dir, name, sound)
	}
	unfinished := t.TempDir()
	overwrite(t, unfinished, "database.dump", read(t, dir, "database.dump"))
	refused("an interrupted backup", "no whole backup", config, unfinished)

	// The key from the backup is used if there is no other and the operator says so.
	config.Storage.SecretKey = ""
	if said, err := runs(t, config, "restore", "--key-in-backup", dir); err != nil {
		t.Fatalf("restore: %v\n%s", err, said)
	}
	if key := read(t, config.Storage.DataDir, "secret.key"); key != dbtest.SecretKey+"\n" {
		t.Errorf("the key is %q", key)
	}
}

// A backup of an older version is restored only if the operator vouches for it, and nothing in
// its manifest is run.
func TestOldBackupIsRestoredIfTheOperatorVouchesForIt(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{})
	dir := filepath.Join(t.TempDir(), "backup")
	if said, err := runs(t, i.config, "backup", dir); err != nil {
		t.Fatalf("backup: %v\n%s", err, said)
	}
	safe, _, err := existingVault(i.config.Storage.DataDir, i.config.Storage.SecretKey)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := safe.Proof()
	if err != nil {
		t.Fatal(err)
	}
	hostile := fmt.Sprintf(`"palimpsest_backup": 1, "roles": ["intruder"], "owners": [{"function": "app_user() RESET ALL; CREATE TABLE intruder()", "role": "intruder"}], "master_key_proof": %q`,
		base64.StdEncoding.EncodeToString(proof))
	overwrite(t, dir, "manifest.json", strings.Replace(read(t, dir, "manifest.json"), `"palimpsest_backup": 2`, hostile, 1))
	if err := os.Remove(filepath.Join(dir, "manifest.mac")); err != nil {
		t.Fatal(err)
	}
	empty := dbtest.Empty(t)
	config := i.config
	config.Storage.DatabaseURL, config.Storage.DataDir = empty.OwnerURL, t.TempDir()
	for _, arguments := range [][]string{{"restore", dir}, {"restore", "--check", dir}} {
		if _, err := runs(t, config, arguments...); err == nil || !strings.Contains(err.Error(), "--unauthenticated") {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	other := config
	other.Storage.SecretKey = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	if _, err := runs(t, other, "restore", "--unauthenticated", dir); err == nil || !strings.Contains(err.Error(), "is not that of the backup") {
		t.Errorf("another master key: %v", err)
	}
	if said, err := runs(t, config, "restore", "--unauthenticated", dir); err != nil {
		t.Fatalf("restore: %v\n%s", err, said)
	}
	if is := schema(t, empty.OwnerURL); strings.Contains(is, "intruder") || is != schema(t, i.config.Storage.DatabaseURL) {
		t.Errorf("the schema differs:\n%s", difference(schema(t, i.config.Storage.DatabaseURL), is))
	}
}

// A backup whose bucket fails leaves nothing that could be taken for a backup.
func TestBackupThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBackedUp(t)
	root, err := url.Parse(b.config.Storage.BlobURL)
	if err != nil {
		t.Fatal(err)
	}
	// An object that cannot be read.
	if err := os.Symlink("loop", filepath.Join(root.Path, "evictions", "loop")); err != nil {
		t.Fatal(err)
	}
	above := t.TempDir()
	if said, err := runs(t, b.config, "backup", filepath.Join(above, "backup")); err == nil {
		t.Errorf("it says %s", said)
	}
	if left, err := os.ReadDir(above); err != nil || len(left) != 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

// The embedded database goes into another server, whose owner is neither an administrator nor
// has the same name: everything belongs to that owner.
func TestBackupOfAnEmbeddedDatabaseGoesIntoAServer(t *testing.T) {
	t.Parallel()
	config := settings.DefaultConfig()
	config.Storage.DataDir = t.TempDir()
	if _, err := runs(t, config, "backup", filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, errNothing) {
		t.Errorf("nothing: %v", err)
	}
	first := &instance{t: t, config: config, log: &syncBuffer{}, double: providertest.NewServer(t, providerdouble.Config{Key: providerKey, Window: 30_000, Count: counter(t).Count, KeepBodies: 1})}
	first.config.Serving.Addr, first.config.Serving.AdminAddr, first.config.Serving.AllowPrivateUpstreams, first.config.Serving.DrainDelay = "127.0.0.1:0", "127.0.0.1:0", true, 0
	first.boot()
	first.tenant("embedded")
	dir := filepath.Join(t.TempDir(), "backup")
	if said, err := runs(t, first.config, "backup", "--with-secret-key", dir); err != nil {
		t.Fatalf("backup: %v\n%s", err, said)
	}
	first.shutdown()

	cluster, err := localdb.Start(t.Context(), localdb.Config{Dir: t.TempDir(), Path: os.Getenv("PATH"), Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := pgx.Connect(t.Context(), cluster.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"CREATE ROLE keeper LOGIN CREATEROLE PASSWORD 'pass'", "CREATE DATABASE kept OWNER keeper"} {
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := admin.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	keeper, err := url.Parse(cluster.DSN("kept"))
	if err != nil {
		t.Fatal(err)
	}
	keeper.User = url.UserPassword("keeper", "pass")
	target := first.config
	target.Storage.DataDir, target.Storage.DatabaseURL = t.TempDir(), keeper.String()
	if said, err := runs(t, target, "restore", "--key-in-backup", dir); err != nil {
		t.Fatalf("restore: %v\n%s", err, said)
	}
	if _, err := runs(t, target, "backup", filepath.Join(t.TempDir(), "bound")); err == nil || !strings.Contains(err.Error(), "BYPASSRLS") {
		t.Errorf("a backup by a login that row-level security binds: %v", err)
	}
	second := &instance{t: t, config: target, log: &syncBuffer{}, double: first.double}
	second.boot() // checks the logins' rights and the master key
	w := &tenant{instance: second}
	w.call(http.MethodPost, "/api/v1/login", map[string]any{"email": "embedded@example.com", "password": "correct horse battery"}, http.StatusOK, nil)
}

// The lines of an export hold no time of their own: two exports of a session are the same. In
// a tar the manifest alone says when it was made.
func TestExportsOfASessionAreTheSame(t *testing.T) {
	t.Parallel()
	b := newBackedUp(t)
	if again := b.export(); again != b.exported {
		t.Errorf("the export differs:\n%s", difference(b.exported, again))
	}
	path := "/api/v1/sessions/" + b.onlySession() + "/export?format=tar"
	first, second := files(t, b.shown(path)), files(t, b.shown(path))
	for name, content := range first {
		if second[name] != content && name != export.ManifestName {
			t.Errorf("%s differs", name)
		}
	}
}

// files returns the files of a tar by name.
func files(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	for reader := tar.NewReader(bytes.NewReader(packed)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		all[header.Name] = string(content)
	}
}

// schema lists what a database is made of, with owners, rights and policies.
func schema(t *testing.T, address string) string {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(t.Context()) }()
	rows, err := connection.Query(t.Context(), `SELECT format('%s %s %s owner %s rls %s %s acl %s', n.nspname, c.relname, c.relkind, pg_get_userbyid(c.relowner),
			c.relrowsecurity, c.relforcerowsecurity, (SELECT string_agg(a::text, ',' ORDER BY a::text) FROM unnest(coalesce(c.relacl, acldefault('r', c.relowner))) a))
			FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname IN ('public', 'jobs') AND c.relkind <> 'S'
		UNION ALL SELECT format('%s %s %s', attrelid::regclass, attname, (SELECT string_agg(a::text, ',' ORDER BY a::text) FROM unnest(attacl) a))
			FROM pg_attribute WHERE attacl IS NOT NULL AND attrelid > 16383
		UNION ALL SELECT format('%s owner %s definer %s acl %s', p.oid::regprocedure, pg_get_userbyid(proowner), prosecdef, (SELECT string_agg(a::text, ',' ORDER BY a::text) FROM unnest(proacl) a))
			FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname IN ('public', 'jobs')
		UNION ALL SELECT format('policy %s %s %s %s %s %s', tablename, policyname, roles, cmd, qual, with_check) FROM pg_policies
		UNION ALL SELECT format('schema %s %s', nspname, (SELECT string_agg(a::text, ',' ORDER BY a::text) FROM unnest(nspacl) a)) FROM pg_namespace WHERE nspname = 'jobs'
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// difference returns the first lines that differ.
func difference(before, after string) string {
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	var out strings.Builder
	for _, one := range []struct {
		sign  string
		lines []string
		other []string
	}{{"-", was, is}, {"+", is, was}} {
		shown := 0
		for _, line := range one.lines {
			if !slices.Contains(one.other, line) && shown < 10 {
				shown++
				out.WriteString(one.sign + " " + line[:min(len(line), 700)] + "\n")
			}
		}
	}
	return out.String()
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func overwrite(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
