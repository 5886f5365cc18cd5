package sessiondb_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// A lane that carries on one of another session, which its client only named, gets nothing of it.
func TestCarriedOnLaneNamesItsParentAndSharesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	from, on := f.conversationOf(6), f.conversationOf(2)
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{from.update()}); err != nil {
		t.Fatal(err)
	}
	update := on.update()
	update.Parent = from.lane
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{update}); err != nil {
		t.Fatal(err)
	}

	detail, err := f.store.Browser().Session(tenants.OwnWork(t.Context()), f.scope.Workspace, on.session)
	if err != nil || len(detail.Lanes) != 1 {
		t.Fatalf("%d lanes, %v", len(detail.Lanes), err)
	}
	if lane := detail.Lanes[0]; lane.Continues != from.session || lane.Parent != from.lane || lane.Archived != 2 {
		t.Errorf("the lane is %+v, want 2 messages of its own and session %s", lane, from.session)
	}
	found, err := f.store.Find(t.Context(), f.scope.Workspace, []conversation.Hash{update.Messages.Head})
	if err != nil || found.IsFork || found.Archived != 2 {
		t.Errorf("found is %+v, %v: it is no fork", found, err)
	}
	detail, err = f.store.Browser().Session(tenants.OwnWork(t.Context()), f.scope.Workspace, from.session)
	if err != nil || len(detail.Lanes) != 1 || detail.Lanes[0].Continues != uuid.Nil || detail.Lanes[0].Archived != 6 || !slices.Equal(detail.Lanes[0].Continued, []uuid.UUID{on.session}) {
		t.Errorf("the session that is carried on is %+v, %v", detail, err)
	}
}
