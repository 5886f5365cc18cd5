package session_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// linked is a conversation of so many messages, and its links.
func linked(scope session.Scope, hint session.Hint, messages int) ([]conversation.Digest, []conversation.Hash) {
	digests := make([]conversation.Digest, messages)
	for i := range digests {
		digests[i] = conversation.Digest{Identity: conversation.Hash{byte(i), 1}, Role: conversation.User}
		if i%2 == 1 {
			digests[i].Role = conversation.Assistant
		}
	}
	return digests, session.Chain(scope, hint, digests)
}

// C5, C6: a lane in memory has the newest summary that its history still holds; one
// that rewinds behind it has the one before.
func TestALaneHasTheSummaryOfItsHistory(t *testing.T) {
	t.Parallel()
	store := &watchedStore{Memory: session.NewMemory()}
	resolver, err := session.NewResolver(store)
	if err != nil {
		t.Fatal(err)
	}
	scope, hint := session.Scope{Workspace: tenants.NewWorkspaceID()}, session.Hint{Name: "run"}
	digests, chain := linked(scope, hint, 9)
	early, _, err := resolver.Resolve(t.Context(), scope, hint, digests[:5], chain[:6])
	if err != nil {
		t.Fatal(err)
	}
	early.Unlock()
	lane, _, err := resolver.Resolve(t.Context(), scope, hint, digests, chain)
	if err != nil {
		t.Fatal(err)
	}
	if lane.Summary(chain) != nil {
		t.Error("a new lane has a summary")
	}
	lane.Unlock()
	for _, covers := range []int{4, 8} {
		summary := session.Summary{Covers: covers, Chain: chain[covers], Text: "x"}
		resolver.Summarized(lane.ID, summary)
		resolver.Summarized(lane.ID, summary)
		resolver.SummaryChanged(lane.ID, covers) // told by the store, too
	}
	resolver.Summarized(uuid.New(), session.Summary{})

	again, _, err := resolver.Resolve(t.Context(), scope, hint, digests, chain)
	if err != nil {
		t.Fatal(err)
	}
	if again != lane {
		t.Fatal("the lane was read again for a summary that it has")
	}
	if found := again.Summary(chain); found == nil || found.Covers != 8 {
		t.Errorf("summary %+v", found)
	}
	if found := again.Summary(chain[:7]); found == nil || found.Covers != 4 {
		t.Errorf("of a shorter history: %+v", found)
	}
	again.Unlock()

	other := append(slices.Clone(digests[:5]), conversation.Digest{Identity: conversation.Hash{99}}, conversation.Digest{Identity: conversation.Hash{98}})
	left := session.Chain(scope, hint, other)
	fork, met, err := resolver.Resolve(t.Context(), scope, hint, other, left)
	if err != nil {
		t.Fatal(err)
	}
	if found := fork.Summary(left); fork == lane || met != 5 || found == nil || found.Covers != 4 {
		t.Errorf("of a fork behind %d messages: %+v", met, found)
	}
	fork.Unlock()

	looks := store.looks.Load()
	resolver.SummaryChanged(lane.ID, 6) // another replica has made one
	reread, _, err := resolver.Resolve(t.Context(), scope, hint, digests, chain)
	if err != nil {
		t.Fatal(err)
	}
	if store.looks.Load() == looks {
		t.Error("the lane does not hear of another replica's summary")
	}
	reread.Unlock()
}

func TestALaneTellsOfRejectedSummariesOnce(t *testing.T) {
	t.Parallel()
	resolver, err := session.NewResolver(session.NewMemory())
	if err != nil {
		t.Fatal(err)
	}
	scope, hint := session.Scope{Workspace: tenants.NewWorkspaceID()}, session.Hint{Name: "run"}
	digests, chain := linked(scope, hint, 3)
	lane, _, err := resolver.Resolve(t.Context(), scope, hint, digests, chain)
	if err != nil {
		t.Fatal(err)
	}
	defer lane.Unlock()
	resolver.SummaryRejected(lane.ID, "empty") // while a request holds the lane
	resolver.SummaryRejected(lane.ID, "refusal")
	resolver.SummaryRejected(uuid.New(), "empty")

	if told := lane.TakeRejected(); !slices.Equal(told, []string{"empty", "refusal"}) || lane.TakeRejected() != nil {
		t.Errorf("told: %v", told)
	}
	for range 100 {
		resolver.SummaryRejected(lane.ID, "empty")
	}
	if told := lane.TakeRejected(); len(told) != 8 {
		t.Errorf("%d rejections are remembered", len(told))
	}
}
