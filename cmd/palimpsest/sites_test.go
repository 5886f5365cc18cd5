package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants/identity"
)

const (
	hostA = "a.example.com"
	hostB = "b.example.com"
)

// siteConfig returns the settings of a program on two databases.
func siteConfig(t *testing.T, ofA, ofB string) settings.Config {
	t.Helper()
	values := map[string]string{
		"DATABASE_URLS":   "https://" + hostA + "=" + ofA + "\nhttps://" + hostB + "=" + ofB,
		"PALIMPSEST_ADDR": "127.0.0.1:0", "PALIMPSEST_ADMIN_ADDR": "127.0.0.1:0", "PALIMPSEST_DATA_DIR": t.TempDir(),
		"PALIMPSEST_SECRET_KEY": dbtest.SecretKey, "PALIMPSEST_ALLOW_PRIVATE_UPSTREAMS": "true", "PALIMPSEST_DRAIN_DELAY": "0s",
	}
	config, err := settings.LoadConfig("", func(name string) (string, bool) { value, is := values[name]; return value, is })
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// startSites starts a program on two databases.
func startSites(t *testing.T, config settings.Config) *instance {
	t.Helper()
	i := &instance{t: t, config: config, log: &syncBuffer{}, double: providertest.NewServer(t, providerdouble.Config{Key: providerKey, Count: counter(t).Count})}
	i.boot()
	return i
}

// at returns the instance as people at a host see it.
func (i *instance) at(host string) *instance {
	other := *i
	other.host = host
	return &other
}

// from returns a tenant's key and login at a host.
func (w *tenant) from(host string) *tenant {
	return &tenant{instance: w.at(host), key: w.key, cookies: w.cookies}
}

// count returns the first column of a question to a database.
func count(t *testing.T, database *pgxpool.Pool, question string) (found int) {
	t.Helper()
	if err := database.QueryRow(t.Context(), question).Scan(&found); err != nil {
		t.Fatal(err)
	}
	return found
}

// Workspaces of one program live on two databases: an account and its pages belong to the host
// where it signed up, and an API key works at any.
func TestWorkspacesLiveOnTheDatabaseOfTheirHost(t *testing.T) {
	t.Parallel()
	first, second := dbtest.New(t), dbtest.New(t)
	i := startSites(t, siteConfig(t, first.OwnerURL, second.OwnerURL))
	a, b := i.at(hostA).tenant("team"), i.at(hostB).tenant("team") // the same address, and two accounts
	databases := map[*tenant]*pgxpool.Pool{a: first.Owner(t), b: second.Owner(t)}
	for _, w := range []*tenant{a, b} {
		for _, host := range []string{hostA, hostB, "c.example.com"} {
			for _, header := range []map[string]string{nil, {"Authorization": "", "X-Api-Key": w.key}, {"Authorization": "", "Api-Key": w.key}} {
				if response, content := w.from(host).post("/v1/messages", []byte(smallMessage), header); response.StatusCode != http.StatusOK {
					t.Errorf("the key of %s at %s: status %d: %s", w.host, host, response.StatusCode, content)
				}
			}
		}
		for _, host := range []string{hostA, hostB} {
			if said := w.from(host).recall("recall_search", map[string]any{"query": "heron"}); !strings.Contains(said, `"result"`) {
				t.Errorf("the key of %s recalls at %s: %s", w.host, host, said)
			}
		}
	}
	for _, w := range []*tenant{a, b} {
		w.until(func() bool { return count(t, databases[w], "SELECT count(*) FROM exchanges") == 9 })
		if users, workspaces := count(t, databases[w], "SELECT count(*) FROM users"), count(t, databases[w], "SELECT count(*) FROM workspaces"); users != 1 || workspaces != 1 {
			t.Errorf("%s holds %d users and %d workspaces", w.host, users, workspaces)
		}
	}

	a.call(http.MethodGet, "/api/v1/me", nil, http.StatusOK, nil)
	a.from("c.example.com").call(http.MethodGet, "/api/v1/me", nil, http.StatusOK, nil) // the first answers for hosts that are unknown
	a.from(hostB).call(http.MethodGet, "/api/v1/me", nil, http.StatusUnauthorized, nil)
	b.from("c.example.com").call(http.MethodGet, "/api/v1/me", nil, http.StatusUnauthorized, nil)
	for _, w := range []*tenant{a, b} {
		if _, page := w.look("/keys"); !strings.Contains(page, "https://"+w.host) {
			t.Errorf("a page of %s does not name it", w.host)
		}
		stranger := w.from(hostA)
		stranger.key, _, _ = identity.GenerateKey()
		if response, content := stranger.post("/v1/messages", []byte(smallMessage), nil); response.StatusCode != http.StatusUnauthorized {
			t.Errorf("a key of nobody: status %d: %s", response.StatusCode, content)
		}
	}

	a.call(http.MethodDelete, "/api/v1/workspace", map[string]any{"name": "team", "password": "correct horse battery"}, http.StatusAccepted, nil)
	a.until(func() bool { return count(t, databases[a], "SELECT count(*) FROM workspaces") == 0 })
	a.hears(func() bool {
		response, _ := a.from(hostB).post("/v1/messages", []byte(smallMessage), nil)
		return response.StatusCode == http.StatusUnauthorized
	})
	if response, content := b.from(hostA).post("/v1/messages", []byte(smallMessage), nil); response.StatusCode != http.StatusOK {
		t.Errorf("without the other workspace: status %d: %s", response.StatusCode, content)
	}
	i.shutdown() // what waits is recorded
	if rows := count(t, databases[b], "SELECT count(*) FROM exchanges"); rows != 10 {
		t.Errorf("%d requests are recorded", rows)
	}
}

// The admin address tells the databases apart, and what is of the process it tells once.
func TestMetricsAndReadinessTellTheDatabasesApart(t *testing.T) {
	t.Parallel()
	i := startSites(t, siteConfig(t, dbtest.New(t).OwnerURL, dbtest.New(t).OwnerURL))
	b := i.at(hostB).tenant("metered")
	b.from(hostA).post("/v1/messages", []byte(smallMessage), nil)
	recorded := httptest.NewRecorder()
	i.program.ready(recorded, nil)
	want := fmt.Sprintf("{\"status\":\"ready\",\"databases\":{%q:{\"database\":\"up\"},%q:{\"database\":\"up\"}}}\n", hostA, hostB)
	if recorded.Code != http.StatusOK || recorded.Body.String() != want {
		t.Errorf("/readyz: %d, %s", recorded.Code, recorded.Body)
	}
	metrics := i.metrics()
	for name, found := range map[string]int{
		`palimpsest_database_up\{database="a.example.com"\} 1`: 1, `palimpsest_database_up\{database="b.example.com"\} 1`: 1, `palimpsest_database_up `: 0,
		`palimpsest_requests_total\{database="b.example.com",.*\} 1`: 1, `palimpsest_requests_total\{database="a.example.com",`: 0,
		`go_goroutines \d+`: 1, `palimpsest_jobs_total\{`: -1,
	} {
		got := len(regexp.MustCompile(`(?m)^`+name).FindAllString(metrics, -1))
		if got != found && found >= 0 {
			t.Errorf("%s: %d lines, want %d", name, got, found)
		}
	}
	for _, host := range []string{hostA, hostB} {
		for _, dir := range []string{spoolDir, journalDir} {
			if found, err := filepath.Glob(filepath.Join(i.config.Storage.DataDir, "databases", host, dir)); err != nil || len(found) != 1 {
				t.Errorf("%s has no directory %s of its own", host, dir)
			}
		}
	}
}

// One of two databases takes no connections: its workspaces fare as those of any installation whose
// database is away, and those of the other notice nothing, at either host.
func TestOutageOfOneDatabaseIsThatOfItsWorkspaces(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	config := siteConfig(t, dbtest.New(t).OwnerURL, dbtest.New(t).OwnerURL)
	i := startSites(t, config)
	a, b := i.at(hostA).tenant("lasting"), i.at(hostB).tenant("outage")
	fresh := func(of *tenant) *tenant {
		other := of.from(of.host)
		var created struct {
			Secret string `json:"secret"`
		}
		of.call(http.MethodPost, "/api/v1/keys", map[string]any{"name": "fresh", "scopes": []string{"proxy"}}, http.StatusCreated, &created)
		other.key = created.Secret
		return other
	}
	sends := func(w *tenant, want int) {
		t.Helper()
		for _, host := range []string{hostA, hostB} {
			if response, content := w.from(host).post("/v1/messages", []byte(smallMessage), nil); response.StatusCode != want {
				t.Errorf("a key of %s at %s: status %d, want %d: %s", w.host, host, response.StatusCode, want, content)
			}
		}
	}
	sends(a, http.StatusOK)
	sends(b, http.StatusOK)
	freshA, freshB := fresh(a), fresh(b)

	broken := &instance{t: t, config: config.Each()[1]}
	broken.allowConnections(false)
	i.until(func() bool { return i.program.sites[1].health.away.Load() })
	sends(a, http.StatusOK)
	sends(b, http.StatusOK) // as before: from memory
	sends(freshA, http.StatusOK)
	sends(freshB, http.StatusServiceUnavailable)
	a.call(http.MethodGet, "/api/v1/sessions", nil, http.StatusOK, nil)
	if response, _ := a.look("/overview"); response.StatusCode != http.StatusOK {
		t.Errorf("the overview: status %d", response.StatusCode)
	}
	fresh(a)
	recorded := httptest.NewRecorder()
	i.program.ready(recorded, nil)
	if said := recorded.Body.String(); recorded.Code != http.StatusOK || !strings.Contains(said, `"a.example.com":{"database":"up"},"b.example.com":{"database":"down"}`) {
		t.Errorf("/readyz: %d, %s", recorded.Code, said)
	}

	broken.allowConnections(true)
	i.until(func() bool { return !i.program.sites[1].health.away.Load() })
	sends(freshB, http.StatusOK)
	b.call(http.MethodGet, "/api/v1/sessions", nil, http.StatusOK, nil)
}

// One of two databases takes no connections, or stands still, while the program starts: the other's
// workspaces are served, and its own once it is back, with everything that a start does.
func TestStartServesTheDatabasesThatAreUp(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	for name, away := range map[string]func(t *testing.T) (address string, comesBack func()){
		"it takes no connections": func(t *testing.T) (string, func()) {
			t.Helper()
			database, other := dbtest.Empty(t), dbtest.Empty(t).Owner(t)
			allow := func(are bool) {
				if _, err := other.Exec(t.Context(), fmt.Sprintf("ALTER DATABASE %s ALLOW_CONNECTIONS %t", database.Name, are)); err != nil {
					t.Error(err)
				}
			}
			allow(false)
			return database.OwnerURL, func() { allow(true) }
		},
		"it stands still": func(t *testing.T) (string, func()) {
			t.Helper()
			server := dbtest.NewServer(t)
			server.Freeze(t)
			return server.OwnerURL, func() { server.Thaw(t) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, comesBack := away(t)
			i := startSites(t, siteConfig(t, dbtest.New(t).OwnerURL, address))
			a := i.at(hostA).tenant("early")
			sends := func(w *tenant, want int, retry string) {
				t.Helper()
				for _, host := range []string{hostA, hostB} {
					response, content := w.from(host).post("/v1/messages", []byte(smallMessage), nil)
					if response.StatusCode != want || response.Header.Get("Retry-After") != retry {
						t.Errorf("a key of %s at %s: status %d, Retry-After %q: %s", w.host, host, response.StatusCode, response.Header.Get("Retry-After"), content)
					}
				}
			}
			sends(a, http.StatusOK, "")
			stranger := a.from(hostB)
			stranger.key, _, _ = identity.GenerateKey() // that the database which is away might know
			sends(stranger, http.StatusServiceUnavailable, "5")
			stranger.call(http.MethodPost, "/api/v1/login", map[string]any{"email": "a@example.com", "password": "correct horse battery"}, http.StatusServiceUnavailable, nil)
			if response, page := stranger.look("/overview"); response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "5" {
				t.Errorf("a page: status %d: %s", response.StatusCode, page)
			}
			recorded := httptest.NewRecorder()
			i.program.ready(recorded, nil)
			if said := recorded.Body.String(); recorded.Code != http.StatusOK || !strings.Contains(said, `"a.example.com":{"database":"up"},"b.example.com":{"database":"down"`) {
				t.Errorf("/readyz: %d, %s", recorded.Code, said)
			}
			if metrics := i.metrics(); !strings.Contains(metrics, `palimpsest_database_up{database="b.example.com"} 0`) || !strings.Contains(metrics, `palimpsest_database_up{database="a.example.com"} 1`) {
				t.Error("the metrics do not say which database is away")
			}

			comesBack()
			i.until(func() bool { return !i.program.sites[1].health.away.Load() })
			b := i.at(hostB).tenant("late")
			sends(b, http.StatusOK, "")
			sends(a, http.StatusOK, "")
			owner, err := pgxpool.New(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(owner.Close)
			b.until(func() bool { return count(t, owner, "SELECT count(*) FROM archive_indexed") > 0 }) // jobs run
		})
	}
}

// Bodies in flight are bounded in the process, whichever databases their workspaces are on.
func TestBodiesInFlightAreBoundedOverAllDatabases(t *testing.T) {
	t.Parallel()
	config := siteConfig(t, dbtest.New(t).OwnerURL, dbtest.New(t).OwnerURL)
	config.Bounds.WorkspaceMegabytes, config.Bounds.Megabytes = 1, 1
	i := startSites(t, config)
	a, b := i.at(hostA).tenant("holding"), i.at(hostB).tenant("waiting")
	large := []byte(strings.Replace(smallMessage, `"max_tokens"`, `"metadata":{"user_id":"`+strings.Repeat("x", 700<<10)+`"},"max_tokens"`, 1))
	arrived, goOn := make(chan struct{}), make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(arrived)
		<-goOn
		out.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(provider.Close)
	done := make(chan int)
	go func() {
		response, _ := a.post("/v1/messages", large, map[string]string{"X-Palimpsest-Provider-Key": "sk-once", "X-Palimpsest-Base-Url": provider.URL})
		done <- response.StatusCode
	}()
	<-arrived
	if response, content := b.post("/v1/messages", large, nil); response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("beside a large body: status %d: %s", response.StatusCode, content)
	}
	if response, content := b.post("/v1/messages", []byte(smallMessage), nil); response.StatusCode != http.StatusOK {
		t.Errorf("a small body: status %d: %s", response.StatusCode, content)
	}
	close(goOn)
	if status := <-done; status != http.StatusNoContent {
		t.Errorf("the large body: status %d", status)
	}
	if response, content := b.post("/v1/messages", large, nil); response.StatusCode != http.StatusOK {
		t.Errorf("behind it: status %d: %s", response.StatusCode, content)
	}
}

// A database that does not exist ends the start with the host that it is for, and without its
// password.
func TestStartNamesTheHostOfADatabaseThatFails(t *testing.T) {
	t.Parallel()
	good := dbtest.New(t).OwnerURL
	missing := regexp.MustCompile(`/[^/?]+(\?|$)`).ReplaceAllString(good, "/no_such_database$1")
	program, err := newProgram(t.Context(), siteConfig(t, good, missing), slog.New(slog.DiscardHandler))
	if err == nil {
		program.stop(t.Context())
		t.Fatal("the program starts")
	}
	if !strings.Contains(err.Error(), "DATABASE_URLS: "+hostB) || strings.Contains(err.Error(), missing) {
		t.Errorf("error %v", err)
	}
}
