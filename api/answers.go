package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/localcache"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

const (
	keepTimeout  = 10 * time.Second
	keptQueue    = 256         // answers that may wait to be kept
	knownAnswers = 64 << 20    // bytes of answers in memory
	knownAge     = time.Minute // bounds how long an answer outlives its row in memory
	knownScores  = 100_000
)

// AnswerStore keeps answers for all replicas.
type AnswerStore interface {
	// Find returns what was kept after since: the answer to the same request first,
	// then those to the same question in other words.
	Find(ctx context.Context, workspace tenants.WorkspaceID, question semanticcache.Question, since time.Time) ([]semanticcache.Entry, error)

	// Put keeps an answer until expires.
	Put(ctx context.Context, workspace tenants.WorkspaceID, entry semanticcache.Entry, expires time.Time) error
}

// AnswersConfig is what Answers work with.
type AnswersConfig struct {
	Store    AnswerStore
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

// Answers gives answers again to the same question, for workspaces that have turned
// the module semantic-cache on.
type Answers struct {
	AnswersConfig

	known  *localcache.Cache[[32]byte, semanticcache.Entry] // by key, which is made of the workspace, too
	scores *localcache.Cache[[32]byte, float64]             // by pair

	queue   chan keptAnswer
	stop    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once
}

// keptAnswer is an answer on its way to the store.
type keptAnswer struct {
	workspace tenants.WorkspaceID
	entry     semanticcache.Entry
	expires   time.Time
	span      spans.Span // from the queue on
}

// NewAnswers returns Answers that are not started yet.
func NewAnswers(config AnswersConfig) (*Answers, error) {
	if config.Patience == (Patience{}) {
		config.Patience = DefaultPatience()
	}
	known, err := localcache.New[[32]byte](localcache.Options[semanticcache.Entry]{
		MaximumWeight: knownAnswers, ExpireAfterWrite: knownAge,
		Weigher: func(entry semanticcache.Entry) uint32 { return uint32(entry.Size()) + 256 }, //nolint:gosec // an answer is far smaller
	})
	if err != nil {
		return nil, fmt.Errorf("known answers: %w", err)
	}
	scores, err := localcache.New[[32]byte](localcache.Options[float64]{MaximumSize: knownScores})
	if err != nil {
		return nil, fmt.Errorf("known similarities: %w", err)
	}
	return &Answers{AnswersConfig: config, known: known, scores: scores, queue: make(chan keptAnswer, keptQueue), stop: make(chan struct{})}, nil
}

// Start starts what keeps answers.
func (a *Answers) Start() {
	a.stopped.Go(func() {
		for {
			select {
			case kept := <-a.queue:
				a.put(kept)
			case <-a.stop:
				for len(a.queue) > 0 {
					a.put(<-a.queue)
				}
				return
			}
		}
	})
}

// Stop keeps what is waiting and ends. It may be called twice.
func (a *Answers) Stop() {
	a.once.Do(func() { close(a.stop) })
	a.stopped.Wait()
}

// put keeps an answer. What fails is not tried again: it is a cache.
func (a *Answers) put(kept keptAnswer) {
	ctx, cancel := context.WithTimeout(context.Background(), keepTimeout)
	defer cancel()
	err := a.Store.Put(ctx, kept.workspace, kept.entry, kept.expires)
	kept.span.EndWith(&err)
	if err != nil {
		a.Log.Warn("keep an answer", "workspace", kept.workspace, "error", err)
	}
}

// inquiry is a request that may be answered from the cache.
type inquiry struct {
	workspace tenants.WorkspaceID
	apiKey    uuid.UUID
	config    semanticcache.Config
	question  semanticcache.Question
	entry     *semanticcache.Entry // the answer to give again; nil if absent
	copied    []byte               // of the provider's answer
	isLong    bool                 // the answer has more than semanticcache.MaxAnswer bytes
}

// look looks for an answer to a request. nil: the request is not for the cache. It
// never fails: what goes wrong is in the event, and the request goes on.
func (a *Answers) look(ctx context.Context, event *Event, post post, written *prompt.Prompt) (asked *inquiry) {
	if a == nil || event.Report.Cache != pipeline.CacheMiss {
		return nil
	}
	ctx, span := spans.Start(ctx, "look for a kept answer")
	defer span.End()
	defer func() {
		if value := recover(); value != nil {
			event.cacheEvent("failed", fmt.Sprintf("panicked: %v", value), nil)
			event.Report.Cache, asked = pipeline.CacheOff, nil
		}
	}()
	asked, reason := a.inquire(post, written)
	if asked == nil {
		event.Report.Cache = pipeline.CacheOff
		event.cacheEvent("skipped", reason, nil)
		return nil
	}
	if err := a.find(ctx, event, asked); err != nil {
		event.cacheEvent("failed", err.Error(), nil)
	}
	return asked
}

// inquire reads a request that is ready to go out.
func (a *Answers) inquire(post post, written *prompt.Prompt) (asked *inquiry, reason string) {
	exchange, call := written.Exchange, post.call
	config := pipeline.SettingsOf[semanticcache.Config](exchange.Config)
	owner := config.Scope
	switch {
	case post.purpose != converse, exchange.Projection != nil:
		return nil, semanticcache.ReasonHistory
	case call.asked.noStore, asksNoStore(post.request.Header):
		return nil, "no-store"
	case call.asked.providerKey != "":
		return nil, "provider-key" // it is for one use, and so is what comes of it
	case config.Scope == "session" && written.Lane == nil:
		return nil, "no-session"
	case config.Scope == "session":
		owner += " " + written.Lane.Session.String()
	case config.Scope == "key":
		owner += " " + call.key.ID.String()
	}
	header := post.request.Header
	origin := []string{
		call.key.Workspace.String(), owner, string(call.target.Provider), call.target.BaseURL, call.target.KeyID.String(),
		pathAndQuery(post.request, post.endpoint), strconv.FormatBool(exchange.Request.Stream), written.Beta,
	}
	for _, name := range []string{"Anthropic-Version", "Anthropic-Beta", "Openai-Organization", "Openai-Project", "Openai-Beta"} {
		origin = append(origin, strings.Join(header.Values(name), ","))
	}
	question, reason := semanticcache.Read(semanticcache.Asked{Format: post.codec.Format(), Rules: post.codec.Reuse(), Body: written.Body, Origin: origin}, a.Secret)
	if question == nil {
		return nil, reason
	}
	return &inquiry{workspace: call.key.Workspace, apiKey: call.key.ID, config: config, question: *question}, ""
}

// asksNoStore reports whether a client wants no answer that was given before, or none
// of this one to be kept for another time.
func asksNoStore(header http.Header) bool {
	return slices.ContainsFunc(header.Values("Cache-Control"), func(line string) bool {
		line = strings.ToLower(line)
		return strings.Contains(line, "no-store") || strings.Contains(line, "no-cache")
	})
}

// find finds an answer.
func (a *Answers) find(ctx context.Context, event *Event, asked *inquiry) error {
	since := a.Now().Add(-time.Duration(asked.config.TTLSeconds) * time.Second)
	if entry, known := a.known.Get(asked.question.Key); known && entry.At.After(since) {
		asked.hit(event, entry, pipeline.CacheHit, 1)
		return nil
	}
	finding, cancel := context.WithTimeout(ctx, a.Patience.Find)
	entries, err := a.Store.Find(finding, asked.workspace, asked.question, since)
	cancel()
	if err != nil {
		return err
	}
	if len(entries) > 0 && entries[0].Key == asked.question.Key {
		a.known.Set(asked.question.Key, entries[0])
		asked.hit(event, entries[0], pipeline.CacheHit, 1)
		return nil
	}
	return a.findAlike(ctx, event, asked, entries)
}

// findAlike finds the answer to the same question in other words. entries passed the
// test of their meaning by their keys; it is made once more, for a key is a hash.
func (a *Answers) findAlike(ctx context.Context, event *Event, asked *inquiry, entries []semanticcache.Entry) error {
	meaning, _ := semanticcache.Meaning(asked.question.Text)
	entries = slices.DeleteFunc(entries, func(entry semanticcache.Entry) bool {
		other, ok := semanticcache.Meaning(entry.Text)
		return !ok || other != meaning || entry.Alike != asked.question.Alike
	})
	if !asked.question.IsSemantic() || len(entries) == 0 || asked.config.EmbeddingModel == "" {
		return nil
	}
	scores, err := a.compare(ctx, asked, entries)
	if err != nil {
		return err
	}
	best := 0
	for i := range scores {
		if scores[i] > scores[best] {
			best = i
		}
	}
	if scores[best] < asked.config.Similarity {
		event.cacheEvent("score", "below the workspace's similarity", map[string]int{perMyriad: inMyriad(scores[best])})
		return nil
	}
	asked.hit(event, entries[best], pipeline.CacheSemanticHit, scores[best])
	return nil
}

// compare returns how similar the question is to those that the entries answered.
func (a *Answers) compare(ctx context.Context, asked *inquiry, entries []semanticcache.Entry) ([]float64, error) {
	scores, unknown := make([]float64, len(entries)), []int{}
	texts := []string{asked.question.Text}
	for i, entry := range entries {
		score, known := a.scores.Get(asked.pair(entry.Text))
		if scores[i] = score; !known {
			unknown, texts = append(unknown, i), append(texts, entry.Text)
		}
	}
	if len(unknown) == 0 {
		return scores, nil
	}
	embedding, cancel := context.WithTimeout(ctx, a.Patience.Embed)
	defer cancel()
	vectors, err := a.Embedder.Embed(embedding, asked.workspace, asked.apiKey, asked.config.EmbeddingModel, texts)
	if err != nil {
		return nil, err
	}
	for n, i := range unknown {
		scores[i] = semanticcache.Similarity(vectors[0], vectors[n+1])
		a.scores.Set(asked.pair(entries[i].Text), scores[i])
	}
	return scores, nil
}

// pair names the question and another text as one workspace's model compares them.
func (q *inquiry) pair(other string) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s %q %q %q", q.workspace, q.config.EmbeddingModel, q.question.Text, other))
}

// Names of the counts of the module's events.
const (
	perMyriad     = "score_per_10000"
	savedMicroUSD = "saved_microusd"
)

// inMyriad returns a similarity in ten-thousandths.
func inMyriad(score float64) int { return int(score * 10_000) }

// hit notes that there is an answer.
func (q *inquiry) hit(event *Event, entry semanticcache.Entry, how pipeline.Cache, score float64) {
	q.entry, event.Report.Cache = &entry, how
	event.cacheEvent("hit", string(how), map[string]int{perMyriad: inMyriad(score), savedMicroUSD: int(entry.MicroUSD)})
	for i := range event.Report.Modules {
		if event.Report.Modules[i].Name == semanticcache.Name {
			event.Report.Modules[i].Outcome = pipeline.Applied
		}
	}
}

// isHit reports whether there is an answer to give again.
func (q *inquiry) isHit() bool { return q != nil && q.entry != nil }

// cacheEvent notes in the report what happened at the cache: cache.semantic.hit, ….
func (e *Event) cacheEvent(kind, reason string, counts map[string]int) {
	e.Report.Events = append(e.Report.Events, pipeline.Event{Module: "cache.semantic", Type: kind, Reason: reason, Counts: counts})
}

// copyTap copies an answer on its way to the client.
type copyTap struct {
	wire.Tap

	into *inquiry
}

// beside returns tap, with a copy of what it reads beside it.
func (q *inquiry) beside(tap wire.Tap) wire.Tap {
	if q == nil {
		return tap
	}
	return copyTap{Tap: tap, into: q}
}

// Write implements wire.Tap.
func (c copyTap) Write(p []byte) (int, error) {
	if c.into.isLong = c.into.isLong || len(c.into.copied)+len(p) > semanticcache.MaxAnswer; c.into.isLong {
		c.into.copied = nil
	} else {
		c.into.copied = append(c.into.copied, p...)
	}
	return c.Tap.Write(p)
}

// Interface guards.
var (
	_ wire.Tap         = copyTap{}
	_ archive.Embedder = (*Embeddings)(nil)
)
