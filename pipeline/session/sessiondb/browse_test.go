package sessiondb_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// addSession records a session that was active at a time.
func (f *fixture) addSession(t *testing.T, at time.Time, change func(*session.Update)) *client {
	t.Helper()
	c := f.conversationOf(1)
	seen := c.update()
	seen.At = at
	if change != nil {
		change(&seen)
	}
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSessionsArePagedNewestFirst(t *testing.T) {
	t.Parallel()
	f := setup(t)
	begin := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	var want []uuid.UUID
	for i := range 25 {
		at := begin.Add(time.Duration(i/3) * time.Second) // three at the same moment
		want = append(want, f.addSession(t, at, nil).session)
	}
	var got []uuid.UUID
	var last session.Overview
	filter := session.Filter{Limit: 4}
	for len(got) <= len(want) {
		page, err := f.store.Browser().Sessions(tenants.OwnWork(t.Context()), f.scope.Workspace, filter)
		if err != nil {
			t.Fatal(err)
		}
		for _, overview := range page.Sessions {
			if last.ID != uuid.Nil && overview.LastAt.After(last.LastAt) {
				t.Errorf("%v comes after %v", overview.LastAt, last.LastAt)
			}
			last = overview
			got = append(got, overview.ID)
		}
		if page.Next == "" {
			break
		}
		filter.Cursor = page.Next
	}
	seen := map[uuid.UUID]bool{}
	for _, id := range got {
		seen[id] = true
	}
	if len(got) != len(want) || len(seen) != len(want) {
		t.Errorf("the pages hold %d sessions, %d of them different, want %d", len(got), len(seen), len(want))
	}
}

func TestAForeignCursorIsRefused(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, cursor := range []string{"x", "!!!", "AAAA"} {
		if _, err := f.store.Browser().Sessions(tenants.OwnWork(t.Context()), f.scope.Workspace, session.Filter{Cursor: cursor}); !errors.Is(err, session.ErrCursor) {
			t.Errorf("cursor %q: %v, want session.ErrCursor", cursor, err)
		}
	}
}

func TestSessionsAreFiltered(t *testing.T) {
	t.Parallel()
	f := setup(t)
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	parser := f.addSession(t, noon, func(s *session.Update) { s.Title, s.Name = "Fix the 100% broken parser", "run_7" })
	codex := f.addSession(t, noon.Add(time.Hour), func(s *session.Update) { s.Title, s.Client, s.Model = "Write docs", "codex", "gpt-5" })
	for name, test := range map[string]struct {
		filter session.Filter
		want   []uuid.UUID
	}{
		"all":                       {session.Filter{}, []uuid.UUID{codex.session, parser.session}},
		"title":                     {session.Filter{Query: "PARSER"}, []uuid.UUID{parser.session}},
		"percent is no wildcard":    {session.Filter{Query: "100% b"}, []uuid.UUID{parser.session}},
		"underscore is no wildcard": {session.Filter{Query: "run_"}, []uuid.UUID{parser.session}},
		"nothing matches":           {session.Filter{Query: "r%n"}, nil},
		"odd bytes":                 {session.Filter{Query: "\x00\xff\\"}, nil},
		"client in the search":      {session.Filter{Query: "code"}, []uuid.UUID{codex.session, parser.session}},
		"model in the search":       {session.Filter{Query: "gpt"}, []uuid.UUID{codex.session}},
		"id":                        {session.Filter{Query: parser.session.String()[:13]}, []uuid.UUID{parser.session}},
		"client":                    {session.Filter{Client: "codex"}, []uuid.UUID{codex.session}},
		"ids":                       {session.Filter{IDs: []uuid.UUID{parser.session, uuid.New()}}, []uuid.UUID{parser.session}},
		"ids and more":              {session.Filter{IDs: []uuid.UUID{parser.session}, Query: "docs"}, nil},
		"model":                     {session.Filter{Model: "claude-sonnet-4-5"}, []uuid.UUID{parser.session}},
		"from":                      {session.Filter{From: noon.Add(time.Minute)}, []uuid.UUID{codex.session}},
		"to":                        {session.Filter{To: noon.Add(time.Minute)}, []uuid.UUID{parser.session}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, err := f.store.Browser().Sessions(tenants.OwnWork(t.Context()), f.scope.Workspace, test.filter)
			if err != nil {
				t.Fatal(err)
			}
			var got []uuid.UUID
			for _, overview := range page.Sessions {
				got = append(got, overview.ID)
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestASessionShowsItsLanesMostRecentFirst(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(6)
	c.commit(t, c.projection(1, 4))
	fork := &client{f: f, session: c.session, lane: uuid.New(), messages: c.messages[:5:5], chain: c.chain[:6:6]}
	seen := fork.update()
	seen.Parent, seen.ForkAt, seen.Inherited, seen.At = c.lane, 5, 1, time.Now().Add(time.Second)
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	detail, err := f.store.Browser().Session(tenants.OwnWork(t.Context()), f.scope.Workspace, c.session)
	if err != nil || len(detail.Lanes) != 2 {
		t.Fatalf("%d lanes, %v", len(detail.Lanes), err)
	}
	first, second := detail.Lanes[0], detail.Lanes[1]
	if first.ID != fork.lane || first.Parent != c.lane || first.ForkAt != 5 || first.Archived != 5 || first.Epochs != 0 {
		t.Errorf("the first lane is %+v", first)
	}
	if second.ID != c.lane || second.Parent != uuid.Nil || second.Position != 6 || second.Archived != 6 || second.Epochs != 1 {
		t.Errorf("the second lane is %+v", second)
	}
	if detail.Sums.Epochs != 1 || detail.Format != "anthropic" || detail.APIKey != f.scope.APIKey || detail.Name != "run-1" {
		t.Errorf("the session is %+v", detail.Overview)
	}
	if newest, err := f.store.Browser().Projection(t.Context(), f.scope.Workspace, fork.lane); err != nil || newest.Number != 1 {
		t.Errorf("the fork's projection is %d, %v", newest.Number, err)
	}
}

func TestLaneThatWasNeverCompactedHasNoProjection(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.addSession(t, time.Now(), nil)
	if _, err := f.store.Browser().Projection(t.Context(), f.scope.Workspace, c.lane); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("got %v, want session.ErrNotFound", err)
	}
	if _, err := f.store.Browser().Session(tenants.OwnWork(t.Context()), f.scope.Workspace, uuid.New()); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an unknown session: %v, want session.ErrNotFound", err)
	}
}

// E11
func TestADeletedSessionLeavesOnlyWhatOthersHold(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c, other := f.newClient(), f.newClient()
	c.say("shared by both", "only here", "another one's answer", "only here as well")
	other.say("shared by both")
	c.commit(t, c.projection(1, 2))
	other.record(t)
	answer := f.addAnswer(t, c.session, "an answer nobody sent back")
	held := f.addAnswer(t, other.session, "another one's answer")

	if err := f.store.Browser().Delete(t.Context(), f.scope.Workspace, c.session); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{
		"sessions": 1, "lanes": 1, "lane_heads": 1, "epochs": 0, "archive_entries": 1, "archive_objects": 2, "exchanges": 2,
	} {
		if got := f.count(t, table); got != want {
			t.Errorf("%d rows are left in %s, want %d", got, table, want)
		}
	}
	if _, err := f.archive.Object(t.Context(), f.scope.Workspace, answer); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("the session's answer: %v, want archive.ErrNotFound", err)
	}
	if raw, err := f.archive.Object(t.Context(), f.scope.Workspace, held); err != nil || string(raw) != "another one's answer" {
		t.Errorf("the other session's answer: %q, %v", raw, err)
	}
	if got, err := f.archive.Original(t.Context(), f.scope.Workspace, other.lane, 0); err != nil || string(got.Raw) != "shared by both" {
		t.Errorf("the other session's message: %q, %v", got.Raw, err)
	}
	if err := f.store.Browser().Delete(t.Context(), f.scope.Workspace, c.session); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("deleting again: %v, want session.ErrNotFound", err)
	}

	// A client that goes on starts again, with all of its messages.
	c.recorded = 0
	c.record(t)
	if found := c.find(t); found.Archived != 4 || len(found.Projections) != 0 {
		t.Errorf("the client that goes on finds %+v", found)
	}
}

// addAnswer stores an answer and the exchange it belongs to.
func (f *fixture) addAnswer(t *testing.T, id uuid.UUID, text string) [sha256.Size]byte {
	t.Helper()
	hash := sha256.Sum256([]byte(text))
	err := f.runner.InTenant(t.Context(), f.scope.Workspace, func(tx *gorm.DB) error {
		if err := f.archive.PutObjects(tx, f.scope.Workspace, nil, []byte(text)); err != nil {
			return err
		}
		return tx.Exec(`INSERT INTO exchanges (workspace_id, id, at, session_id, api_key_id, provider, endpoint, model, client, stream,
			status, position, compression, tokens_before, tokens_after, window_tokens, level_0, level_1, level_2, level_3,
			input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_microusd, net_microusd,
			overhead_us, ttfb_us, duration_us, attempts, answer)
			VALUES (?, ?, now(), ?, ?, 'anthropic', '/v1/messages', 'm', 'c', false, 200, 1, 'none', 1, 1, 1, 1, 0, 0, 0,
			1, 0, 0, 1, 0, 0, 0, 0, 0, 1, ?)`, f.scope.Workspace, uuid.New(), id, f.scope.APIKey, hash[:]).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestAnnouncedSessionIsListedAsItsRecordWillName(t *testing.T) {
	t.Parallel()
	f := setup(t)
	seen := f.conversationOf(1).update()
	if err := f.store.Announce(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	page, err := f.store.Browser().Sessions(tenants.OwnWork(t.Context()), f.scope.Workspace, session.Filter{Limit: 2})
	if err != nil || len(page.Sessions) != 1 {
		t.Fatalf("%+v: %v", page, err)
	}
	got := page.Sessions[0]
	if got.ID != seen.Session || got.Title != seen.Title || got.Client != seen.Client || got.Model != seen.Model || got.Sums.Exchanges != 0 {
		t.Errorf("before its first request is recorded it is %+v", got)
	}
}
