package sessiondb_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
)

// deafStore is the store as a replica sees it that announces nothing while it is deaf.
type deafStore struct {
	*sessiondb.Store

	deaf bool
}

// Announce implements session.Store.
func (s *deafStore) Announce(ctx context.Context, workspace tenants.WorkspaceID, updates []session.Update) error {
	if s.deaf {
		return errors.New("the store takes too long")
	}
	return s.Store.Announce(ctx, workspace, updates)
}

// replica resolves requests as a process does, and records them when it is told to.
type replica struct {
	store    *deafStore
	resolver *session.Resolver
	waiting  []session.Update
}

func (f *fixture) replica(t *testing.T) *replica {
	t.Helper()
	store := &deafStore{Store: f.store}
	resolver, err := session.NewResolver(store)
	if err != nil {
		t.Fatal(err)
	}
	resolver.Share(nil, nil) // announces nothing by itself
	return &replica{store: store, resolver: resolver}
}

// ask has the replica serve a request with a history.
func (r *replica) ask(t *testing.T, scope session.Scope, name string, messages [][]byte, at time.Time) {
	t.Helper()
	hint := session.Hint{Name: name}
	digests := make([]conversation.Digest, len(messages))
	for i, message := range messages {
		digests[i] = conversation.Digest{Role: roleOf(message), Identity: sha256.Sum256(message)}
	}
	chain := session.Chain(scope, hint, digests)
	lane, _, err := r.resolver.Resolve(t.Context(), scope, hint, digests, chain)
	if err != nil {
		t.Fatal(err)
	}
	seen := lane.Place(scope, at)
	seen.Messages.Position, seen.Messages.Head = len(messages), chain[len(messages)]
	from := min(lane.Archived(), len(messages))
	for i := from; i < len(messages); i++ {
		seen.Messages.Entries = append(seen.Messages.Entries, archive.Entry{Index: i, Hash: sha256.Sum256(messages[i]), Role: roleOf(messages[i]), Tokens: 5, Raw: messages[i], Size: len(messages[i])})
	}
	if len(seen.Messages.Entries) > 0 {
		seen.Messages.Links = chain[from:]
	}
	seen.Increment.Exchanges, seen.Increment.TokensBefore, seen.Increment.TokensAfter, seen.Increment.NetMicroUSD = 1, 100, 60, -7
	lane.Unlock()
	_ = r.store.Announce(t.Context(), scope.Workspace, []session.Update{seen})
	r.waiting = append(r.waiting, seen)
}

// record stores the oldest of what waits.
func (r *replica) record(t *testing.T, scope session.Scope, count int, hear func(lane uuid.UUID)) {
	t.Helper()
	batch := slices.Clone(r.waiting[:count])
	r.waiting = r.waiting[count:]
	before := slices.Clone(batch)
	if err := r.store.Record(t.Context(), scope.Workspace, batch); err != nil {
		t.Fatal(err)
	}
	for i := range batch {
		if batch[i].Lane != before[i].Lane {
			hear(before[i].Lane)
		}
	}
}

// Whatever three replicas hear of each other, and in whichever order they record: sessions that
// grow have the lanes and counts in the end that one replica gives them, with every message.
func TestReplicasThatHearLittleEndUpWithTheLanesOfOne(t *testing.T) {
	t.Parallel()
	for seed := range fulltest.Part(16) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			random := uint64(seed)
			one, three := playOn(t, random, 1), playOn(t, random, 3)
			if one != three {
				t.Errorf("three replicas: %+v, one: %+v", three, one)
			}
		})
	}
}

// playOn has sessions at so many replicas, whose announcements often fail and that record late,
// and returns what lists show of them. Every other session has a name.
func playOn(t *testing.T, seed uint64, count int) sums {
	t.Helper()
	const sessions, requests = 4, 7
	f, random, order := setup(t), rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	replicas := make([]*replica, count)
	for i := range replicas {
		replicas[i] = f.replica(t)
	}
	hear := func(lane uuid.UUID) {
		for _, other := range replicas {
			other.resolver.Changed(lane, 0)
		}
	}
	said, clock := make([][][]byte, sessions), time.Now()
	for range sessions * requests {
		of := order.IntN(sessions)
		if len(said[of]) > 0 {
			said[of] = append(said[of], fmt.Appendf(nil, `{"role":"assistant","content":"%d of %d"}`, len(said[of]), of))
		}
		said[of] = append(said[of], fmt.Appendf(nil, `{"role":"user","content":"%d of %d"}`, len(said[of]), of))
		name := ""
		if of%2 == 0 {
			name = fmt.Sprintf("run-%d", of)
		}
		at := replicas[random.IntN(1000)%count]
		at.store.deaf = random.IntN(3) > 0
		clock = clock.Add(time.Second)
		at.ask(t, f.scope, name, said[of], clock)
		if late := replicas[random.IntN(1000)%count]; random.IntN(3) == 0 && len(late.waiting) > 0 {
			late.record(t, f.scope, 1+random.IntN(1000)%len(late.waiting), hear)
		}
	}
	for _, i := range random.Perm(3) {
		if i < count && len(replicas[i].waiting) > 0 {
			replicas[i].record(t, f.scope, len(replicas[i].waiting), hear)
		}
	}
	for of, messages := range said {
		if len(messages) > 0 {
			f.isWhole(t, strconv.Itoa(of), messages)
		}
	}
	return f.sums(t)
}

// isWhole fails the test unless one lane holds the messages of a session, each as it was sent.
func (f *fixture) isWhole(t *testing.T, name string, messages [][]byte) {
	t.Helper()
	var lanes []uuid.UUID
	last := sha256.Sum256(messages[len(messages)-1])
	owner := f.db.Owner(t)
	rows, err := owner.Query(t.Context(), "SELECT lane_id FROM archive_entries WHERE workspace_id = $1 AND hash = $2", f.scope.Workspace, last[:])
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var lane uuid.UUID
		if err := rows.Scan(&lane); err != nil {
			t.Fatal(err)
		}
		lanes = append(lanes, lane)
	}
	if len(lanes) != 1 {
		t.Errorf("session %s: its last message is in %d lanes", name, len(lanes))
		return
	}
	(&client{f: f, messages: messages}).whole(t, lanes[0])
}
