package session_test

import (
	"encoding/hex"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// E9: a lane towards one upstream is not continued towards another, with
// a session id and without, before a restart and after it.
func TestUpstreamsShareNoLane(t *testing.T) {
	t.Parallel()
	for name, hint := range map[string]session.Hint{"named": {Name: "same", Source: "header"}, "recognized": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := setup(t)
			other := &bundle{store: own.store, resolver: own.resolver, scope: own.scope}
			other.scope.Upstream = "https://llm.example.com"
			first, second := own.send(t, hint, "a B c"), other.send(t, hint, "a B c")
			if first.ID == second.ID || first.Session == second.Session {
				t.Fatal("two upstreams got the same lane or session")
			}

			for _, when := range []string{"before", "after"} {
				if lane := own.send(t, hint, "a B c D e F g"); lane.ID != first.ID {
					t.Errorf("%s the restart: lane %s of the provider's own, want %s", when, lane.ID, first.ID)
				}
				lane := other.send(t, hint, "a B c D e F g")
				if lane.ID != second.ID {
					t.Errorf("%s the restart: lane %s of the other upstream, want %s", when, lane.ID, second.ID)
				}
				own.restart(t)
				other.resolver = own.resolver
			}
		})
	}
}

// E9: lanes that were stored before upstreams counted go on: links towards the
// provider's own base URL are what they were.
func TestLinksTowardsProviderStayAcrossUpgrade(t *testing.T) {
	t.Parallel()
	scope := session.Scope{
		Workspace: tenants.WorkspaceID(uuid.MustParse("11111111-1111-4111-8111-111111111111")),
		APIKey:    uuid.MustParse("22222222-2222-4222-8222-222222222222"), Format: conversation.Anthropic,
	}
	const stored = "6f0971c530fef3bc45726c0554fac2073e9915db3cef91fa0c6594289b0d31cf"
	if root := session.Chain(scope, session.Hint{Name: "run", Lane: "agent"}, nil)[0]; hex.EncodeToString(root[:]) != stored {
		t.Errorf("root %x, stored lanes have %s", root, stored)
	}
}

// E9: an epoch towards one upstream changes no prompt towards another.
func TestUpstreamsShareNoProjection(t *testing.T) {
	t.Parallel()
	own := setup(t)
	other := &bundle{store: own.store, resolver: own.resolver, scope: own.scope}
	other.scope.Upstream = "https://llm.example.com"
	own.send(t, session.Hint{}, "a B c")
	own.epoch(t, "a B c D e", 2)

	lane, chain := other.hold(t, session.Hint{}, "a B c D e")
	defer lane.Unlock()
	if lane.NextNumber() != 1 || lane.Projection(chain) != nil {
		t.Errorf("the next projection is %d, the prompt's %+v", lane.NextNumber(), lane.Projection(chain))
	}
}
