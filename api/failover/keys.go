// Package failover decides which of several provider keys takes a request: it remembers the failed keys and
// the end of their pauses, and the rest of each key's rate limits. This state belongs to this process alone;
// the key with a session's cache is stored with the session.
package failover

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/zeebo/xxh3"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/localcache"
)

const (
	// firstPause and longestPause bound the pause of a key that failed without a Retry-After. It doubles
	// after each failure in a row.
	firstPause   = 2 * time.Second
	longestPause = time.Minute

	// refusedPause is the pause of a key that its provider rejects or that has no credit left.
	refusedPause = 5 * time.Minute

	// longestAsked bounds a pause that a provider requests.
	longestAsked = 10 * time.Minute

	// scarce is the share of a rate limit below which a key gets no new sessions if another has more left.
	scarce = 0.1

	// maxKeys bounds the number of remembered keys.
	maxKeys = 1 << 16
)

// Keys remembers which provider keys work. It is safe for concurrent use.
type Keys struct {
	now   func() time.Time
	sleep func(ctx context.Context, wait time.Duration) error

	mu   sync.Mutex
	keys *localcache.Cache[[16]byte, *state]
}

// state holds the facts about one key.
type state struct {
	failures int       // in a row
	until    time.Time // end of its pause
	left     float64   // share of its tightest rate limit, 0 to 1
	resets   time.Time // until when left is valid
}

// New returns Keys with a clock and a sleep that ends early with its context.
func New(now func() time.Time, sleep func(ctx context.Context, wait time.Duration) error) (*Keys, error) {
	keys, err := localcache.New[[16]byte](localcache.Options[*state]{MaximumSize: maxKeys})
	if err != nil {
		return nil, fmt.Errorf("provider keys: %w", err)
	}
	return &Keys{now: now, sleep: sleep, keys: keys}, nil
}

// Sleep waits until a wait is over, or returns the context's error.
func Sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // it is the caller's
	}
}

// idOf identifies a provider key with its secret, so that a new secret starts without a history.
func idOf(target upstream.Target) [16]byte {
	return xxh3.HashString128(target.KeyID.String() + target.Key).Bytes()
}

// of returns the state of a target's key; mu is held.
func (k *Keys) of(target upstream.Target) *state {
	if known, ok := k.keys.Get(idOf(target)); ok {
		return known
	}
	fresh := &state{left: 1}
	k.keys.Set(idOf(target), fresh)
	return fresh
}

// Failed notes that a key did not answer a request, for a reason that may not affect other keys.
func (k *Keys) Failed(target upstream.Target, failure Failure) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.of(target)
	pause := min(firstPause<<min(known.failures, 8), longestPause)
	switch {
	case failure.Wait > 0:
		pause = min(failure.Wait, longestAsked)
	case failure.IsRefused:
		pause = refusedPause
	}
	known.failures++
	known.until = k.now().Add(pause)
}

// Answered notes that a key answered a request, and reads the rate limits from the answer's header.
func (k *Keys) Answered(target upstream.Target, header http.Header) {
	left, resets := rateLimits(header, k.now())
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.of(target)
	known.failures, known.until = 0, time.Time{}
	known.left, known.resets = left, resets
}

// Works reports whether a key is not paused.
func (k *Keys) Works(target upstream.Target) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.now().Before(k.of(target).until)
}

// Spread picks the target for a new session among equally good ones, and returns its place. It chooses by the
// hash of the session's id and by weight, so that all processes choose the same, among the working targets with
// enough of their rate limits left; otherwise it picks the one with most left.
func (k *Keys) Spread(targets []upstream.Target, session uuid.UUID) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	best, score, most, left := -1, 0.0, 0, -1.0
	for i, target := range targets {
		known := k.of(target)
		share := known.left
		if now.After(known.resets) {
			share = 1
		}
		if now.Before(known.until) {
			share = 0
		}
		if share > left {
			most, left = i, share
		}
		if own := scoreOf(session, target); share >= scarce && (best < 0 || own > score) {
			best, score = i, own
		}
	}
	if best < 0 {
		return most
	}
	return best
}

// scoreOf returns a target's score for a session, by weighted rendezvous hashing: the target with the highest
// score is chosen in proportion to its weight, and another weight moves no more sessions than needed.
func scoreOf(session uuid.UUID, target upstream.Target) float64 {
	hash := xxh3.Hash(slices.Concat(session[:], target.KeyID[:]))
	return -float64(max(1, target.Weight)) / math.Log((float64(hash)+0.5)/(1<<64))
}

// Wait sleeps until a wait is over, or returns the context's error.
func (k *Keys) Wait(ctx context.Context, wait time.Duration) error { return k.sleep(ctx, wait) }

// rateLimits returns the remaining share of the tightest rate limit in an answer, and when this value
// expires: Anthropic's anthropic-ratelimit-*-remaining and -limit, OpenAI's x-ratelimit-remaining-* and
// x-ratelimit-limit-* (https://docs.claude.com/en/api/rate-limits,
// https://platform.openai.com/docs/guides/rate-limits).
func rateLimits(header http.Header, now time.Time) (left float64, resets time.Time) {
	left = 1
	for name, values := range header {
		var limit string
		lower := strings.ToLower(name)
		switch {
		case strings.HasPrefix(lower, "anthropic-ratelimit-") && strings.HasSuffix(lower, "-remaining"):
			limit = strings.TrimSuffix(lower, "remaining") + "limit"
		case strings.HasPrefix(lower, "x-ratelimit-remaining-"):
			limit = "x-ratelimit-limit-" + strings.TrimPrefix(lower, "x-ratelimit-remaining-")
		default:
			continue
		}
		has, err := strconv.ParseFloat(values[0], 64)
		most, err2 := strconv.ParseFloat(header.Get(limit), 64)
		if err == nil && err2 == nil && most > 0 {
			left = min(left, max(0, has/most))
		}
	}
	return left, now.Add(time.Minute) // both providers count by the minute
}
