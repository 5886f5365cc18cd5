package deletion_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/archive/blob"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/deletion"
	"palimpsest/tenants/vault"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const kind jobs.Kind = "delete_workspace"

// product is what stores a workspace's data, all of it real.
type product struct {
	*dbtest.Database

	sessions *sessiondb.Store
	archive  *archivedb.DB
	index    *archivedb.Index
	mover    *archivedb.Mover
	bucket   *faulty
	work     *jobsdb.Runner
	service  *deletion.Service
	ended    chan string // how each job ended
}

// faulty is a bucket that fails when it is told to.
type faulty struct {
	archive.Bucket

	mu   sync.Mutex
	left int // deletions until it fails; negative: it does not
}

var errDown = errors.New("the bucket is down")

// failAfter has it fail after so many deletions; negative: not at all.
func (f *faulty) failAfter(deletions int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = deletions
}

// isDown reports whether it fails, and counts a deletion where it does not.
func (f *faulty) isDown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left > 0 {
		f.left--
		return false
	}
	return f.left == 0
}

func (f *faulty) Delete(ctx context.Context, name string) error {
	if f.isDown() {
		return errDown
	}
	return f.Bucket.Delete(ctx, name)
}

func setup(t *testing.T, bucket archive.Bucket) *product {
	t.Helper()
	p := &product{Database: dbtest.New(t), bucket: &faulty{Bucket: bucket, left: -1}, ended: make(chan string, 100)}
	safe, err := vault.New([][]byte{bytes.Repeat([]byte("s"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	keys := archive.NewKeys(datakeys.New(p.DB.DataKeys, safe))
	p.archive = archivedb.New(p.DB, keys).WithBucket(p.bucket)
	p.sessions = sessiondb.New(p.DB, keys)
	p.index = archivedb.NewIndex(p.archive, func(_ conversation.Format, raw []byte) (conversation.Message, error) {
		return anthropic.New().Parse(raw)
	})
	p.mover = archivedb.NewMover(p.DB, keys, p.bucket)
	p.mover.Segments.Originals, p.mover.Segments.Wait = 1, 0
	log := slog.New(slog.DiscardHandler)
	p.work = jobsdb.New(jobsdb.Config{
		Pool: p.DB.WorkPool(), Joined: p.DB.Joined, Metrics: jobsdb.NewMetrics(prometheus.NewRegistry()), Log: log, Now: time.Now,
		Ended: func(_ jobs.Kind, outcome string) { p.ended <- outcome },
	})
	p.service = deletion.New(deletion.Config{
		Store: p.DB.Deletion, EraseBytes: p.mover.Erase, ForgetJobs: p.work.Forget, Log: log,
		Enqueue: func(ctx context.Context, tenant tenants.Tenant) error {
			return p.work.Enqueue(ctx, tenant, jobs.Job{Kind: kind, Workspace: tenant.Workspace()})
		},
	})
	p.work.Handle(kind, jobs.Limits{Workers: 1}, func(ctx context.Context, workspace tenants.WorkspaceID, _ uuid.UUID) error {
		return p.service.Work(ctx, workspace)
	})
	if err := p.work.Open(); err != nil {
		t.Fatal(err)
	}
	return p
}

// workspace signs someone up whose workspace has sessions in the archive, the index
// and the bucket.
func (p *product) workspace(t *testing.T, name string, sessions int) tenants.WorkspaceID {
	t.Helper()
	_, workspace, err := p.DB.Accounts.SignUp(t.Context(), name+"@example.com", "hash", name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sessions {
		scope := session.Scope{Workspace: workspace.ID, APIKey: uuid.New(), Format: conversation.Anthropic}
		seen := session.Update{
			Scope: scope, Session: uuid.New(), Lane: uuid.New(), Naming: session.Naming{Source: "lineage"}, Title: "a session of " + name, Model: "m",
			At: time.Now(), Messages: session.Messages{Position: 3, Head: sha256.Sum256(fmt.Appendf(nil, "%s %d", name, i))},
			Increment: session.Increment{Exchanges: 1},
		}
		for n := range 3 {
			raw := fmt.Appendf(nil, `{"role":"user","content":"zebra %d of session %d of %s"}`, n, i, name)
			seen.Messages.Entries = append(seen.Messages.Entries, archive.Entry{Index: n, Hash: sha256.Sum256(raw), Role: conversation.User, Tokens: 7, Raw: raw})
		}
		if err := p.sessions.Record(t.Context(), workspace.ID, []session.Update{seen}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.index.Index(t.Context(), workspace.ID, seen.Lane); err != nil {
			t.Fatal(err)
		}
		err := p.DB.Exchanges.RecordExchanges(t.Context(), workspace.ID, []tenants.Exchange{{
			ID: uuid.Must(uuid.NewV7()), At: time.Now(),
			Request: tenants.ExchangeRequest{
				Session: seen.Session, Lane: seen.Lane, APIKey: scope.APIKey, Endpoint: "/v1/messages",
			},
			Answer: tenants.ExchangeAnswer{Provider: tenants.ProviderAnthropic, Status: 200},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return workspace.ID
}

// hits returns how much a search finds.
func (p *product) hits(t *testing.T, workspace tenants.WorkspaceID) int {
	t.Helper()
	found, err := p.index.Search(t.Context(), workspace, archive.Query{Text: "zebra"})
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// rows returns every row that holds a workspace's id, of any table, also River's.
func (p *product) rows(t *testing.T, workspace tenants.WorkspaceID) []string {
	t.Helper()
	owner := p.Owner(t)
	tables, err := owner.Query(t.Context(), `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('public', 'jobs') AND c.relkind IN ('r', 'p')`)
	if err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	var names, found []string
	for tables.Next() {
		var name string
		if err := tables.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	tables.Close()
	for _, name := range names {
		var count int
		if err := owner.QueryRow(t.Context(), "SELECT count(*) FROM "+name+" r WHERE r::text LIKE $1", "%"+workspace.String()+"%").Scan(&count); err != nil {
			t.Fatal(err)
		}
		if count > 0 {
			found = append(found, fmt.Sprintf("%s: %d", name, count))
		}
	}
	return found
}

// directory is a bucket in a directory, and what counts its files of a workspace.
func directory(t *testing.T) (archive.Bucket, func(t *testing.T, workspace tenants.WorkspaceID) int) {
	t.Helper()
	root := t.TempDir()
	bucket, err := blob.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	return bucket, func(t *testing.T, workspace tenants.WorkspaceID) int {
		t.Helper()
		files := 0
		err := filepath.WalkDir(filepath.Join(root, workspace.String()), func(_ string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				files++
			}
			return err
		})
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return files
	}
}

// s3 is a bucket of an S3-compatible server, and what counts its objects.
func s3(t *testing.T) (archive.Bucket, func(t *testing.T, workspace tenants.WorkspaceID) int) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("originals"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	bucket, err := blob.Open("s3://key:secret@originals?endpoint=" + server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return bucket, func(t *testing.T, workspace tenants.WorkspaceID) int {
		t.Helper()
		listed, err := backend.ListBucket("originals", nil, gofakes3.ListBucketPage{})
		if err != nil {
			t.Fatal(err)
		}
		objects := 0
		for _, object := range listed.Contents {
			if strings.Contains(object.Key, workspace.String()) {
				objects++
			}
		}
		return objects
	}
}

// S31: after the job no row, blob or search hit is left of the workspace, in a
// directory and in S3; of another nothing is gone.
func TestDeletedWorkspaceLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (archive.Bucket, func(*testing.T, tenants.WorkspaceID) int){"directory": directory, "s3": s3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket, count := open(t)
			p := setup(t, bucket)
			gone, stays := p.workspace(t, "gone", 25), p.workspace(t, "stays", 2)
			if _, err := p.mover.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			if count(t, gone) != 75 || p.hits(t, gone) == 0 || count(t, stays) != 6 {
				t.Fatalf("%d objects, %d hits: the test proves nothing", count(t, gone), p.hits(t, gone))
			}
			if err := p.service.DeleteWorkspace(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
			if err := p.work.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.work.Stop)
			if outcome := <-p.ended; outcome != "done" {
				t.Fatalf("the job is %s", outcome)
			}
			p.work.Stop()
			if err := p.work.Forget(t.Context(), gone); err != nil { // its own row, which River keeps for an hour
				t.Fatal(err)
			}
			if rows := p.rows(t, gone); len(rows) > 0 || count(t, gone) != 0 || p.hits(t, gone) != 0 {
				t.Errorf("left: rows %v, %d objects, %d hits", rows, count(t, gone), p.hits(t, gone))
			}
			if count(t, stays) != 6 || p.hits(t, stays) == 0 {
				t.Errorf("of the other workspace %d objects and %d hits are left", count(t, stays), p.hits(t, stays))
			}
		})
	}
}

// S28, S31: a deletion that is cut off goes on where it was, however often.
func TestADeletionThatIsCutOffGoesOn(t *testing.T) {
	t.Parallel()
	bucket, count := directory(t)
	p := setup(t, bucket)
	gone := p.workspace(t, "gone", 3)
	if _, err := p.mover.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.service.DeleteWorkspace(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if err := p.service.DeleteWorkspace(t.Context(), gone); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("once more: %v", err)
	}
	p.bucket.failAfter(4)
	if err := p.service.Work(t.Context(), gone); !errors.Is(err, errDown) {
		t.Fatalf("while the bucket is down: %v", err)
	}
	if left := count(t, gone); left == 0 || left == 9 {
		t.Fatalf("%d objects are left: the test proves nothing", left)
	}
	p.bucket.failAfter(-1)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.service.Pass(canceled); err == nil {
		t.Error("a pass that is told to stop did not")
	}
	for range 2 {
		if err := p.service.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if rows := p.rows(t, gone); len(rows) > 0 || count(t, gone) != 0 {
		t.Errorf("left: rows %v, %d objects", rows, count(t, gone))
	}
}

// What is in a bucket is not forgotten because the program does not know the bucket.
func TestWithoutItsBucketAWorkspaceIsNotErased(t *testing.T) {
	t.Parallel()
	bucket, count := directory(t)
	p := setup(t, bucket)
	gone := p.workspace(t, "gone", 1)
	if _, err := p.mover.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.service.DeleteWorkspace(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	without := archivedb.NewMover(p.DB, archivetest.Keys(), nil)
	if err := p.DB.Deletion.EraseSessions(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if err := without.Erase(t.Context(), gone); !errors.Is(err, archivedb.ErrNoBucket) {
		t.Errorf("%v, want ErrNoBucket", err)
	}
	if err := p.service.Work(t.Context(), gone); err != nil || count(t, gone) != 0 {
		t.Errorf("with it again: %v, %d objects", err, count(t, gone))
	}
}

// A workspace that nobody deleted is not erased by a job that says so.
func TestNothingIsErasedThatNobodyDeleted(t *testing.T) {
	t.Parallel()
	bucket, _ := directory(t)
	p := setup(t, bucket)
	stays := p.workspace(t, "stays", 1)
	if err := p.service.Work(t.Context(), stays); err != nil || p.hits(t, stays) == 0 {
		t.Errorf("%v, %d hits", err, p.hits(t, stays))
	}
}
