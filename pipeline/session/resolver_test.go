package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// bundle is a resolver on a store in memory.
type bundle struct {
	store    *session.Memory
	resolver *session.Resolver
	scope    session.Scope
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{
		store: session.NewMemory(),
		scope: session.Scope{Workspace: tenants.NewWorkspaceID(), APIKey: uuid.New(), Format: conversation.Anthropic},
	}
	b.restart(t)
	return b
}

// restart gives the bundle a resolver that knows nothing yet, as a new process
// or another replica has.
func (b *bundle) restart(t *testing.T) {
	t.Helper()
	resolver, err := session.NewResolver(b.store)
	if err != nil {
		t.Fatal(err)
	}
	b.resolver = resolver
}

// history makes digests from words: upper case is said by the assistant.
func history(words string) []conversation.Digest {
	var digests []conversation.Digest
	for word := range strings.FieldsSeq(words) {
		digest := conversation.Digest{Role: conversation.User, Tokens: 10}
		if strings.ToUpper(word) == word {
			digest.Role = conversation.Assistant
		}
		copy(digest.Identity[:], word)
		digests = append(digests, digest)
	}
	return digests
}

// send resolves a request and records it, as an exchange does.
func (b *bundle) send(t *testing.T, hint session.Hint, words string) *session.Lane {
	t.Helper()
	lane, chain := b.hold(t, hint, words)
	lane.Unlock()
	b.record(t, lane, chain)
	return lane
}

func (b *bundle) hold(t *testing.T, hint session.Hint, words string) (*session.Lane, []conversation.Hash) {
	t.Helper()
	messages := history(words)
	chain := session.Chain(b.scope, hint, messages)
	lane, _, err := b.resolver.Resolve(t.Context(), b.scope, hint, messages, chain)
	if err != nil {
		t.Fatal(err)
	}
	return lane, chain
}

func (b *bundle) record(t *testing.T, lane *session.Lane, chain []conversation.Hash) {
	t.Helper()
	length := len(chain) - 1
	update := session.Update{Scope: b.scope, Session: lane.Session, Lane: lane.ID, Kind: lane.Kind, Ancestry: session.Ancestry{Parent: lane.Ancestry.Parent, ForkAt: lane.Ancestry.ForkAt}, Messages: session.Messages{Position: length, Head: chain[length]}}
	for i := range length {
		update.Messages.Entries = append(update.Messages.Entries, archive.Entry{Index: i, Size: 1, Raw: []byte("x")})
	}
	if err := b.store.Record(t.Context(), b.scope.Workspace, []session.Update{update}); err != nil {
		t.Fatal(err)
	}
}

// epoch commits a projection of a lane over the first messages of a history.
func (b *bundle) epoch(t *testing.T, words string, covers int) session.Projection {
	t.Helper()
	lane, chain := b.hold(t, session.Hint{}, words)
	defer lane.Unlock()
	length := len(chain) - 1
	projection := session.Projection{
		Number: lane.NextNumber(), Covers: covers, Chain: chain[covers],
		Parts: []session.Part{{To: covers, Level: 3, Raw: []byte(`{"role":"user","content":"earlier"}`), Tokens: 5, Messages: 1}},
	}
	update := session.Update{Scope: b.scope, Session: lane.Session, Lane: lane.ID, Messages: session.Messages{Position: length, Head: chain[length]}}
	if err := b.store.Commit(t.Context(), update, projection); err != nil {
		t.Fatal(err)
	}
	lane.Adopt(projection)
	b.resolver.Committed(lane)
	return projection
}

func TestGrowingHistoryStaysInItsLane(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.send(t, session.Hint{}, "hello")
	second := b.send(t, session.Hint{}, "hello HI more")
	third := b.send(t, session.Hint{}, "hello HI more OK last")
	if first.ID != second.ID || second.ID != third.ID {
		t.Fatalf("lanes %s, %s, %s: want one", first.ID, second.ID, third.ID)
	}
}

func TestHistoryIsFoundAgainAfterARestart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.send(t, session.Hint{}, "hello HI more")
	projection := b.epoch(t, "hello HI more OK next", 2)
	b.restart(t)

	lane, chain := b.hold(t, session.Hint{}, "hello HI more OK next DONE again")
	defer lane.Unlock()
	if lane.ID != before.ID {
		t.Fatalf("lane %s after the restart, %s before", lane.ID, before.ID)
	}
	found := lane.Projection(chain)
	if found == nil || string(found.Parts[0].Raw) != string(projection.Parts[0].Raw) {
		t.Fatalf("projection after the restart: %+v, want the committed one", found) // C1
	}
}

// E9: two users with the same first message never share state.
func TestOtherKeyWorkspaceOrFormatSharesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	own := b.send(t, session.Hint{Name: "same", Source: "header"}, "hello HI more")
	for name, scope := range map[string]session.Scope{
		"workspace": {Workspace: tenants.NewWorkspaceID(), APIKey: b.scope.APIKey, Format: b.scope.Format},
		"key":       {Workspace: b.scope.Workspace, APIKey: uuid.New(), Format: b.scope.Format},
		"format":    {Workspace: b.scope.Workspace, APIKey: b.scope.APIKey, Format: conversation.OpenAIChat},
		"upstream":  {Workspace: b.scope.Workspace, APIKey: b.scope.APIKey, Format: b.scope.Format, Upstream: "https://llm.example.com"},
		"end user":  {Workspace: b.scope.Workspace, APIKey: b.scope.APIKey, Format: b.scope.Format, EndUser: "alice"},
	} {
		other := &bundle{store: b.store, resolver: b.resolver, scope: scope}
		lane := other.send(t, session.Hint{Name: "same", Source: "header"}, "hello HI more")
		if lane.ID == own.ID || lane.Session == own.Session {
			t.Errorf("another %s got the same lane or session", name)
		}
	}
}

// C5: edited, rewound and forked histories use the nearest valid ancestor.
func TestForkKeepsTheProjectionsBeforeIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	words := "a B c D e F g"
	trunk := b.send(t, session.Hint{}, "a B c D e")
	b.send(t, session.Hint{}, words)
	early := b.epoch(t, words+" H i", 2)
	b.epoch(t, words+" H i J k", 6)

	lane, chain := b.hold(t, session.Hint{}, "a B c D e OTHER g2")
	defer lane.Unlock()
	if lane.ID == trunk.ID {
		t.Fatal("a fork stayed in the lane it left")
	}
	if lane.Session != trunk.Session || lane.Ancestry.Parent != trunk.ID || lane.Ancestry.ForkAt != 5 {
		t.Fatalf("fork: session %s parent %s at %d, want %s %s 5", lane.Session, lane.Ancestry.Parent, lane.Ancestry.ForkAt, trunk.Session, trunk.ID)
	}
	found := lane.Projection(chain)
	if found == nil || found.Number != early.Number {
		t.Fatalf("fork uses projection %+v, want number %d", found, early.Number)
	}
}

func TestEditedStartHasNoAncestor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	trunk := b.send(t, session.Hint{}, "a B c")
	b.epoch(t, "a B c D e", 2)
	lane, chain := b.hold(t, session.Hint{}, "edited B c D e")
	defer lane.Unlock()
	if lane.ID == trunk.ID || lane.Projection(chain) != nil {
		t.Fatal("a history with another start uses the old lane or projection")
	}
}

func TestSameFirstMessageStartsAnotherSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.send(t, session.Hint{}, "hello")
	b.send(t, session.Hint{}, "hello HI more")
	second := b.send(t, session.Hint{}, "hello HOWDY other")
	if first.Session == second.Session {
		t.Fatal("two conversations that share only their first message are one session")
	}
}

func TestClientsSessionNameHoldsAllItsLanes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hint := session.Hint{Name: "run-1", Source: "x-session-id"}
	main := b.send(t, hint, "a B c")
	title := b.send(t, hint, "make a title")
	agent := b.send(t, session.Hint{Name: "run-1", Source: "x-session-id", Lane: "agent-7"}, "a B c")
	if main.Session != title.Session || main.Session != agent.Session {
		t.Fatal("lanes of one named session are in several sessions")
	}
	if main.ID == title.ID || main.ID == agent.ID {
		t.Fatal("a side call or a subagent shares the main lane")
	}
	b.restart(t)
	if again := b.send(t, hint, "fresh start"); again.Session != main.Session {
		t.Fatal("the name leads to another session after a restart")
	}
}

func TestNewestMessageSaidAgainKeepsTheProjection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	trunk := b.send(t, session.Hint{}, "a B c D e")
	projection := b.epoch(t, "a B c D e", 2)
	lane, chain := b.hold(t, session.Hint{}, "a B c D other")
	defer lane.Unlock()
	if lane.Session != trunk.Session || lane.Ancestry.ForkAt != 4 {
		t.Fatalf("session %s at %d, want %s at 4", lane.Session, lane.Ancestry.ForkAt, trunk.Session)
	}
	if found := lane.Projection(chain); found == nil || found.Number != projection.Number {
		t.Fatalf("projection %+v, want number %d", found, projection.Number)
	}
}

func TestRetriedRequestStaysInItsLane(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.send(t, session.Hint{}, "a B c")
	second := b.send(t, session.Hint{}, "a B c")
	if first.ID != second.ID {
		t.Fatal("a retry opened a lane of its own")
	}
}

// Another replica's epoch counts: once it is heard of, the store is asked again.
func TestLaneChangedElsewhereIsLoadedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lane := b.send(t, session.Hint{}, "a B c")
	other := &bundle{store: b.store, scope: b.scope}
	other.restart(t)
	projection := other.epoch(t, "a B c D e", 2)

	b.resolver.Changed(lane.ID, projection.Number)
	held, chain := b.hold(t, session.Hint{}, "a B c D e F g")
	defer held.Unlock()
	if found := held.Projection(chain); found == nil || found.Number != projection.Number {
		t.Fatalf("projection after the change: %+v, want the other replica's", found)
	}
}

func TestOwnEpochIsNoChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lane := b.send(t, session.Hint{}, "a B c")
	projection := b.epoch(t, "a B c D e", 2)
	lane.Reported(session.Anchor{Position: 5, Model: "m", Tokens: 70})

	b.resolver.Changed(lane.ID, projection.Number)
	held, _ := b.hold(t, session.Hint{}, "a B c D e F g")
	defer held.Unlock()
	if held.LastAnchor("m").Tokens != 70 {
		t.Fatal("the lane was dropped although this process made the projection itself")
	}
}

func TestFailingStoreIsReported(t *testing.T) {
	t.Parallel()
	resolver, err := session.NewResolver(failing{})
	if err != nil {
		t.Fatal(err)
	}
	messages := history("a B c")
	scope := session.Scope{Workspace: tenants.NewWorkspaceID()}
	_, _, err = resolver.Resolve(t.Context(), scope, session.Hint{}, messages, session.Chain(scope, session.Hint{}, messages))
	if !errors.Is(err, errDown) {
		t.Fatalf("error %v, want the store's", err)
	}
}

// B8: a size reported for another model says nothing.
func TestAnchorIsForOneModel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lane := b.send(t, session.Hint{}, "a B c")
	lane.Reported(session.Anchor{Position: 3, Model: "small", Tokens: 900})
	if anchor := lane.LastAnchor("large"); anchor.Tokens != 0 {
		t.Fatalf("anchor %+v carried over to another model", anchor)
	}
	if anchor := lane.LastAnchor("small"); anchor.Tokens != 900 {
		t.Fatalf("anchor %+v, want 900 tokens", anchor)
	}
}

// Nothing is handed over twice, and what was lost is handed over again.
func TestLaneKnowsWhatIsOnItsWayToTheArchive(t *testing.T) {
	t.Parallel()
	lane := setup(t).send(t, session.Hint{}, "a B c")
	if from := lane.HandOver(10); from != 0 {
		t.Fatalf("the first hand-over begins at %d", from)
	}
	if from := lane.HandOver(12); from != 10 || lane.Archived() != 0 {
		t.Fatalf("the second begins at %d with %d archived, want 10 with none", from, lane.Archived())
	}
	lane.Lost()          // the first
	lane.Arrived(10, 12) // the second, behind a gap
	if from := lane.HandOver(12); from != 0 || lane.Archived() != 0 {
		t.Fatalf("after the loss it begins at %d with %d archived, want all again", from, lane.Archived())
	}
	lane.Arrived(0, 12)
	if from := lane.HandOver(14); from != 12 || lane.Archived() != 12 {
		t.Fatalf("then it begins at %d with %d archived, want 12", from, lane.Archived())
	}
}

// A fork of a lane that is not durable yet need not archive again what becomes durable
// with that lane, nor does a retry of the fork.
func TestForksTakeOverWhatBecomesDurable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	trunk := b.send(t, session.Hint{}, "a B c D e")
	trunk.HandOver(5)
	fork := b.send(t, session.Hint{}, "a B c D other")
	if from := fork.HandOver(5); from != 0 || fork.Archived() != 0 {
		t.Fatalf("nothing is durable, and the fork hands over from %d with %d archived", from, fork.Archived())
	}
	retry := b.send(t, session.Hint{}, "a B c D another")
	trunk.Arrived(0, 5)
	if from := retry.HandOver(5); from != 4 || retry.Archived() != 4 {
		t.Fatalf("the trunk is durable, and the retry hands over from %d with %d archived, want 4", from, retry.Archived())
	}
	fork.Lost()
	if from := fork.HandOver(5); from != 4 {
		t.Fatalf("the fork was lost, and hands over from %d, want 4: the others came with the trunk", from)
	}
	retry.Arrived(4, 5)
	if retry.Archived() != 5 || trunk.Archived() != 5 || fork.Archived() != 4 {
		t.Fatalf("archived: retry %d, trunk %d, fork %d, want 5, 5, 4", retry.Archived(), trunk.Archived(), fork.Archived())
	}
}

// Histories that differ in their newest message fork from where it is missing,
// not from each other.
func TestForksAtOnePlaceAreSiblings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	trunk := b.send(t, session.Hint{}, "a B c D e")
	for _, words := range []string{"a B c D e2", "a B c D e3", "a B c D e4"} {
		fork := b.send(t, session.Hint{}, words)
		if fork.Ancestry.Parent != trunk.ID || fork.Ancestry.ForkAt != 4 {
			t.Fatalf("%s: forked from %s at %d, want %s at 4", words, fork.Ancestry.Parent, fork.Ancestry.ForkAt, trunk.ID)
		}
	}
}

// W38: what a client asks beside the conversation leaves its lane as it is.
func TestSideCallLeavesTheLaneAsItIs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	main := session.Hint{Name: "run-1", Source: "header", Kind: session.Main}
	side := session.Hint{Name: "run-1", Source: "header", Kind: session.Side}
	trunk := b.send(t, main, "a B c D e")
	for _, words := range []string{"a B c D e F summarise", "a B c D e", "name this"} {
		aside := b.send(t, side, words)
		if aside.ID == trunk.ID || aside.Kind != session.Side || aside.Session != trunk.Session {
			t.Fatalf("%q: lane %s of kind %q in session %s", words, aside.ID, aside.Kind, aside.Session)
		}
	}
	b.restart(t)
	for _, words := range []string{"a B c D e F g", "a B c D e F g H i"} {
		if lane := b.send(t, main, words); lane.ID != trunk.ID || lane.Kind != session.Main {
			t.Fatalf("%q: lane %s of kind %q, want the conversation's", words, lane.ID, lane.Kind)
		}
	}
}

func TestRunRemembersWhatItsClientSaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hint := session.Hint{Name: "run-1", Source: "header"}
	marker := conversation.Hash{1}
	b.resolver.Run(b.scope, hint).Note(session.Compaction{Windows: 1, Asked: true})
	if before := b.resolver.Run(b.scope, hint).Note(session.Compaction{Windows: 2, Marker: marker}); before != (session.Compaction{Windows: 1, Asked: true}) {
		t.Fatalf("the second request finds %+v", before)
	}
	if before := b.resolver.Run(b.scope, hint).Note(session.Compaction{Marker: marker}); before != (session.Compaction{Windows: 2, Marker: marker}) {
		t.Fatalf("the third request finds %+v", before)
	}
	unnamed := session.Hint{Source: "lineage"}
	b.resolver.Run(b.scope, unnamed).Note(session.Compaction{Asked: true})
	if before := b.resolver.Run(b.scope, unnamed).Note(session.Compaction{}); before.Asked {
		t.Fatal("clients that name no session share what is remembered")
	}
}

func BenchmarkResolveWarm(b *testing.B) {
	resolver, err := session.NewResolver(session.NewMemory())
	if err != nil {
		b.Fatal(err)
	}
	scope := session.Scope{Workspace: tenants.NewWorkspaceID()}
	messages := make([]conversation.Digest, 400)
	for i := range messages {
		messages[i].Identity[0], messages[i].Identity[1] = byte(i), byte(i>>8)
	}
	for b.Loop() {
		chain := session.Chain(scope, session.Hint{}, messages)
		lane, _, err := resolver.Resolve(b.Context(), scope, session.Hint{}, messages, chain)
		if err != nil {
			b.Fatal(err)
		}
		lane.Unlock()
	}
}

var errDown = errors.New("down")

// failing is a store whose database is down.
type failing struct{ session.Store }

func (failing) Find(context.Context, tenants.WorkspaceID, []conversation.Hash) (session.Found, error) {
	return session.Found{}, errDown
}
