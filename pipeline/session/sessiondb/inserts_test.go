package sessiondb_test

import (
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/session"
)

// insert returns one at a message of the client's history.
func (c *client) insert(number, message int, text string) session.Insert {
	return session.Insert{
		Number: number, Message: message, Chain: c.chain[message+1], Module: "rehydrator", Text: text, Tokens: 7,
		Items: []string{"#12", `"quoted", {odd}`, "é"},
	}
}

// Inserts, what they hold and the originals of their request are there once they are
// stored, for a process that has just started too.
func TestInsertsAreReadWithTheirLane(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(3)
	bare := c.insert(2, session.InSystem, "line\r\n\u2028 \"é\" \U0001f600")
	bare.Items = nil
	inserts := []session.Insert{c.insert(1, 2, "[recovered]"), bare}
	if err := f.store.Inject(t.Context(), c.update(), inserts); err != nil {
		t.Fatal(err)
	}
	found := c.find(t)
	inserts[1].Items = []string{}
	if !reflect.DeepEqual(found.Inserts, inserts) || found.Taken != 0 || found.Archived != 3 {
		t.Errorf("found %+v of %d archived, want %+v", found.Inserts, found.Archived, inserts)
	}
	if got, err := f.store.Browser().Inserts(t.Context(), f.scope.Workspace, c.lane); err != nil || !reflect.DeepEqual(got, inserts) {
		t.Errorf("read %+v, %v", got, err)
	}
	if err := f.store.Withdraw(t.Context(), f.scope.Workspace, c.lane, 2); err != nil {
		t.Fatal(err)
	}
	if got := c.find(t).Inserts; !reflect.DeepEqual(got, inserts[:1]) {
		t.Errorf("after a withdrawal %+v", got)
	}
}

// A pointer of an earlier version, in place of a tool result, is left out, and its number is not given again.
func TestPointersOfEarlierVersionsAreLeftOut(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(3)
	if err := f.store.Inject(t.Context(), c.update(), []session.Insert{c.insert(1, 2, "[recovered]")}); err != nil {
		t.Fatal(err)
	}
	err := f.runner.InTenant(t.Context(), f.scope.Workspace, func(tx *gorm.DB) error {
		return tx.Exec(`INSERT INTO lane_inserts (workspace_id, lane_id, number, message, chain, module, tokens, sealed, block, source)
			SELECT workspace_id, lane_id, 2, message, chain, 'ipc', -9, sealed, 1, 0 FROM lane_inserts WHERE workspace_id = ?`, f.scope.Workspace).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	if found := c.find(t); len(found.Inserts) != 1 || found.Inserts[0].Number != 1 || found.Taken != 2 {
		t.Errorf("found %+v, %d taken, want the first alone and 2 taken", found.Inserts, found.Taken)
	}
}

// S2: another workspace sees no inserts and takes none away.
func TestInsertsBelongToTheirWorkspace(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(2)
	if err := f.store.Inject(t.Context(), c.update(), []session.Insert{c.insert(1, 1, "[mine]")}); err != nil {
		t.Fatal(err)
	}
	other := addWorkspace(t, f.runner)
	if got, err := f.store.Browser().Inserts(t.Context(), other, c.lane); err != nil || len(got) != 0 {
		t.Errorf("read %+v, %v", got, err)
	}
	if err := f.store.Withdraw(t.Context(), other, c.lane, 1); err != nil {
		t.Fatal(err)
	}
	if f.count(t, "lane_inserts") != 1 {
		t.Error("another workspace took an insert away")
	}
}

// A lane has the inserts of the messages that it shares with the lane it forked
// from, as they were then.
func TestForksTakeInsertsOver(t *testing.T) {
	t.Parallel()
	f := setup(t)
	parent := f.conversationOf(6)
	inserts := []session.Insert{parent.insert(1, 1, "[shared]"), parent.insert(2, session.InSystem, "[system]"), parent.insert(3, 5, "[behind]")}
	if err := f.store.Inject(t.Context(), parent.update(), inserts); err != nil {
		t.Fatal(err)
	}
	fork := &client{f: f, session: parent.session, lane: uuid.New(), messages: parent.messages[:4:4], chain: parent.chain[:5:5]}
	fork.say("another way")
	seen := fork.update()
	seen.Parent, seen.ForkAt, seen.Taken = parent.lane, 4, 2
	own := fork.insert(3, 4, "[own]")
	if err := f.store.Inject(t.Context(), seen, []session.Insert{own}); err != nil {
		t.Fatal(err)
	}
	late := parent.insert(4, 3, "[late]")
	if err := f.store.Inject(t.Context(), parent.update(), []session.Insert{late}); err != nil {
		t.Fatal(err)
	}
	want := []session.Insert{inserts[0], inserts[1], own}
	if found := fork.find(t); !reflect.DeepEqual(found.Inserts, want) || found.Taken != 2 {
		t.Errorf("the fork has %+v, %d taken over", found.Inserts, found.Taken)
	}
	if got := parent.find(t).Inserts; len(got) != 4 {
		t.Errorf("the parent has %+v", got)
	}
	if err := f.store.Withdraw(t.Context(), f.scope.Workspace, fork.lane, 1); err != nil {
		t.Fatal(err)
	}
	if got := fork.find(t).Inserts; !reflect.DeepEqual(got, want[:2]) {
		t.Errorf("after a withdrawal of its own %+v", got)
	}
}

// Of replicas that put something into a lane at once one wins; nothing of the
// others is stored.
func TestOneOfSeveralReplicasInjects(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(2)
	c.record(t)
	const replicas = 4
	var wait sync.WaitGroup
	failures := make([]error, replicas)
	for i := range replicas {
		seen := c.update()
		wait.Go(func() {
			failures[i] = f.store.Inject(t.Context(), seen, []session.Insert{c.insert(1, 1, "[one]"), c.insert(2, 1, "[two]")})
		})
	}
	wait.Wait()
	won := 0
	for _, err := range failures {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, session.ErrOvertaken):
			t.Errorf("lost with %v", err)
		}
	}
	if won != 1 || f.count(t, "lane_inserts") != 2 {
		t.Errorf("%d won, %d rows", won, f.count(t, "lane_inserts"))
	}
}

// E12: with a session its inserts go.
func TestDeletingASessionDeletesItsInserts(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(2)
	if err := f.store.Inject(t.Context(), c.update(), []session.Insert{c.insert(1, 1, "[gone]")}); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Browser().Delete(t.Context(), f.scope.Workspace, c.session); err != nil {
		t.Fatal(err)
	}
	if f.count(t, "lane_inserts") != 0 {
		t.Error("inserts are left")
	}
}
