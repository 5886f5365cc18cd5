package sessiondb_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// asked keeps an exchange of the client's lane.
func (c *client) asked(t *testing.T, at time.Time, position int, endpoint, class string, attempts int) {
	t.Helper()
	err := c.f.runner.InTenant(t.Context(), c.f.scope.Workspace, func(tx *gorm.DB) error {
		return tx.Exec(`INSERT INTO exchanges (workspace_id, id, at, session_id, lane_id, api_key_id, provider, endpoint, model, client, class, stream, status,
			position, compression, tokens_before, tokens_after, window_tokens, level_0, level_1, level_2, level_3,
			input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_microusd, net_microusd, overhead_us, ttfb_us, duration_us, attempts)
			VALUES (?, ?, ?, ?, ?, ?, 'anthropic', ?, 'claude-sonnet-4-5', 'x', ?, false, 200, ?, 'epoch', 90, 40, 200, 1, 0, 0, 0, 1, 0, 0, 1, 5, 7, 1, 1, 1, ?)`,
			c.f.scope.Workspace, uuid.New(), at, c.session, c.lane, c.f.scope.APIKey, endpoint, class, position, attempts).Error
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestConversationsAreReadAsTheyAreCounted(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c, other := f.conversationOf(3), f.conversationOf(1)
	c.record(t)
	otherSeen := other.update()
	otherSeen.Client = "codex"
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{otherSeen}); err != nil {
		t.Fatal(err)
	}
	c.say(`{"role":"user","content":"one more"}`)
	seen := c.update()
	seen.Messages.Entries[0].Role, seen.Messages.Entries[0].Flags, seen.Messages.Entries[0].Tokens = conversation.Tool, conversation.HasResult, 70
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, time.November, 2, 9, 0, 0, 0, time.UTC)
	c.asked(t, at.Add(time.Minute), 4, "/v1/messages", "", 1)
	c.asked(t, at, 3, "/v1/messages", "", 1)
	c.asked(t, at, 3, "/v1/messages/count_tokens", "", 1)
	c.asked(t, at, 3, "/v1/messages", "summary", 1)
	c.asked(t, at, 3, "/v1/messages", "", 0)

	recorded, err := f.store.Browser().Recorded(tenants.OwnWork(t.Context()), f.scope.Workspace, session.Selection{Newest: 40})
	if err != nil || len(recorded) != 2 {
		t.Fatalf("%d sessions, %v", len(recorded), err)
	}
	first := recorded[0]
	if first.APIKey != f.scope.APIKey || first.Format != f.scope.Format || first.Format == "" {
		t.Errorf("the key is %s, the format %q", first.APIKey, first.Format)
	}
	if first.Session != c.session || first.Lane != c.lane || len(first.Messages) != 4 || len(recorded[1].Messages) != 1 || len(recorded[1].Requests) != 0 {
		t.Fatalf("got %+v", recorded)
	}
	if want := (session.Counted{Role: conversation.Tool, Flags: conversation.HasResult, Tokens: 70}); first.Messages[3] != want {
		t.Errorf("the newest message is %+v, want %+v", first.Messages[3], want)
	}
	for i := range first.Requests {
		first.Requests[i].At = first.Requests[i].At.UTC()
	}
	want := []session.Sent{
		{At: at, Position: 3, Before: 90, After: 40, Limit: 200, Takes: 200, IsEpoch: true, Net: 7, Cost: 5, Output: 1},
		{At: at.Add(time.Minute), Position: 4, Before: 90, After: 40, Limit: 200, Takes: 200, IsEpoch: true, Net: 7, Cost: 5, Output: 1},
	}
	if !reflect.DeepEqual(first.Requests, want) {
		t.Errorf("requests %+v, want %+v", first.Requests, want)
	}
	if newest, err := f.store.Browser().Recorded(tenants.OwnWork(t.Context()), f.scope.Workspace, session.Selection{Newest: 1}); err != nil || len(newest) != 1 || newest[0].Session != c.session {
		t.Errorf("the newest session is %+v, %v", newest, err)
	}
	for client, want := range map[string]uuid.UUID{"claude-code": c.session, "codex": other.session, "Codex": uuid.Nil} {
		of, err := f.store.Browser().Recorded(tenants.OwnWork(t.Context()), f.scope.Workspace, session.Selection{Newest: 40, Client: client})
		if err != nil || len(of) > 1 || (len(of) == 1) != (want != uuid.Nil) || len(of) == 1 && of[0].Session != want {
			t.Errorf("of %s there is %+v, %v", client, of, err)
		}
	}
	for since, want := range map[time.Time]int{at.AddDate(-30, 0, 0): 2, at.AddDate(1000, 0, 0): 0} {
		if active, err := f.store.Browser().Recorded(tenants.OwnWork(t.Context()), f.scope.Workspace, session.Selection{Newest: 40, Since: since}); err != nil || len(active) != want {
			t.Errorf("since %s there are %d sessions, want %d, %v", since, len(active), want, err)
		}
	}
	if none, err := f.store.Browser().Recorded(tenants.OwnWork(t.Context()), tenants.NewWorkspaceID(), session.Selection{Newest: 40}); err != nil || len(none) != 0 {
		t.Errorf("of another workspace there is %+v, %v", none, err)
	}
}
