package localcache_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/pipeline/localcache"
)

func open[K localcache.Key, V any](t testing.TB, options localcache.Options[V]) *localcache.Cache[K, V] {
	t.Helper()
	cache, err := localcache.New[K](options)
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

func TestValuesOfEachKindOfKeyAreFound(t *testing.T) {
	t.Parallel()

	foundBy(t, [16]byte{1}, [16]byte{2})
	foundBy(t, [32]byte{1}, [32]byte{2})
	foundBy(t, "one", "two")
}

func foundBy[K localcache.Key](t *testing.T, one, two K) {
	t.Helper()
	cache := open[K](t, localcache.Options[*int]{MaximumSize: 10})
	if value, found := cache.Get(one); found || value != nil {
		t.Errorf("an empty cache has %v", value)
	}
	first, second := new(int), new(int)
	cache.Set(one, first)
	cache.SetIfAbsent(one, second)
	cache.SetIfAbsent(two, second)
	for key, want := range map[K]*int{one: first, two: second} {
		if value, found := cache.Get(key); !found || value != want {
			t.Errorf("%v has %p, %v, want %p", key, value, found, want)
		}
	}
	cache.Delete(one)
	if _, found := cache.Get(one); found {
		t.Error("what was deleted is found")
	}
	cache.Clear()
	if _, found := cache.Get(two); found {
		t.Error("a cleared cache has something")
	}
}

// A nil value is a value: it is found.
func TestNilIsFound(t *testing.T) {
	t.Parallel()

	cache := open[string](t, localcache.Options[error]{MaximumSize: 10})
	cache.Set("none", nil)
	if err, found := cache.Get("none"); !found || err != nil {
		t.Errorf("found %v, %v", err, found)
	}
}

func TestValuesExpireByTheClock(t *testing.T) {
	t.Parallel()

	began := time.Date(2026, 2, 28, 23, 59, 0, 0, time.UTC)
	var passed atomic.Int64 // caches read the clock from their own goroutine, too
	now := func() time.Time { return began.Add(time.Duration(passed.Load())) }
	written := open[string](t, localcache.Options[int]{MaximumSize: 10, ExpireAfterWrite: time.Minute, Now: now})
	used := open[string](t, localcache.Options[int]{MaximumSize: 10, ExpireAfterAccess: time.Minute, Now: now})
	for _, cache := range []*localcache.Cache[string, int]{written, used} {
		cache.Set("a", 1)
		cache.Set("longer", 1)
		cache.SetExpiresAfter("longer", time.Hour)
	}
	passed.Add(int64(40 * time.Second))
	written.Get("a")
	used.Get("a")
	passed.Add(int64(40 * time.Second))
	for name, want := range map[string]map[*localcache.Cache[string, int]]bool{
		"a": {written: false, used: true}, "longer": {written: true},
	} {
		for cache, want := range want {
			if _, found := cache.Get(name); found != want {
				t.Errorf("%s is found after 80 s: %v, want %v (used: %v)", name, found, want, cache == used)
			}
		}
	}
}

func TestWeightsBoundWhatIsKept(t *testing.T) {
	t.Parallel()

	cache := open[string](t, localcache.Options[string]{MaximumWeight: 10, Weigher: func(value string) uint32 { return uint32(len(value)) }})
	cache.Set("heavy", strings.Repeat("x", 11))
	cache.Set("light", "x")
	for found := true; found; runtime.Gosched() { // it is dropped in the background
		_, found = cache.Get("heavy")
	}
	if _, found := cache.Get("light"); !found {
		t.Error("a value within the bound is not kept")
	}
	if _, err := localcache.New[string](localcache.Options[string]{MaximumSize: 1, MaximumWeight: 1}); err == nil {
		t.Error("two bounds are taken")
	}
}

func TestValuesAreMadeOfTheOnesBefore(t *testing.T) {
	t.Parallel()

	cache := open[[16]byte](t, localcache.Options[int]{MaximumSize: 10})
	key := [16]byte{1}
	cache.ComputeIfPresent(key, func(before int) (int, bool) { return before + 100, true })
	if _, found := cache.Get(key); found {
		t.Error("an absent value was computed")
	}
	var counting sync.WaitGroup
	for range 50 {
		counting.Go(func() { cache.Compute(key, func(before int, _ bool) (int, bool) { return before + 1, true }) })
	}
	counting.Wait()
	if after := cache.Compute(key, func(int, bool) (int, bool) { return -1, false }); after != 50 {
		t.Errorf("50 additions make %d", after)
	}
	cache.ComputeIfPresent(key, func(before int) (int, bool) { return before * 2, true })
	if value, _ := cache.Get(key); value != 100 {
		t.Errorf("twice 50 is %d", value)
	}
	first := cache.Compute([16]byte{2}, func(before int, found bool) (int, bool) {
		if found {
			t.Error("an absent value is there")
		}
		return before, false
	})
	if _, found := cache.Get([16]byte{2}); found || first != 0 {
		t.Errorf("what was not written is kept: %d", first)
	}
}

func TestOneLoadIsForAllWhoAskAtOnce(t *testing.T) {
	t.Parallel()

	cache := open[string](t, localcache.Options[int]{MaximumSize: 10})
	var loads atomic.Int32
	began, end := make(chan struct{}), make(chan struct{})
	load := func(context.Context) (int, error) { //nolint:unparam // the type of what loads
		if loads.Add(1) == 1 {
			close(began)
		}
		<-end
		return 7, nil
	}
	var asking sync.WaitGroup
	ask := func() {
		if value, err := cache.Load(t.Context(), "a", load); err != nil || value != 7 {
			t.Errorf("loaded %d, %v", value, err)
		}
	}
	asking.Go(ask)
	<-began
	for range 10 {
		asking.Go(ask)
	}
	close(end)
	asking.Wait()
	if made := loads.Load(); made != 1 {
		t.Errorf("%d loads", made)
	}
	broken := errors.New("broken")
	if _, err := cache.Load(t.Context(), "b", func(context.Context) (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, found := cache.Get("b"); found {
		t.Error("a failure is kept")
	}
}

// A package that uses caches must not compile otter's functions again: the program took four
// times as long to build when each did.
func TestPackagesThatUseCachesDoNotCompileOtter(t *testing.T) {
	t.Parallel()

	for folder, want := range map[string]bool{"../cost": false, ".": true} {
		archive, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-f", "{{.Export}}", folder).Output()
		if err != nil {
			t.Fatal(err)
		}
		symbols, err := exec.CommandContext(t.Context(), "go", "tool", "nm", strings.TrimSpace(string(archive))).Output()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(symbols, []byte("maypok86/otter")) != want {
			t.Errorf("%s holds functions of otter: %v, want %v", folder, !want, want)
		}
	}
}
