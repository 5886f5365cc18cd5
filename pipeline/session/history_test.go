package session_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// identified returns so many messages; from index on they are others for each word.
func identified(count, from int, word string) []conversation.Digest {
	messages := make([]conversation.Digest, count)
	for i := range messages {
		said := ""
		if i >= from {
			said = word
		}
		copy(messages[i].Identity[:], fmt.Sprintf("%d %s", i, said))
	}
	return messages
}

// However histories grow, end early, part and go on, the links that are remembered are
// those that are made again, and links that were handed out stay as they were.
func TestRememberedLinksAreThoseComputedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hint := session.Hint{Name: "one", Source: "header"}
	random := rand.New(rand.NewPCG(1, 1))
	type handed struct{ got, want []conversation.Hash }
	var all []handed
	for range 400 {
		messages := identified(random.IntN(120), 20+random.IntN(100), string("ab"[random.IntN(2)]))
		pair := handed{b.resolver.Chain(b.scope, hint, messages), session.Chain(b.scope, hint, messages)}
		if !slices.Equal(pair.got, pair.want) {
			t.Fatalf("the links of %d messages are others than those made again", len(messages))
		}
		all = append(all, pair)
	}
	for i, pair := range all {
		if !slices.Equal(pair.got, pair.want) {
			t.Fatalf("links that were handed out as number %d have changed since", i)
		}
	}
}

// S3: histories of other scopes and runs share no link, though their messages are the same.
func TestRememberedLinksAreOfOneScope(t *testing.T) {
	t.Parallel()
	b := setup(t)
	messages := identified(100, 0, "same")
	hint := session.Hint{Name: "one"}
	mine := b.resolver.Chain(b.scope, hint, messages)
	elsewhere := b.scope
	elsewhere.Workspace = tenants.NewWorkspaceID()
	for _, other := range [][]conversation.Hash{
		b.resolver.Chain(elsewhere, hint, messages),
		b.resolver.Chain(b.scope, session.Hint{Name: "two"}, messages),
		b.resolver.Chain(b.scope, session.Hint{Name: "one", Lane: "agent"}, messages),
	} {
		if slices.ContainsFunc(other, func(link conversation.Hash) bool { return slices.Contains(mine, link) }) {
			t.Error("a link is shared")
		}
	}
}

func TestRequestsAtOnceGetTheirOwnLinks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hint := session.Hint{Name: "one"}
	var asking sync.WaitGroup
	for client := range 8 {
		asking.Go(func() {
			for length := 40; length < 140; length += 1 + client {
				messages := identified(length, 60+10*(client%2), strconv.Itoa(client%3))
				if !slices.Equal(b.resolver.Chain(b.scope, hint, messages), session.Chain(b.scope, hint, messages)) {
					t.Errorf("client %d: other links for %d messages", client, length)
				}
			}
		})
	}
	asking.Wait()
}

func BenchmarkChain(b *testing.B) {
	resolver, err := session.NewResolver(session.NewMemory())
	if err != nil {
		b.Fatal(err)
	}
	scope, messages := session.Scope{Workspace: tenants.NewWorkspaceID()}, identified(1700, 0, "")
	b.Run("made again", func(b *testing.B) {
		for b.Loop() {
			session.Chain(scope, session.Hint{}, messages)
		}
	})
	b.Run("remembered", func(b *testing.B) {
		for b.Loop() {
			resolver.Chain(scope, session.Hint{}, messages)
		}
	})
}
