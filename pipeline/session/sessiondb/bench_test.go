package sessiondb_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
)

// BenchmarkCommit is what an epoch waits for: the originals of 800 KB in 500 messages, of
// which the archive knows all but the first or none, and a projection of them, made
// durable. The test cluster does not fsync.
func BenchmarkCommit(b *testing.B) {
	for _, known := range []bool{true, false} {
		b.Run(map[bool]string{true: "history known", false: "nothing known"}[known], func(b *testing.B) {
			f := setup(b)
			store := sessiondb.New(f.runner, archivetest.Keys())
			f.commitLarge(b, store, "")
			for b.Loop() {
				own := ""
				if !known {
					own = uuid.NewString()
				}
				f.commitLarge(b, store, own)
			}
		})
	}
}

// commitLarge commits an epoch of a new lane whose messages, but for the first, are
// those of every other lane with the same own text.
func (f *fixture) commitLarge(b *testing.B, store *sessiondb.Store, own string) {
	b.Helper()
	b.StopTimer()
	c, random := f.newClient(), rand.New(rand.NewPCG(1, 2))
	c.say(fmt.Sprintf(`{"role":"user","content":"%s"}`, c.lane))
	for i := range 500 {
		c.say(fmt.Sprintf(`{"role":"user","content":"%d %s %s"}`, i, own, prose(random, 1_600)))
	}
	seen, projection := c.update(), c.projection(1, 400)
	b.StartTimer()
	if err := store.Commit(b.Context(), seen, projection); err != nil {
		b.Fatal(err)
	}
}

// prose returns text that compresses about as code does.
func prose(random *rand.Rand, size int) []byte {
	words := []string{"func ", "return ", "handler ", "request ", "session", "(ctx", ") ", "= ", "the ", "of "}
	var text bytes.Buffer
	for text.Len() < size {
		if random.IntN(4) == 0 {
			fmt.Fprintf(&text, "%x ", random.Uint32())
			continue
		}
		text.WriteString(words[random.IntN(len(words))])
	}
	return text.Bytes()
}

// BenchmarkAnnounce is what a request has other replicas told while its provider is at work,
// and BenchmarkStands what it asks where another replica has served its lane.
func BenchmarkAnnounce(b *testing.B) {
	f := setup(b)
	store, c := sessiondb.New(f.runner, archivetest.Keys()), f.newClient()
	c.say(`{"role":"user","content":"hi"}`)
	for b.Loop() {
		seen := c.update()
		seen.Messages.Head[0]++
		if err := store.Announce(b.Context(), seen.Scope.Workspace, []session.Update{seen}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStands(b *testing.B) {
	f := setup(b)
	store, c := sessiondb.New(f.runner, archivetest.Keys()), f.newClient()
	c.say(`{"role":"user","content":"hi"}`)
	seen := c.update()
	if err := store.Record(b.Context(), seen.Scope.Workspace, []session.Update{seen}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := store.Stands(b.Context(), seen.Scope.Workspace, []conversation.Hash{seen.Messages.Head}); err != nil {
			b.Fatal(err)
		}
	}
}
