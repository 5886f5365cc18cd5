package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/jackc/pgx/v5/pgxpool"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/jobs"
)

// gateway is a real S3 server that can be stopped and started again at its address.
type gateway struct {
	t       *testing.T
	root    string // the bucket originals is a folder in it
	about   string
	address string
	process *exec.Cmd
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{t: t, root: filepath.Join(t.TempDir(), "buckets"), about: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(g.root, "originals"), 0o700); err != nil {
		t.Fatal(err)
	}
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.address = free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	g.start()
	t.Cleanup(g.stop)
	return g
}

func (g *gateway) url() string {
	return "s3://key:secret@originals?region=us-east-1&endpoint=http://" + g.address
}

// start starts the server and returns once it takes connections.
func (g *gateway) start() {
	g.t.Helper()
	g.process = exec.CommandContext(context.WithoutCancel(g.t.Context()), buildtest.Versitygw(g.t),
		"--port", g.address, "--access", "key", "--secret", "secret", "posix", "--sidecar", g.about, g.root)
	output, err := g.process.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	if err := g.process.Start(); err != nil {
		g.t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "http://"+g.address) {
			go func() { // what it says of each request
				for lines.Scan() {
				}
			}()
			return
		}
	}
	g.t.Fatalf("the S3 server does not listen at %s", g.address)
}

// stop kills the server.
func (g *gateway) stop() {
	_ = g.process.Process.Kill() // it may have been stopped before
	_ = g.process.Wait()
}

// attention returns what the overview lists for a person to look at.
func (w *tenant) attention() string {
	w.t.Helper()
	response, page := w.look("/overview")
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("the overview: status %d: %.300s", response.StatusCode, page)
	}
	document, err := goquery.NewDocumentFromReader(strings.NewReader(page))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Join(strings.Fields(document.Find("#card-attention").Text()), " ")
}

// A bucket whose server is stopped is a line for the operator, a field of /readyz and a
// metric, everything that needs its originals is a 503, and all of that ends when the server
// is back.
func TestStoppedBucketIsSeenAndNamed(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	bucket := newGateway(t)
	i := start(t, providerdouble.Config{})
	i.shutdown()
	i.config.Storage.BlobURL, i.config.Serving.Role = bucket.url(), settings.RoleAPI // passes are the test's own
	i.boot()
	operator, other := i.tenant("operator"), i.tenant("member")
	var s script
	s.add("user", "Where does the heron nest?")
	s.call("cat birds.txt", "Read about birds", "The heron nests in tall trees near water.")
	s.add("user", "Thanks.")
	request := operator.sendOf(&s).Get("X-Palimpsest-Request-Id")
	other.sendOf(&s)
	session := operator.onlySession()
	operator.untilArchived(len(s.messages))
	other.untilArchived(len(s.messages))
	i.program.sites[0].seams.mover.Segments.Wait = 0
	for _, pass := range []jobs.Kind{"index", "archive"} {
		if err := i.program.sites[0].seams.work.Pass(context.WithoutCancel(t.Context()), pass); err != nil {
			t.Fatal(err)
		}
	}
	i.shutdown()
	i.config.Serving.Role = settings.RoleAll
	i.boot()

	isUp := func(up bool) {
		t.Helper()
		i.program.sites[0].health.parts.Look(t.Context())
		field, metric := "down", "palimpsest_bucket_up 0"
		if up {
			field, metric = "up", "palimpsest_bucket_up 1"
		}
		if is := i.readiness(); is.Bucket != field || is.code != http.StatusOK || is.Status != "ready" {
			t.Errorf("/readyz, bucket %s: %+v", field, is)
		}
		if metrics := operator.metrics(); !strings.Contains(metrics, "\n"+metric+"\n") {
			t.Errorf("/metrics lacks %q", metric)
		}
		if got := strings.Contains(operator.attention(), "Blob store: does not answer"); got == up {
			t.Errorf("bucket %s, the operator's attention: %s", field, operator.attention())
		}
		if strings.Contains(other.attention(), "Blob store") {
			t.Errorf("who operates nothing reads of it: %s", other.attention())
		}
		_, page := operator.look("/operator")
		if strings.Contains(page, "refused with 503 until it answers") == up {
			t.Errorf("bucket %s, the operator's page: %s", field, page)
		}
	}
	isUp(true)
	for _, metric := range []string{"palimpsest_mover_lag_seconds 0", "palimpsest_indexer_lag_seconds 0", "palimpsest_recorder_lag_seconds 0"} {
		if !strings.Contains(operator.metrics(), "\n"+metric) {
			t.Errorf("/metrics lacks %q", metric)
		}
	}
	var took float64
	_, answer, _ := strings.Cut(operator.metrics(), "\npalimpsest_database_answer_seconds ")
	if _, err := fmt.Sscan(answer, &took); err != nil || took <= 0 || took >= 1 {
		t.Errorf("the database answers in %v s (%v)", took, err)
	}

	bucket.stop()
	isUp(false)
	for _, path := range []string{
		"/api/v1/sessions/" + session + "/archive/0", "/api/v1/sessions/" + session + "/export",
		"/api/v1/sessions/" + session + "/export?format=tar", "/api/v1/sessions/" + session + "/export?format=markdown",
		"/api/v1/search?q=heron", "/sessions/" + session,
	} {
		response, answer := operator.look(path)
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "30" || !strings.Contains(answer, "bucket") {
			t.Errorf("%s while it is stopped: status %d, Retry-After %q: %.300s", path, response.StatusCode, response.Header.Get("Retry-After"), answer)
		}
	}
	if _, page := operator.look("/sessions?q=heron"); !strings.Contains(page, "The bucket with the originals does not answer") {
		t.Error("the search of sessions does not name the bucket")
	}
	if _, page := operator.look("/requests/" + request); strings.Count(page, "in a bucket that does not answer") != 2 {
		t.Errorf("the page of a request does not say of what was asked and answered where it is: %.3000s", page)
	}
	for tool, arguments := range map[string]map[string]any{"recall_search": {"query": "heron"}, "recall_get": {"session": session, "pointer": "#0"}} {
		if said := operator.recall(tool, arguments); !strings.Contains(said, "bucket") || !strings.Contains(said, "30 seconds") {
			t.Errorf("%s while it is stopped: %s", tool, said)
		}
	}
	if response, answer := operator.post("/v1/messages", s.body(), nil); response.StatusCode != http.StatusOK {
		t.Errorf("a request while it is stopped: status %d: %s", response.StatusCode, answer)
	}

	bucket.start()
	isUp(true)
	if response, answer := operator.look("/api/v1/sessions/" + session + "/archive/0"); response.StatusCode != http.StatusOK {
		t.Errorf("once it is back: status %d: %.300s", response.StatusCode, answer)
	}
}

// The database's own figures of a real standby, and of a slot that no standby uses.
func TestLagOfStandbysIsMeasured(t *testing.T) {
	t.Parallel()
	pair := dbtest.NewPair(t)
	i := startOn(t, pair.OwnerURL, providerdouble.Config{})
	w := i.tenant("replicated")
	var s script
	s.add("user", "Hello.")
	w.sendOf(&s)
	w.untilArchived(len(s.messages))
	i.until(func() bool {
		i.program.sites[0].health.parts.Look(t.Context())
		return strings.Contains(w.metrics(), "palimpsest_replication_lag_bytes{standby=\"walreceiver\"} 0\n")
	})
	if metrics := w.metrics(); !strings.Contains(metrics, "palimpsest_replication_lag_seconds{standby=\"walreceiver\"} ") {
		t.Error("/metrics lacks the seconds of the standby")
	}
	owner, err := pgxpool.New(t.Context(), pair.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if _, err := owner.Exec(t.Context(), "SELECT pg_create_physical_replication_slot('lost', true)"); err != nil {
		t.Fatal(err)
	}
	// The overview has no such card before the workspace's first request is recorded.
	i.until(func() bool {
		i.program.sites[0].health.parts.Look(t.Context())
		return strings.Contains(w.attention(), "Replication: lost is not connected")
	})
}
