package failover_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/failover"
	"palimpsest/api/upstream"
	"palimpsest/pipeline/tokens"
)

// setup returns Keys by a clock that the test moves.
func setup(t *testing.T) (keys *failover.Keys, move func(time.Duration)) {
	t.Helper()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	keys, err := failover.New(func() time.Time { return now }, func(context.Context, time.Duration) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return keys, func(by time.Duration) { now = now.Add(by) }
}

func TestFailedKeyIsLeftAloneLongerEachTime(t *testing.T) {
	t.Parallel()
	keys, move := setup(t)
	key := upstream.Target{KeyID: uuid.New(), Key: "sk"}
	for _, pause := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		keys.Failed(key, failover.Failure{Reason: "503"})
		move(pause - time.Second)
		if keys.Works(key) {
			t.Errorf("works after less than %s", pause)
		}
		move(time.Second)
		if !keys.Works(key) {
			t.Errorf("does not work after %s", pause)
		}
	}
	keys.Answered(key, http.Header{})
	keys.Failed(key, failover.Failure{Reason: "503"})
	if move(2 * time.Second); !keys.Works(key) {
		t.Error("an answer did not end the row of failures")
	}
	keys.Failed(key, failover.Failure{Reason: "401", IsRefused: true})
	if move(4 * time.Minute); keys.Works(key) {
		t.Error("a refused key works after 4 minutes")
	}
	key.Key = "another"
	if !keys.Works(key) {
		t.Error("a new secret does not work")
	}
}

func TestKeyWithLittleLeftGetsNoNewSessions(t *testing.T) {
	t.Parallel()
	keys, move := setup(t)
	one, two := upstream.Target{KeyID: uuid.UUID{1}}, upstream.Target{KeyID: uuid.UUID{2}}
	targets := []upstream.Target{one, two}
	count := func() (used [2]int) {
		for i := range 100 {
			used[keys.Spread(targets, uuid.UUID{byte(i), 7})]++
		}
		return used
	}
	if used := count(); used[0] < 30 || used[1] < 30 {
		t.Errorf("sessions spread as %v", used)
	}
	keys.Answered(one, http.Header{
		"Anthropic-Ratelimit-Input-Tokens-Remaining": {"50000"}, "Anthropic-Ratelimit-Input-Tokens-Limit": {"1000000"},
		"Anthropic-Ratelimit-Requests-Remaining": {"999"}, "Anthropic-Ratelimit-Requests-Limit": {"1000"},
	})
	if used := count(); used[0] != 0 {
		t.Errorf("with 5 %% left: %v", used)
	}
	keys.Answered(two, http.Header{"X-Ratelimit-Remaining-Tokens": {"1"}, "X-Ratelimit-Limit-Tokens": {"100"}})
	if used := count(); used[1] != 0 {
		t.Errorf("with 5 and 1 %% left: %v", used)
	}
	keys.Answered(one, http.Header{"X-Ratelimit-Remaining-Tokens": {"0"}, "X-Ratelimit-Limit-Tokens": {"100"}})
	if used := count(); used[0] != 0 {
		t.Errorf("with 0 and 1 %% left: %v", used)
	}
	if move(2 * time.Minute); count()[0] < 30 {
		t.Error("rate limits are believed after their minute")
	}
}

// The tightest of several limits counts, wherever it stands in the header.
func TestTightestRateLimitCounts(t *testing.T) {
	t.Parallel()
	keys, _ := setup(t)
	targets := []upstream.Target{{KeyID: uuid.UUID{1}}, {KeyID: uuid.UUID{2}}}
	for range 20 { // the order of a header's members changes
		header := http.Header{"X-Ratelimit-Remaining-Tokens": {"1"}, "X-Ratelimit-Limit-Tokens": {"100"}}
		for _, kind := range []string{"Requests", "Images", "Audio"} {
			header.Set("X-Ratelimit-Remaining-"+kind, "99")
			header.Set("X-Ratelimit-Limit-"+kind, "100")
		}
		keys.Answered(targets[0], header)
		for i := range 20 {
			if keys.Spread(targets, uuid.UUID{byte(i), 7}) == 0 {
				t.Fatal("a key with 1 % of its tokens left gets a new session")
			}
		}
	}
}

// A refused key does not work sooner because its answer asks to wait.
func TestRefusedKeyIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden} {
		failure, ok := failover.OfAnswer(&http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"1"}}}, nil, time.Now())
		if !ok || !failure.IsRefused || failure.Wait != 0 {
			t.Errorf("%d: %+v, %v", status, failure, ok)
		}
	}
	keys, move := setup(t)
	key := upstream.Target{KeyID: uuid.New(), Key: "sk"}
	keys.Failed(key, failover.Failure{Reason: "429", Wait: time.Hour})
	if move(10*time.Minute - time.Second); keys.Works(key) {
		t.Error("works before the longest pause is over")
	}
	if move(time.Second); !keys.Works(key) {
		t.Error("a provider may pause its key for longer than ten minutes")
	}
}

func TestWaitsAreReadOffHeaders(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{"20": 20 * time.Second, "0.5": 500 * time.Millisecond, "Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second, "soon": 0, "-1": 0} {
		failure, ok := failover.OfAnswer(&http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {value}}}, nil, now)
		if !ok || failure.Wait != want {
			t.Errorf("%q: %s, %v", value, failure.Wait, ok)
		}
	}
	failure, _ := failover.OfAnswer(&http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"2"}}}, nil, now)
	if failure.Wait != 1500*time.Millisecond {
		t.Errorf("milliseconds: %s", failure.Wait)
	}
}

// 500,000 tokens at claude-opus-5-5's prices cost $2.40 more to write than to read.
func TestWaitingIsWorthIt(t *testing.T) {
	t.Parallel()
	price := tokens.Price{Input: 4, CacheRead: 0.2, CacheWrite: 5}
	for _, test := range []struct {
		wait, patience time.Duration
		cached         int
		want           bool
	}{
		{20 * time.Second, 0, 500_000, true},
		{20 * time.Second, 30 * time.Second, 500_000, false},
		{61 * time.Second, 0, 500_000, false},
		{20 * time.Second, 0, 40_000, false},
		{0, 0, 500_000, false},
	} {
		if got := failover.WorthWaiting(failover.Failure{Wait: test.wait}, test.cached, price, test.patience); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// Another account writes the tokens to its cache, or reads them as input where that costs more.
func TestRewriteCostsTheDearerOfWritingAndInput(t *testing.T) {
	t.Parallel()
	for want, price := range map[int64]tokens.Price{
		2_400_000: {Input: 4, CacheRead: 0.2, CacheWrite: 5},
		1_900_000: {Input: 4, CacheRead: 0.2, CacheWrite: 1},
	} {
		if got := failover.RewriteMicroUSD(500_000, price); got != want {
			t.Errorf("%+v: %d µ$, want %d", price, got, want)
		}
	}
}

func TestNewSessionsAreSharedByWeight(t *testing.T) {
	t.Parallel()
	keys, _ := setup(t)
	targets := []upstream.Target{{KeyID: uuid.UUID{1}, Weight: 3}, {KeyID: uuid.UUID{2}}}
	places := func() (at []int) {
		for i := range 400 {
			at = append(at, keys.Spread(targets, uuid.UUID{byte(i), byte(i >> 8), 7}))
		}
		return at
	}
	before, second := places(), 0
	for _, place := range before {
		second += place
	}
	if second < 75 || second > 125 {
		t.Errorf("a key with a quarter of the weight got %d of 400 sessions", second)
	}
	targets[1].Weight = 2
	for i, place := range places() {
		if before[i] == 1 && place == 0 {
			t.Fatal("a session left the key whose weight grew")
		}
	}
}
