package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/embeddings"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/modules/semanticcache/semanticcachedb"
	"palimpsest/tenants"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/vault"
)

// cachingProxy is a proxy that keeps answers in a database of its own, before a provider
// double that counts what it answers in each answer.
type cachingProxy struct {
	*proxy

	double *providertest.Server
	kept   *watchedStore
	keys   callers
	clock  *movingClock
}

// callers knows API keys by their secret.
type callers map[string]tenants.APIKey

func (c callers) Authenticate(_ context.Context, secret string) (tenants.APIKey, error) {
	key, known := c[secret]
	if !known {
		return tenants.APIKey{}, tenants.ErrKeyUnknown
	}
	return key, nil
}

// movingClock is a clock that a test moves.
type movingClock struct {
	mu   sync.Mutex
	past time.Duration
}

func (c *movingClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.past)
}

func (c *movingClock) advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.past += by
}

// watchedStore is a store of answers that tells what was asked of it and can fail.
type watchedStore struct {
	semanticcache.Store

	mu    sync.Mutex
	finds int
	fails func() error // nil: it works
	puts  chan error
}

func (w *watchedStore) Find(ctx context.Context, workspace tenants.WorkspaceID, key semanticcache.Key, since time.Time) (semanticcache.Entry, bool, error) {
	w.mu.Lock()
	w.finds++
	fails := w.fails
	w.mu.Unlock()
	if fails != nil {
		return semanticcache.Entry{}, false, fails()
	}
	return w.Store.Find(ctx, workspace, key, since)
}

func (w *watchedStore) Put(ctx context.Context, workspace tenants.WorkspaceID, entry semanticcache.Entry, expires time.Time) error {
	err := w.Store.Put(ctx, workspace, entry, expires)
	w.puts <- err
	return err
}

func (w *watchedStore) found() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.finds
}

// stored waits until one more answer is in the database.
func (c *cachingProxy) stored() {
	c.t.Helper()
	select {
	case err := <-c.kept.puts:
		if err != nil {
			c.t.Fatal(err)
		}
	case <-time.After(patience):
		c.t.Fatal("the answer is not stored")
	}
}

// Secrets of the callers: two keys of one workspace, one of another.
const (
	keyA1 = testKey
	keyA2 = "plm_live_test2"
	keyB  = "plm_live_other"
)

// setupCaching starts a proxy with the module semantic-cache and settings for it.
func setupCaching(t *testing.T, settings string) *cachingProxy {
	t.Helper()
	var mu sync.Mutex
	answered := 0
	double := providertest.NewServer(t, providerdouble.Config{Key: providerKey, Script: func(r providerdouble.Request) providerdouble.Reply {
		mu.Lock()
		defer mu.Unlock()
		answered++
		reply := providerdouble.Echo(r)
		if len(reply.Calls) == 0 {
			reply.Text = fmt.Sprintf("Answer %d to: %s", answered, r.User)
		}
		return reply
	}})
	c := &cachingProxy{proxy: setupAt(t, double.URL), double: double, clock: &movingClock{}}
	c.store.pipeline = tenants.PipelineConfig{Modules: "ipc,semantic-cache", YAML: settings}
	a, b := c.store.workspace, tenants.NewWorkspaceID()
	c.keys = callers{}
	for secret, workspace := range map[string]tenants.WorkspaceID{keyA1: a, keyA2: a, keyB: b} {
		c.keys[secret] = tenants.APIKey{ID: uuid.New(), Workspace: workspace, Prefix: "plm_live_te", Scopes: []tenants.Scope{tenants.ScopeProxy}, Rights: tenants.KeyRights{Private: true}}
	}
	c.Keys = c.keys
	c.Answers = c.newAnswers(t, dbtest.New(t))
	return c
}

// embeddings returns what has texts embedded by the workspace's provider.
func (c *cachingProxy) embeddings() *embeddings.Client {
	c.t.Helper()
	client, err := embeddings.New(embeddings.Config{Settings: c.Settings, Upstream: c.Upstream, Recorder: c.Recorder, Spent: c.Metrics.Spent, Now: time.Now})
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// newAnswers starts what gives answers again, on a database.
func (c *cachingProxy) newAnswers(t *testing.T, database *dbtest.Database) *semanticcache.Cache {
	t.Helper()
	safe, err := vault.New([][]byte{[]byte("palimpsest test secret 32 bytes!")})
	if err != nil {
		t.Fatal(err)
	}
	for _, caller := range c.keys {
		_, err := database.Owner(t).Exec(t.Context(), "INSERT INTO workspaces (workspace_id, name) VALUES ($1, 'test') ON CONFLICT DO NOTHING", caller.Workspace)
		if err != nil {
			t.Fatal(err)
		}
	}
	c.kept = &watchedStore{Store: semanticcachedb.New(database.DB, archive.NewKeys(datakeys.New(database.DB.DataKeys, safe))), puts: make(chan error, 100)}
	answers, err := semanticcache.NewCache(semanticcache.Services{
		Store: c.kept, Secret: safe.Derive("questions"), Log: c.Log, Now: c.clock.now,
		Patience: time.Minute, // of a loaded machine
	})
	if err != nil {
		t.Fatal(err)
	}
	answers.Start()
	t.Cleanup(answers.Stop)
	return answers
}

// ask sends a request and demands what becomes of it at the cache.
func (c *cachingProxy) ask(want, path, body string, header ...string) answer {
	c.t.Helper()
	got := c.send(http.MethodPost, path, body, header...)
	if result := got.header.Get("X-Palimpsest-Cache"); got.status != http.StatusOK || result != want {
		c.t.Errorf("%s is answered with %d and the cache says %q, want %q: %.300s", body, got.status, result, want, got.body)
	}
	return got
}

// renewProviderKeys gives the workspace other keys for the same providers.
func (p *proxy) renewProviderKeys() {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.store.keys = slices.Clone(p.store.keys)
	for i := range p.store.keys {
		p.store.keys[i].ID = uuid.New()
	}
	p.Settings.ForgetAll()
}

// generated returns how many answers the provider was asked for.
func (c *cachingProxy) generated() (answers, embeddings int) {
	for _, request := range c.double.Requests() {
		if request.Path == "/v1/embeddings" {
			embeddings++
		} else {
			answers++
		}
	}
	return answers, embeddings
}
