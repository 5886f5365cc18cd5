package semanticcache

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/localcache"
	"palimpsest/pipeline/spans"
	"palimpsest/tenants"
)

const (
	keepTimeout  = 10 * time.Second
	queueLength  = 256         // answers that may wait to be kept
	knownAnswers = 64 << 20    // bytes of answers in memory
	knownAge     = time.Minute // bounds how long an answer outlives its row in memory
	knownScores  = 100_000
)

// Store keeps answers for all replicas.
type Store interface {
	// Find returns what was kept after since: the answer to the same request first,
	// then those to the same question in other words.
	Find(ctx context.Context, workspace tenants.WorkspaceID, question Question, since time.Time) ([]Entry, error)

	// Put keeps an answer until expires.
	Put(ctx context.Context, workspace tenants.WorkspaceID, entry Entry, expires time.Time) error
}

// Services is what a Cache works with.
type Services struct {
	Store    Store
	Embedder archive.Embedder
	Secret   []byte // makes keys
	Log      *slog.Logger
	Now      func() time.Time

	// Patience bounds what a request may wait for an answer that was kept, and for the
	// embeddings of its question; the zero value is DefaultPatience.
	Patience Patience
}

// Patience is how long a request waits for the cache before it goes on without it.
type Patience struct {
	Find  time.Duration // for an answer that was kept
	Embed time.Duration // for the embeddings of a question
}

// DefaultPatience is little beside what a model takes to answer.
func DefaultPatience() Patience {
	return Patience{Find: 100 * time.Millisecond, Embed: 300 * time.Millisecond}
}

// Cache gives answers again to the same question, for workspaces that have turned the module on.
type Cache struct {
	Services

	known  *localcache.Cache[[32]byte, Entry]   // by key, which is made of the workspace, too
	scores *localcache.Cache[[32]byte, float64] // by pair

	queue   chan keptAnswer
	stop    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once
}

// keptAnswer is an answer on its way to the store.
type keptAnswer struct {
	workspace tenants.WorkspaceID
	entry     Entry
	expires   time.Time
	span      spans.Span // from the queue on
}

// NewCache returns a Cache that is not started yet.
func NewCache(services Services) (*Cache, error) {
	if services.Patience == (Patience{}) {
		services.Patience = DefaultPatience()
	}
	known, err := localcache.New[[32]byte](localcache.Options[Entry]{
		MaximumWeight: knownAnswers, ExpireAfterWrite: knownAge,
		Weigher: func(entry Entry) uint32 { return uint32(entry.Size()) + 256 }, //nolint:gosec // an answer is far smaller
	})
	if err != nil {
		return nil, fmt.Errorf("known answers: %w", err)
	}
	scores, err := localcache.New[[32]byte](localcache.Options[float64]{MaximumSize: knownScores})
	if err != nil {
		return nil, fmt.Errorf("known similarities: %w", err)
	}
	return &Cache{Services: services, known: known, scores: scores, queue: make(chan keptAnswer, queueLength), stop: make(chan struct{})}, nil
}

// Start starts what keeps answers.
func (c *Cache) Start() {
	c.stopped.Go(func() {
		for {
			select {
			case kept := <-c.queue:
				c.put(kept)
			case <-c.stop:
				for len(c.queue) > 0 {
					c.put(<-c.queue)
				}
				return
			}
		}
	})
}

// Stop keeps what is waiting and ends. It may be called twice.
func (c *Cache) Stop() {
	c.once.Do(func() { close(c.stop) })
	c.stopped.Wait()
}

// Forget drops the answers in memory: some may be gone from the store.
func (c *Cache) Forget() { c.known.Clear() }

// put keeps an answer. What fails is not tried again: it is a cache.
func (c *Cache) put(kept keptAnswer) {
	ctx, cancel := context.WithTimeout(context.Background(), keepTimeout)
	defer cancel()
	err := c.Store.Put(ctx, kept.workspace, kept.entry, kept.expires)
	kept.span.EndWith(&err)
	if err != nil {
		c.Log.Warn("keep an answer", "workspace", kept.workspace, "error", err)
	}
}

// Look looks for an answer to a request whose report says pipeline.CacheMiss, and notes in report what
// happened. It returns nil for a request that is not for the cache. It never fails: what goes wrong is in the
// report, and the request goes on.
func (c *Cache) Look(ctx context.Context, report *pipeline.Report, request Request) (asked *Lookup) {
	ctx, span := spans.Start(ctx, "look for a kept answer")
	defer span.End()
	defer func() {
		if value := recover(); value != nil {
			note(report, "failed", fmt.Sprintf("panicked: %v", value), nil)
			report.Cache, asked = pipeline.CacheOff, nil
		}
	}()
	asked, reason := request.read(c.Secret)
	if asked == nil {
		report.Cache = pipeline.CacheOff
		note(report, "skipped", reason, nil)
		return nil
	}
	if err := c.find(ctx, report, asked); err != nil {
		note(report, "failed", err.Error(), nil)
	}
	return asked
}

// find finds an answer.
func (c *Cache) find(ctx context.Context, report *pipeline.Report, asked *Lookup) error {
	since := c.Now().Add(-time.Duration(asked.request.Config.TTLSeconds) * time.Second)
	if entry, known := c.known.Get(asked.question.Key); known && entry.At.After(since) {
		asked.hit(report, entry, pipeline.CacheHit, 1)
		return nil
	}
	finding, cancel := context.WithTimeout(ctx, c.Patience.Find)
	entries, err := c.Store.Find(finding, asked.request.Workspace, asked.question, since)
	cancel()
	if err != nil {
		return err
	}
	if len(entries) > 0 && entries[0].Key == asked.question.Key {
		c.known.Set(asked.question.Key, entries[0])
		asked.hit(report, entries[0], pipeline.CacheHit, 1)
		return nil
	}
	return c.findAlike(ctx, report, asked, entries)
}

// findAlike finds the answer to the same question in other words. entries passed the
// test of their meaning by their keys; it is made once more, for a key is a hash.
func (c *Cache) findAlike(ctx context.Context, report *pipeline.Report, asked *Lookup, entries []Entry) error {
	meaning, _ := Meaning(asked.question.Text)
	entries = slices.DeleteFunc(entries, func(entry Entry) bool {
		other, ok := Meaning(entry.Text)
		return !ok || other != meaning || entry.Alike != asked.question.Alike
	})
	if !asked.question.IsSemantic() || len(entries) == 0 || asked.request.Config.EmbeddingModel == "" {
		return nil
	}
	scores, err := c.compare(ctx, asked, entries)
	if err != nil {
		return err
	}
	best := 0
	for i := range scores {
		if scores[i] > scores[best] {
			best = i
		}
	}
	if scores[best] < asked.request.Config.Similarity {
		note(report, "score", "below the workspace's similarity", map[string]int{perMyriad: inMyriad(scores[best])})
		return nil
	}
	asked.hit(report, entries[best], pipeline.CacheSemanticHit, scores[best])
	return nil
}

// compare returns how similar the question is to those that the entries answered.
func (c *Cache) compare(ctx context.Context, asked *Lookup, entries []Entry) ([]float64, error) {
	scores, unknown := make([]float64, len(entries)), []int{}
	texts := []string{asked.question.Text}
	for i, entry := range entries {
		score, known := c.scores.Get(asked.pair(entry.Text))
		if scores[i] = score; !known {
			unknown, texts = append(unknown, i), append(texts, entry.Text)
		}
	}
	if len(unknown) == 0 {
		return scores, nil
	}
	embedding, cancel := context.WithTimeout(ctx, c.Patience.Embed)
	defer cancel()
	vectors, err := c.Embedder.Embed(embedding, asked.request.Workspace, asked.request.APIKey, asked.request.Config.EmbeddingModel, texts)
	if err != nil {
		return nil, err
	}
	for n, i := range unknown {
		scores[i] = Similarity(vectors[0], vectors[n+1])
		c.scores.Set(asked.pair(entries[i].Text), scores[i])
	}
	return scores, nil
}
