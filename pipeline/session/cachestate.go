package session

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/wire"
)

// unseen is how many answers in a row must miss before a lane without any cache hit is assumed to have no
// cache. Providers that spread their load miss their cache now and then, so a single answer proves nothing.
const unseen = 3

// CacheState describes the last prompt of a lane that went to the provider, edited or not, and how long the
// provider caches it.
type CacheState struct {
	At         time.Time     // when it went out; zero if unknown
	TTL        time.Duration // lifetime of its unused cache, as seen on the wire; 0 without caching
	Projection int           // number of its projection; 0 if absent
	Position   int           // messages of the client's list in it
	Tokens     int           // its size, estimated until the provider reports it
	Model      string        // as named by the request
	Key        uuid.UUID     `json:",omitzero"` // of the stored provider key that it went out with, because each account has its own cache; uuid.Nil if absent
}

// Cold reports whether a prompt of the lane to a model would miss the provider's cache: no prompt is known,
// it is not cached, it went to another model, or its time is up.
func (h CacheState) Cold(now time.Time, model string) bool {
	return h.At.IsZero() || h.TTL == 0 || h.Model != model || now.Sub(h.At) >= h.TTL
}

// Cooled reports whether there was a cache that has expired. This is the moment to rewrite a prompt, since it
// has to be written to the cache again in any case. Without a cache it is false. A switch of models does not
// count, because the other model's cache may still be alive.
func (h CacheState) Cooled(now time.Time) bool {
	return !h.At.IsZero() && h.TTL > 0 && now.Sub(h.At) >= h.TTL
}

// Until returns when a share (0 to 1) of the cache's lifetime is over, or the zero time without a cache.
func (h CacheState) Until(share float64) time.Time {
	if h.At.IsZero() || h.TTL == 0 {
		return time.Time{}
	}
	return h.At.Add(time.Duration(share * float64(h.TTL)))
}

// cacheState is a lane's record of the provider's cache. It has its own lock, so that updates never wait for
// the request that holds the lane.
type cacheState struct {
	mu     sync.Mutex
	heat   CacheState
	met    bool // an answer has read or written a cache
	missed int  // cacheable answers in a row without a hit, before the first one
}

// went notes a prompt whose request asks for a cache lifetime of its TTL.
func (w *cacheState) went(heat CacheState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case heat.At.Before(w.heat.At):
		return
	case !w.met && w.missed >= unseen:
		heat.TTL = 0
	case w.met && heat.TTL == 0:
		heat.TTL = w.heat.TTL // the provider caches automatically
	}
	w.heat = heat
}

// metered learns from the usage of a prompt.
func (w *cacheState) metered(heat CacheState, usage wire.Usage, cacheable bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	touched := usage.CacheRead+usage.CacheWrite > 0
	switch {
	case touched:
		w.met = true
	case cacheable && !w.met:
		w.missed++
	}
	if !heat.At.Equal(w.heat.At) {
		return // another prompt has gone out since
	}
	switch {
	case !w.met && w.missed >= unseen:
		heat.TTL = 0
	case touched && heat.TTL == 0 && usage.CacheWrite1h > 0:
		heat.TTL = LongTTL
	case touched && heat.TTL == 0:
		heat.TTL = ShortTTL
	case heat.TTL == 0:
		heat.TTL = w.heat.TTL
	}
	w.heat = heat
}

// refresh takes over the time of another lane's prompt that shared this lane's last prompt except its end.
func (w *cacheState) refresh(heat CacheState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if heat.At.After(w.heat.At) && heat.Model == w.heat.Model && heat.Key == w.heat.Key && heat.Projection == w.heat.Projection {
		w.heat.At = heat.At
	}
}

// inherit takes over the state of the lane that this one forked from, given the shared messages and the
// newest shared projection, since its cache holds the shared part.
func (w *cacheState) inherit(from *cacheState, messages, projection int) {
	from.mu.Lock()
	defer from.mu.Unlock()
	w.met, w.missed = from.met, from.missed
	if from.heat.Projection > projection {
		return // the last prompt had another beginning
	}
	w.heat = from.heat
	if w.heat.Position > messages {
		w.heat.Position, w.heat.Tokens = messages, 0
	}
}

// load takes over a lane's stored state.
func (w *cacheState) load(heat CacheState) {
	w.heat = heat
	if !heat.At.IsZero() && heat.TTL == 0 {
		w.missed = unseen // a stored TTL of 0 means that it has no cache
	}
}

func (w *cacheState) last() CacheState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heat
}

// The lifetimes of a provider's prompt cache.
const (
	// ShortTTL is Anthropic's default, and the minimum that OpenAI names for its automatic cache (five to ten
	// minutes).
	ShortTTL = 5 * time.Minute
	// LongTTL is the lifetime of Anthropic's markers with "ttl":"1h".
	LongTTL = time.Hour
	// DayTTL is the lifetime of OpenAI's prompt_cache_retention "24h".
	DayTTL = 24 * time.Hour
)

// Heat returns the last prompt of the lane that went to the provider.
func (l *Lane) Heat() CacheState { return l.warmth.last() }

// Went notes that a prompt of the lane has gone to the provider. Its TTL is the one that the request asks
// for. A side call that sent the same prefix to the same model also keeps the cache of its conversation
// alive. The lane's plan was for this prompt and is dropped.
func (l *Lane) Went(heat CacheState) {
	l.warmth.went(heat)
	l.PlanAhead(nil)
	if trunk := l.trunk.Value(); trunk != nil {
		trunk.warmth.refresh(heat)
	}
}

// Metered learns from the usage that the provider reported for a prompt. heat has the size and TTL from it.
// cacheable says that the prompt is long enough for a cache.
func (l *Lane) Metered(heat CacheState, usage wire.Usage, cacheable bool) {
	l.warmth.metered(heat, usage, cacheable)
}
