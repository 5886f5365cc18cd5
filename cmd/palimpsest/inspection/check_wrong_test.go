package inspection

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/faulttest"
)

// judged fails the test unless a result is as wanted.
func judged(t *testing.T, name string, got result, want verdict, says string) {
	t.Helper()
	if got.Status != want || !strings.Contains(got.Text, says) || (got.Advice == "") != (want == verdictOK || want == verdictOff) {
		t.Errorf("%s: %+v, want %s and %q", name, got, want, says)
	}
}

// A server that answers and is not the one that is needed does not pass.
func TestCheckJudgesTheServerThatAnswers(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	owner := func(definitions ...string) string { return database.Shadow(t, database.OwnerURL, definitions...) }
	primary := "pg_is_in_recovery() RETURNS boolean AS 'SELECT false'"
	for _, c := range []struct {
		name, definition string
		look             func(context.Context, string) result
		want             verdict
		says             string
	}{
		{"a standby", "pg_is_in_recovery() RETURNS boolean AS 'SELECT true'", checkServer, verdictFail, "standby"},
		{"an old server", "current_setting(text) RETURNS text AS $$ SELECT '149999' $$", checkServer, verdictFail, "too old"},
		{"the oldest server", "current_setting(text) RETURNS text AS $$ SELECT '150000' $$", checkServer, verdictOK, "150000"},
		{"a clock an hour ahead", "clock_timestamp() RETURNS timestamptz AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 hour' $$", checkClock, verdictFail, "behind"},
		{"a clock an hour behind", "clock_timestamp() RETURNS timestamptz AS $$ SELECT pg_catalog.clock_timestamp() - interval '1 hour' $$", checkClock, verdictFail, "ahead of"},
		{"another time zone", "clock_timestamp() RETURNS timestamptz AS $$ SELECT pg_catalog.clock_timestamp() AT TIME ZONE 'UTC' AT TIME ZONE 'UTC' $$", checkClock, verdictOK, "agrees"},
	} {
		got := c.look(t.Context(), owner(primary, c.definition))
		if c.want == verdictOK && got.Status == verdictWarn && strings.Contains(got.Text, " answers after ") {
			continue // the machine is busy
		}
		judged(t, c.name, got, c.want, c.says)
	}
}

// The replica that pages read from has to be a standby of the database that keeps up.
func TestCheckJudgesTheReadReplica(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	for name, c := range map[string]struct {
		follows        bool
		behind, system string
		want           verdict
		says           string
	}{
		"a standby":         {true, "1 s", "system_identifier", verdictOK, "follows the database"},
		"not quite late":    {true, "30 s", "system_identifier", verdictOK, "follows the database"},
		"late":              {true, "90 s", "system_identifier", verdictWarn, "1m30s behind"},
		"an hour late":      {true, "1 hour", "system_identifier", verdictWarn, "1h0m"},
		"the primary":       {false, "0 s", "system_identifier", verdictWarn, "does not follow"},
		"of another server": {true, "1 s", "system_identifier + 1", verdictFail, "another database"},
		"another primary":   {false, "1 s", "system_identifier + 1", verdictFail, "another database"},
	} {
		config := settings.Config{Storage: settings.Storage{DatabaseAppURL: database.AppURL, DatabaseReadURL: database.Standby(t, c.follows, c.behind, c.system)}}
		judged(t, name, examiner{setup.DatabaseOf(config)}.checkReadReplica(t.Context(), database.OwnerURL), c.want, c.says)
	}
}

// Only a database without tables is one that the next start fills.
func TestCheckTellsAnEmptyDatabaseFromADamagedOne(t *testing.T) {
	t.Parallel()
	judged(t, "empty", checkPartitions(t.Context(), dbtest.Empty(t).OwnerURL), verdictOff, "next start")
	database := dbtest.New(t)
	for _, statement := range []string{"DROP TABLE exchanges_first CASCADE", "DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)"} {
		if _, err := database.Owner(t).Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	judged(t, "without partitions", checkPartitions(t.Context(), database.OwnerURL), verdictFail, "no partition")
	judged(t, "one migration is missing", checkSchema(t.Context(), database.OwnerURL), verdictWarn, "1 of ")
}

// oddBucket is a bucket that takes everything and does one thing wrong.
type oddBucket struct {
	archive.Bucket

	get    func(content []byte) ([]byte, error)
	delete error
	put    error
	held   []byte
}

func (b *oddBucket) Put(_ context.Context, _ string, content []byte) error {
	b.held = slices.Clone(content)
	return b.put
}
func (b *oddBucket) Get(context.Context, string) ([]byte, error) { return b.get(b.held) }
func (b *oddBucket) Delete(context.Context, string) error        { return b.delete }

// A bucket has to give back the bytes that were put.
func TestCheckReadsWhatItHasPutIntoTheBucket(t *testing.T) {
	t.Parallel()
	same := func(content []byte) ([]byte, error) { return content, nil }
	for name, c := range map[string]struct {
		bucket oddBucket
		want   verdict
		says   string
	}{
		"sound":           {oddBucket{get: same}, verdictOK, "puts, gets and deletes"},
		"other bytes":     {oddBucket{get: func(content []byte) ([]byte, error) { return append(content[1:], content[0]), nil }}, verdictFail, "other bytes"},
		"a part":          {oddBucket{get: func(content []byte) ([]byte, error) { return content[:3], nil }}, verdictFail, "other bytes"},
		"a page for it":   {oddBucket{get: func([]byte) ([]byte, error) { return []byte("<html>log in</html>"), nil }}, verdictFail, "other bytes"},
		"empty":           {oddBucket{get: func([]byte) ([]byte, error) { return nil, nil }}, verdictFail, "other bytes"},
		"lost":            {oddBucket{get: func([]byte) ([]byte, error) { return nil, archive.ErrNotFound }}, verdictFail, "cannot be read"},
		"does not take":   {oddBucket{get: same, put: errors.New("denied")}, verdictFail, "cannot be put"},
		"does not delete": {oddBucket{get: same, delete: errors.New("denied")}, verdictFail, "cannot be deleted"},
	} {
		judged(t, name, tryBucket(t.Context(), &c.bucket), c.want, c.says)
	}
}

// speaking returns the address of a server that answers each command of Redis as the test says: the
// command is one line, its words separated by spaces.
func speaking(t *testing.T, answer func(command string) string) string {
	t.Helper()
	return faulttest.Serve(t, func(conn net.Conn) {
		lines := bufio.NewReader(conn)
		for {
			var words, size int
			if _, err := fmt.Fscanf(lines, "*%d\r\n", &words); err != nil {
				return
			}
			var command []string
			for range words {
				if _, err := fmt.Fscanf(lines, "$%d\r\n", &size); err != nil {
					return
				}
				word := make([]byte, size+2)
				if _, err := io.ReadFull(lines, word); err != nil {
					return
				}
				command = append(command, string(word[:size]))
			}
			_, _ = io.WriteString(conn, answer(strings.ToLower(command[0])+" "+strings.Join(command[1:], " ")))
		}
	})
}

// A Redis that answers has to keep values, run scripts and take writes.
func TestCheckReadsWhatItHasWrittenToRedis(t *testing.T) {
	t.Parallel()
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	look := func(address string) result {
		config := settings.Config{Storage: settings.Storage{RedisURL: "redis://" + address}}
		parts := setup.DatabaseOf(config)
		defer parts.Close()
		return examiner{parts}.checkRedis(t.Context())
	}
	for name, c := range map[string]struct {
		set, eval, del string
		want           verdict
		says           string
	}{
		"sound":              {"+OK\r\n", "", ":1\r\n", verdictOK, "reads and writes"},
		"a read-only one":    {"-READONLY You can't write against a read only replica.\r\n", "", ":1\r\n", verdictFail, "cannot be written"},
		"with a password":    {"-NOAUTH Authentication required.\r\n", "", ":1\r\n", verdictFail, "NOAUTH"},
		"keeps no value":     {"+OK\r\n", "$-1\r\n", ":0\r\n", verdictFail, "cannot read"},
		"another value":      {"+OK\r\n", bulk("something else"), ":1\r\n", verdictFail, "another value"},
		"runs no script":     {"+OK\r\n", "-NOPERM this user has no permissions to run the 'eval' command\r\n", ":1\r\n", verdictFail, "NOPERM"},
		"removes no value":   {"+OK\r\n", "", ":0\r\n", verdictFail, "gone already"},
		"refuses to remove":  {"+OK\r\n", "", "-NOPERM no\r\n", verdictFail, "cannot be removed"},
		"out of memory":      {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", "", ":1\r\n", verdictFail, "OOM"},
		"talks out of order": {":1\r\n", "+OK\r\n", "+OK\r\n", verdictFail, ""},
	} {
		written := ""
		address := speaking(t, func(command string) string {
			words := strings.Fields(command)
			switch words[0] {
			case "set":
				written = words[2]
				return c.set
			case "eval":
				if c.eval == "" {
					return bulk(written)
				}
				return c.eval
			case "del":
				return c.del
			}
			return "-ERR unknown command\r\n"
		})
		judged(t, name, look(address), c.want, c.says)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "OK") }))
	t.Cleanup(page.Close)
	judged(t, "a web server", look(page.Listener.Addr().String()), verdictFail, "")
}

func TestCheckJudgesTheSpaceThatIsLeft(t *testing.T) {
	t.Parallel()
	judged(t, "too little", spaceResult("data", "data", littleSpace-1), verdictWarn, "1023 MB left")
	judged(t, "full", spaceResult("data", "data", 0), verdictWarn, "0 MB left")
	judged(t, "enough", spaceResult("data", "data", littleSpace), verdictOK, "data, 1 GB free")
	judged(t, "not there yet", spaceResult("parent/data", "parent", 5<<30), verdictOK, "parent/data is created by the first start, 5 GB free")
}

// Valid settings that leave something open are each named.
func TestCheckNamesEverySettingThatLeavesSomethingOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		addr, public string
		private      bool
		says         []string // nil if all is set
	}{
		"of this machine":          {addr: "127.0.0.1:8080"},
		"localhost":                {addr: "localhost:8080", private: true},
		"a name for this machine":  {addr: "0.0.0.0:8080", public: "http://localhost:8080", private: true},
		"reached from everywhere":  {addr: "0.0.0.0:8080", says: []string{"PALIMPSEST_PUBLIC_URL is not set"}},
		"without encryption":       {addr: "0.0.0.0:8080", public: "http://palimpsest.example", says: []string{"is not https"}},
		"private upstreams":        {addr: "127.0.0.1:8080", public: "https://palimpsest.example", private: true, says: []string{"PALIMPSEST_ALLOW_PRIVATE_UPSTREAMS"}},
		"two at once":              {addr: "0.0.0.0:8080", public: "http://palimpsest.example", private: true, says: []string{"is not https", "PALIMPSEST_ALLOW_PRIVATE_UPSTREAMS"}},
		"encrypted and without it": {addr: "0.0.0.0:8080", public: "https://palimpsest.example"},
	} {
		got := checkSettings(settings.Config{Serving: settings.Serving{Addr: c.addr, PublicURL: c.public, AllowPrivateUpstreams: c.private}})
		want := verdictOK
		if len(c.says) > 0 {
			want = verdictWarn
		}
		judged(t, name, got, want, "")
		for _, says := range c.says {
			judged(t, name, got, want, says)
		}
		if open := strings.Count(got.Text, "PALIMPSEST_"); open != len(c.says) {
			t.Errorf("%s: %q names %d settings", name, got.Text, open)
		}
	}
}

// The command fails if any part fails, first or last, and not for a part that needs attention.
func TestCheckFailsWithAnyPartThatFails(t *testing.T) {
	t.Parallel()
	for status, fails := range map[verdict]bool{verdictOK: false, verdictOff: false, verdictWarn: false, verdictFail: true} {
		for at := range 3 {
			results := []result{passed("a"), passed("b"), passed("c")}
			results[at].Status = status
			if got := anyFailed(results); got != fails {
				t.Errorf("%s at %d: fails %t", status, at, got)
			}
		}
	}
}
