package semanticcache

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/localcache"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

const (
	keepTimeout  = 10 * time.Second
	queueLength  = 256         // answers that may wait in the queue
	knownAnswers = 64 << 20    // bytes of answers in memory
	knownAge     = time.Minute // bounds how long an answer outlives its row in memory
)

// Store keeps answers for all replicas.
type Store interface {
	// Find returns the answer to a request that was kept after since.
	Find(ctx context.Context, workspace tenants.WorkspaceID, key Key, since time.Time) (entry Entry, found bool, err error)

	// Put keeps an answer until expires.
	Put(ctx context.Context, workspace tenants.WorkspaceID, entry Entry, expires time.Time) error
}

// Services are the dependencies of a Cache.
type Services struct {
	Store  Store
	Secret []byte // makes keys
	Log    *slog.Logger
	Now    func() time.Time

	// Patience is how long a request waits for the cache before it goes on without it; 0 is
	// DefaultPatience.
	Patience time.Duration
}

// DefaultPatience is short compared with a model's time to answer.
const DefaultPatience = 100 * time.Millisecond

// Cache reuses answers for identical questions, in workspaces that have turned the module on.
type Cache struct {
	Services

	known *localcache.Cache[[32]byte, Entry] // by key, which includes the workspace

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
	services.Patience = cmp.Or(services.Patience, DefaultPatience)
	known, err := localcache.New[[32]byte](localcache.Options[Entry]{
		MaximumWeight: knownAnswers, ExpireAfterWrite: knownAge,
		Weigher: func(entry Entry) uint32 { return uint32(entry.Size()) + 256 }, //nolint:gosec // an answer is far smaller
	})
	if err != nil {
		return nil, fmt.Errorf("known answers: %w", err)
	}
	return &Cache{Services: services, known: known, queue: make(chan keptAnswer, queueLength), stop: make(chan struct{})}, nil
}

// Start starts the writer of the queue.
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

// Stop writes the queued answers and stops the writer. It may be called twice.
func (c *Cache) Stop() {
	c.once.Do(func() { close(c.stop) })
	c.stopped.Wait()
}

// Forget drops the answers in memory because some may be gone from the store.
func (c *Cache) Forget() { c.known.Clear() }

// put stores an answer. It does not retry because losing a cache entry is harmless.
func (c *Cache) put(kept keptAnswer) {
	ctx, cancel := context.WithTimeout(context.Background(), keepTimeout)
	defer cancel()
	err := c.Store.Put(ctx, kept.workspace, kept.entry, kept.expires)
	kept.span.EndWith(&err)
	if err != nil {
		c.Log.Warn("keep an answer", "workspace", kept.workspace, "error", err)
	}
}

// Look looks for an answer to a request whose report says pipeline.CacheMiss, and notes the outcome
// in report. It returns nil for a request that must not use the cache. It never fails: errors go to
// the report, and the request goes on.
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
	if entry, known := c.known.Get(asked.key); known && entry.At.After(since) {
		asked.hit(report, entry)
		return nil
	}
	finding, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	entry, found, err := c.Store.Find(finding, asked.request.Workspace, asked.key, since)
	if err != nil || !found {
		return err
	}
	c.known.Set(asked.key, entry)
	asked.hit(report, entry)
	return nil
}

// Entry is a kept answer.
type Entry struct {
	Key         Key
	Answer      []byte // as the provider sent it, a stream as a stream
	ContentType string
	Model       string
	At          time.Time // when it was kept
	AskedAt     time.Time // when its request came
	EndUser     string    // who asked, as session.EndUserID names them; "" if unknown

	// MicroUSD is the cost of the original exchange, in millionths of a US dollar.
	MicroUSD int64
}

// Size returns the entry's size towards its workspace's limit, in bytes.
func (e *Entry) Size() int { return len(e.Answer) }

// MaxAnswer is the largest answer to keep, in bytes as the provider sent it.
const MaxAnswer = 256 << 10

// Answered is a finished answer.
type Answered struct {
	Rules      wire.Reuse // of its format
	Complete   bool       // it reached its regular end
	StopReason string     // as the provider names it
	Messages   []conversation.Message
}

// IsKept reports whether an answer may be given again: it is complete, has text and no tool call,
// and neither the provider nor a limit cut it short.
func (a Answered) IsKept() bool {
	if !a.Complete || !slices.Contains(a.Rules.Ends, a.StopReason) || len(a.Messages) == 0 {
		return false
	}
	says := false
	for _, message := range a.Messages {
		for _, block := range message.Blocks {
			switch block.Kind {
			case conversation.Text:
				says = says || strings.TrimSpace(block.Text) != ""
			case conversation.Thinking:
			default:
				return false
			}
		}
	}
	return says
}
