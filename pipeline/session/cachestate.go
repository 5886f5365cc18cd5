package session

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/wire"
)

// unseen is how many answers in a row must have met no cache before a lane that
// never met one is taken to have none. Providers that spread their load miss
// their cache now and then, so that one answer says nothing.
const unseen = 3

// CacheState is the last prompt of a lane that went to the provider, whatever was done
// to it, and how long the provider's cache of it lives.
type CacheState struct {
	At         time.Time     // when it went out; zero: none is known of
	TTL        time.Duration // how long its cache lives unused, as seen on the wire; 0 if nothing caches it
	Projection int           // number of the projection in it; 0 if none
	Position   int           // messages of the client's list in it
	Tokens     int           // its size: as reported, until then as estimated
	Model      string        // as the request named it
	Key        uuid.UUID     // of the provider key that it went out with: each account has a cache of its own; uuid.Nil if none that is stored
}

// Cold reports whether a prompt of the lane to a model would find nothing in the
// provider's cache: none is known of, nothing caches it, it went to another
// model, or its time is up.
func (h CacheState) Cold(now time.Time, model string) bool {
	return h.At.IsZero() || h.TTL == 0 || h.Model != model || now.Sub(h.At) >= h.TTL
}

// Cooled reports whether there was a cache whose time is up: the moment to rewrite
// what would have to be written again in any case. Where nothing caches there is
// no such moment; a switch of models does not count: the other's may be alive.
func (h CacheState) Cooled(now time.Time) bool {
	return !h.At.IsZero() && h.TTL > 0 && now.Sub(h.At) >= h.TTL
}

// Until returns when so much of the cache's life is over as share says, which is
// between 0 and 1; the zero time where nothing caches.
func (h CacheState) Until(share float64) time.Time {
	if h.At.IsZero() || h.TTL == 0 {
		return time.Time{}
	}
	return h.At.Add(time.Duration(share * float64(h.TTL)))
}

// cacheState is what a lane knows of the provider's cache. It has a lock of its own:
// who notes a prompt never waits for the request that holds the lane.
type cacheState struct {
	mu     sync.Mutex
	heat   CacheState
	met    bool // an answer has read from a cache or written to it
	missed int  // answers in a row, before any has, that could have and did not
}

// went notes a prompt whose request asks for a cache that lives for its TTL.
func (w *cacheState) went(heat CacheState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case heat.At.Before(w.heat.At):
		return
	case !w.met && w.missed >= unseen:
		heat.TTL = 0
	case w.met && heat.TTL == 0:
		heat.TTL = w.heat.TTL // it caches unasked
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
		return // another has gone out since
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

// refresh takes over the time of a prompt that shared everything with the last one
// of this lane but its end.
func (w *cacheState) refresh(heat CacheState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if heat.At.After(w.heat.At) && heat.Model == w.heat.Model && heat.Key == w.heat.Key && heat.Projection == w.heat.Projection {
		w.heat.At = heat.At
	}
}

// inherit takes over what is known of the lane that this one's forked from with so
// many messages and the projections up to a number: its cache holds what they share.
func (w *cacheState) inherit(from *cacheState, messages, projection int) {
	from.mu.Lock()
	defer from.mu.Unlock()
	w.met, w.missed = from.met, from.missed
	if from.heat.Projection > projection {
		return // what went out last began otherwise
	}
	w.heat = from.heat
	if w.heat.Position > messages {
		w.heat.Position, w.heat.Tokens = messages, 0
	}
}

// load takes over what is stored of a lane.
func (w *cacheState) load(heat CacheState) {
	w.heat = heat
	if !heat.At.IsZero() && heat.TTL == 0 {
		w.missed = unseen // it has been found to have no cache
	}
}

func (w *cacheState) last() CacheState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heat
}

// The lives of a provider's prompt cache.
const (
	// ShortTTL is Anthropic's default, and the least of what OpenAI names for its
	// automatic cache (five to ten minutes).
	ShortTTL = 5 * time.Minute
	// LongTTL is that of Anthropic's markers with "ttl":"1h".
	LongTTL = time.Hour
	// DayTTL is OpenAI's prompt_cache_retention "24h".
	DayTTL = 24 * time.Hour
)

// Heat returns the last prompt of the lane that went to the provider.
func (l *Lane) Heat() CacheState { return l.warmth.last() }

// Went notes that a prompt of the lane has gone to the provider. Its TTL is what
// the request asks for. A side call keeps the cache of the conversation that it
// forked from alive where it sent the same prefix to the same model. A plan was for
// this prompt, and is dropped.
func (l *Lane) Went(heat CacheState) {
	l.warmth.went(heat)
	l.PlanAhead(nil)
	if trunk := l.trunk.Value(); trunk != nil {
		trunk.warmth.refresh(heat)
	}
}

// Metered learns from the usage that the provider reported for a prompt, whose heat
// has the size and the TTL that it tells of. cacheable says that the prompt is long
// enough for a cache.
func (l *Lane) Metered(heat CacheState, usage wire.Usage, cacheable bool) {
	l.warmth.metered(heat, usage, cacheable)
}
