package session_test

import (
	"errors"
	"testing"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

func (b *bundle) peek(t *testing.T, words string) session.Snapshot {
	t.Helper()
	messages := history(words)
	glance, err := b.resolver.Preview(t.Context(), b.scope, messages, session.Chain(b.scope, session.Hint{}, messages), "m")
	if err != nil {
		t.Fatal(err)
	}
	return glance
}

// W37: who only looks sees the lane's projection and leaves no lane and no head.
func TestPeekShowsTheProjectionAndLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hint := session.Hint{}
	if glance := b.peek(t, "a B c D e"); glance.Projection != nil || glance.Next != 0 {
		t.Errorf("of a history nobody knows: %+v", glance)
	}
	lane := b.send(t, hint, "a B c")
	projection := b.epoch(t, "a B c", 2)

	for name, words := range map[string]string{"the same": "a B c", "gone on": "a B c D e", "left behind the projection": "a B x"} {
		glance := b.peek(t, words)
		if glance.Projection == nil || glance.Projection.Number != projection.Number || glance.Next != projection.Number+1 {
			t.Errorf("%s: %+v", name, glance)
		}
	}
	for name, words := range map[string]string{"left before it": "a Y c", "another": "x B c"} {
		if glance := b.peek(t, words); glance.Projection != nil {
			t.Errorf("%s: %+v", name, glance)
		}
	}
	b.restart(t) // what is stored alone
	if glance := b.peek(t, "a B c D e"); glance.Projection == nil {
		t.Error("another replica does not see the projection")
	}

	// The lane goes on where it stood: nobody has gone on with "D e".
	messages := history("a B c D e")
	again, met, err := b.resolver.Resolve(t.Context(), b.scope, hint, messages, session.Chain(b.scope, hint, messages))
	if err != nil || met != 3 || again.ID != lane.ID {
		t.Errorf("met %d in %v (%v), want 3 in %v", met, again, err, lane.ID)
	}
	again.Unlock()
}

func TestPeekTellsThatTheStoreFailed(t *testing.T) {
	t.Parallel()
	resolver, err := session.NewResolver(failing{})
	if err != nil {
		t.Fatal(err)
	}
	messages := history("a B c")
	scope := session.Scope{Workspace: tenants.NewWorkspaceID()}
	if _, err := resolver.Preview(t.Context(), scope, messages, session.Chain(scope, session.Hint{}, messages), "m"); !errors.Is(err, errDown) {
		t.Errorf("error %v", err)
	}
}
