package semanticcache_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/tenants"
)

const asks = "What is a monad?"

// kept is a store with one answer.
type kept struct {
	entry *semanticcache.Entry // nil if none
	since time.Time
}

// Find implements semanticcache.Store.
func (k *kept) Find(_ context.Context, _ tenants.WorkspaceID, _ semanticcache.Key, since time.Time) (semanticcache.Entry, bool, error) {
	k.since = since
	if k.entry == nil {
		return semanticcache.Entry{}, false, nil
	}
	return *k.entry, true, nil
}

// Put implements semanticcache.Store.
func (*kept) Put(context.Context, tenants.WorkspaceID, semanticcache.Entry, time.Time) error {
	return nil
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
		Store: store, Secret: []byte("secret"), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return l.now },
		Patience: time.Minute,
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

// An answer in memory is given until it is as old as the setting allows, and then looked for again.
func TestAnswerInMemoryGrowsOld(t *testing.T) {
	t.Parallel()
	store := &kept{entry: &semanticcache.Entry{Answer: []byte("an answer")}}
	l := newLooks(t, store)
	store.entry.At = l.now
	l.config.TTLSeconds = 30
	if answer, report := l.look(t, asks); answer != "an answer" || report.Cache != pipeline.CacheHit {
		t.Fatalf("the answer is %q: %+v", answer, report)
	}
	store.entry = nil
	for _, test := range []struct {
		after time.Duration
		want  string
	}{{30*time.Second - 1, "an answer"}, {1, ""}} {
		l.now = l.now.Add(test.after)
		if answer, report := l.look(t, asks); answer != test.want {
			t.Errorf("%s later the answer is %q, want %q: %+v", test.after, answer, test.want, report)
		}
	}
	if age := l.now.Sub(store.since); age != 30*time.Second {
		t.Errorf("answers of the last %s are looked for", age)
	}
}
