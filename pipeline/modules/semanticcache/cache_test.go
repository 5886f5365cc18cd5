package semanticcache_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/tenants"
)

const (
	asksPlainly = "What is a monad?"
	asksKindly  = "Please what is a monad?"
	asksGladly  = "What is a monad, thanks"
)

// kept is a store of answers to the same question in other words, and a source of embeddings.
type kept struct {
	entries []semanticcache.Entry
	exact   bool // the first entry is the answer to the same request
	vectors map[string][]float32

	embedded [][]string // texts of each call
	fails    int        // the call, from 1 on, from which on no embedding is made; 0 if all are
	since    time.Time
}

// Find implements semanticcache.Store.
func (k *kept) Find(_ context.Context, _ tenants.WorkspaceID, question semanticcache.Question, since time.Time) ([]semanticcache.Entry, error) {
	k.since = since
	entries := slices.Clone(k.entries)
	for i := range entries {
		entries[i].Alike = question.Alike
		if i == 0 && k.exact {
			entries[i].Key = question.Key
		}
	}
	return entries, nil
}

// Put implements semanticcache.Store.
func (*kept) Put(context.Context, tenants.WorkspaceID, semanticcache.Entry, time.Time) error {
	return nil
}

// EmbeddingModel implements archive.Embedder.
func (*kept) EmbeddingModel(context.Context, tenants.WorkspaceID) (string, error) { return "m", nil }

// Embed implements archive.Embedder.
func (k *kept) Embed(_ context.Context, _ tenants.WorkspaceID, _ uuid.UUID, _ string, texts []string) ([][]float32, error) {
	k.embedded = append(k.embedded, slices.Clone(texts))
	if k.fails > 0 && len(k.embedded) >= k.fails {
		return nil, errors.New("no embeddings today")
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = k.vectors[text]
	}
	return vectors, nil
}

func answerOf(text string) semanticcache.Entry {
	return semanticcache.Entry{Key: semanticcache.Key{text[0]}, Text: text, Answer: []byte("to " + text)}
}

// looks is a cache with a clock.
type looks struct {
	*semanticcache.Cache

	now    time.Time
	config semanticcache.Config
}

func newLooks(t *testing.T, store *kept) *looks {
	t.Helper()
	l := &looks{now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), config: semanticcache.DefaultConfig()}
	cache, err := semanticcache.NewCache(semanticcache.Services{
		Store: store, Embedder: store, Secret: []byte("secret"), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return l.now },
		Patience: semanticcache.Patience{Find: time.Minute, Embed: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Cache = cache
	return l
}

// look asks for an answer to a question; "" if no answer is given again.
func (l *looks) look(t *testing.T, text string) (answer string, report pipeline.Report) {
	t.Helper()
	report = pipeline.Report{Cache: pipeline.CacheMiss}
	asked := l.Look(t.Context(), &report, semanticcache.Request{
		Asked: semanticcache.Asked{
			Format: conversation.Anthropic, Rules: codecs()[conversation.Anthropic].Reuse(), Body: []byte(single(conversation.Anthropic, text, "")),
		},
		Config: l.config,
	})
	if entry := asked.Entry(); entry != nil {
		answer = string(entry.Answer)
	}
	return answer, report
}

func vectors() map[string][]float32 {
	return map[string][]float32{asksPlainly: {1, 0}, asksKindly: {1, 0.1}, asksGladly: {1, 0.3}}
}

// Of two answers the one whose question is more alike is given, wherever it stands.
func TestMostAlikeOfTwoAnswersIsGiven(t *testing.T) {
	t.Parallel()
	for _, entries := range [][]semanticcache.Entry{
		{answerOf(asksKindly), answerOf(asksGladly)}, {answerOf(asksGladly), answerOf(asksKindly)},
	} {
		l := newLooks(t, &kept{entries: entries, vectors: vectors()})
		if answer, report := l.look(t, asksPlainly); answer != "to "+asksKindly || report.Cache != pipeline.CacheSemanticHit {
			t.Errorf("the answer is %q: %+v", answer, report)
		}
	}
}

// A similarity that just reaches the workspace's setting is enough.
func TestSimilarityOfTheSettingIsEnough(t *testing.T) {
	t.Parallel()
	similar := semanticcache.Similarity(vectors()[asksPlainly], vectors()[asksKindly])
	for wanted, want := range map[float64]string{similar: "to " + asksKindly, math.Nextafter(similar, 1): ""} {
		l := newLooks(t, &kept{entries: []semanticcache.Entry{answerOf(asksKindly)}, vectors: vectors()})
		l.config.Similarity = wanted
		if answer, report := l.look(t, asksPlainly); answer != want {
			t.Errorf("with a similarity of %v, of which %v is wanted, the answer is %q: %+v", similar, wanted, answer, report)
		}
	}
}

// Only the text whose similarity isn't known yet is embedded, and its vector is its own.
func TestKnownSimilarityIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	store := &kept{entries: []semanticcache.Entry{answerOf(asksGladly)}, vectors: vectors()}
	l := newLooks(t, store)
	l.config.Similarity = 0.99
	if answer, report := l.look(t, asksPlainly); answer != "" {
		t.Fatalf("the answer is %q: %+v", answer, report)
	}
	store.entries = append(store.entries, answerOf(asksKindly))
	if answer, report := l.look(t, asksPlainly); answer != "to "+asksKindly {
		t.Errorf("the answer is %q: %+v", answer, report)
	}
	if want := [][]string{{asksPlainly, asksGladly}, {asksPlainly, asksKindly}}; !slices.EqualFunc(store.embedded, want, slices.Equal) {
		t.Errorf("embedded are %q, want %q", store.embedded, want)
	}
}

// Embeddings that fail the second time leave the request without an answer, and the first one stands.
func TestSecondEmbeddingThatFailsGivesNoAnswer(t *testing.T) {
	t.Parallel()
	store := &kept{entries: []semanticcache.Entry{answerOf(asksKindly)}, vectors: vectors(), fails: 2}
	l := newLooks(t, store)
	if answer, report := l.look(t, asksPlainly); answer != "to "+asksKindly {
		t.Fatalf("the answer is %q: %+v", answer, report)
	}
	store.entries = append(store.entries, answerOf(asksGladly))
	answer, report := l.look(t, asksPlainly)
	if answer != "" || report.Cache != pipeline.CacheMiss || len(report.Events) != 1 || report.Events[0].Type != "failed" {
		t.Errorf("the answer is %q: %+v", answer, report)
	}
}

// An answer in memory is given until it is as old as the setting allows, and then looked for again.
func TestAnswerInMemoryGrowsOld(t *testing.T) {
	t.Parallel()
	store := &kept{entries: []semanticcache.Entry{answerOf(asksKindly)}, exact: true, vectors: vectors()}
	l := newLooks(t, store)
	store.entries[0].At = l.now
	l.config.TTLSeconds = 30
	if answer, report := l.look(t, asksPlainly); answer != "to "+asksKindly || report.Cache != pipeline.CacheHit {
		t.Fatalf("the answer is %q: %+v", answer, report)
	}
	store.entries = nil
	for _, test := range []struct {
		after time.Duration
		want  string
	}{{30*time.Second - 1, "to " + asksKindly}, {1, ""}} {
		l.now = l.now.Add(test.after)
		if answer, report := l.look(t, asksPlainly); answer != test.want {
			t.Errorf("%s later the answer is %q, want %q: %+v", test.after, answer, test.want, report)
		}
	}
	if age := l.now.Sub(store.since); age != 30*time.Second {
		t.Errorf("answers of the last %s are looked for", age)
	}
}
