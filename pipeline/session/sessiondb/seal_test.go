package sessiondb_test

import (
	"bytes"
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
)

// idleQueue takes jobs that nobody runs.
type idleQueue struct{}

func (idleQueue) Enqueue(context.Context, tenants.Tenant, ...jobs.Job) error { return nil }

// restarted returns a store as a process has it that has just started.
func (f *fixture) restarted() *sessiondb.Store {
	return sessiondb.New(f.runner, archivetest.Keys()).WithJobs(idleQueue{})
}

// plan stores what an epoch of the client's lane can be planned from, and the plan.
func (c *client) plan(t *testing.T, store *sessiondb.Store, projection session.Projection) {
	t.Helper()
	seen, at := c.update(), time.Now().UTC().Truncate(time.Microsecond)
	seen.Heat = session.CacheState{At: at, TTL: time.Minute, Position: seen.Messages.Position}
	seen.Ahead = &session.Ahead{SentAt: at, Due: at.Add(time.Minute), Outline: []byte("an outline")}
	if err := store.Record(t.Context(), c.f.scope.Workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	plan := &session.Plan{Projection: projection, Settings: conversation.Hash{7}, Factor: 1.5}
	if err := store.SavePlan(t.Context(), c.f.scope.Workspace, c.lane, at, plan); err != nil {
		t.Fatal(err)
	}
}

// C1, C4: what was put into a prompt, and what was planned for it, comes back to the byte.
func TestInsertsAndPlansAreSealed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(6)
	plain := c.insert(2, session.InSystem, "line\r\n\u2028 \"é\" \U0001f600\n")
	plain.Items = []string{}
	if err := f.restarted().Inject(t.Context(), c.update(), []session.Insert{c.insert(1, 2, "canary of an insert"), plain}); err != nil {
		t.Fatal(err)
	}
	c.plan(t, f.restarted(), c.projection(1, 4))
	found, err := f.restarted().Find(t.Context(), f.scope.Workspace, c.chain[1:])
	if err != nil || len(found.Inserts) != 2 || found.Plan == nil {
		t.Fatalf("found %+v, %v", found, err)
	}
	if want := c.insert(1, 2, "canary of an insert"); !reflect.DeepEqual(found.Inserts[0], want) {
		t.Errorf("the insert is %+v, want %+v", found.Inserts[0], want)
	}
	if got := found.Inserts[1]; got.Text != plain.Text || len(got.Items) != 0 {
		t.Errorf("the insert is %+v", got)
	}
	if got, want := found.Plan.Projection.Parts[1].Raw, c.projection(1, 4).Parts[1].Raw; !bytes.Equal(got, want) || found.Plan.Settings != (conversation.Hash{7}) {
		t.Errorf("the plan is %q for %v, want %q", got, found.Plan.Settings, want)
	}
	if inserts, err := f.restarted().Browser().Inserts(t.Context(), f.scope.Workspace, c.lane); err != nil || !reflect.DeepEqual(inserts, found.Inserts) {
		t.Errorf("read %+v, %v", inserts, err)
	}
	var open int
	err = f.runner.InTenant(t.Context(), f.scope.Workspace, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT (SELECT count(*) FROM lane_inserts WHERE text <> '' OR items <> '{}' OR sealed IS NULL)
			+ (SELECT count(*) FROM lane_plans WHERE get_byte(plan, 0) <> 1)`).Scan(&open).Error
	})
	if err != nil || open != 0 {
		t.Errorf("%d lie open, %v", open, err)
	}
}

// Sealed text opens where it was put only: not in another lane or at another number.
func TestAMovedInsertDoesNotOpen(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]string{
		"another number": "UPDATE lane_inserts SET number = 5 WHERE lane_id = $1",
		"another lane":   "UPDATE lane_inserts SET sealed = (SELECT sealed FROM lane_inserts WHERE lane_id <> $1) WHERE lane_id = $1",
		"another's text": "UPDATE lane_inserts SET sealed = set_byte(sealed, 30, get_byte(sealed, 30) # 1) WHERE lane_id = $1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			c, other := f.conversationOf(2), f.conversationOf(2)
			for _, c := range []*client{c, other} {
				if err := f.restarted().Inject(t.Context(), c.update(), []session.Insert{c.insert(1, 1, "[text]")}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := f.db.Owner(t).Exec(t.Context(), move, c.lane); err != nil {
				t.Fatal(err)
			}
			if inserts, err := f.restarted().Browser().Inserts(t.Context(), f.scope.Workspace, c.lane); err == nil {
				t.Errorf("opened %+v", inserts)
			}
			if inserts, err := f.restarted().Browser().Inserts(t.Context(), f.scope.Workspace, other.lane); err != nil || len(inserts) != 1 {
				t.Errorf("the other lane has %+v, %v", inserts, err)
			}
		})
	}
}

// A fork opens what it took over, which is bound to the lane that it was put into.
func TestAForkOpensTheInsertsThatItTookOver(t *testing.T) {
	t.Parallel()
	f := setup(t)
	parent := f.conversationOf(4)
	shared := parent.insert(1, 1, "[shared]")
	if err := f.restarted().Inject(t.Context(), parent.update(), []session.Insert{shared}); err != nil {
		t.Fatal(err)
	}
	fork := &client{f: f, session: parent.session, lane: uuid.New(), messages: parent.messages[:3:3], chain: parent.chain[:4:4]}
	fork.say("another way")
	seen := fork.update()
	seen.Parent, seen.ForkAt, seen.Taken = parent.lane, 3, 1
	own := fork.insert(2, 3, "[own]")
	if err := f.restarted().Inject(t.Context(), seen, []session.Insert{own}); err != nil {
		t.Fatal(err)
	}
	inserts, err := f.restarted().Browser().Inserts(t.Context(), f.scope.Workspace, fork.lane)
	if err != nil || !reflect.DeepEqual(inserts, []session.Insert{shared, own}) {
		t.Errorf("the fork has %+v, %v", inserts, err)
	}
}
