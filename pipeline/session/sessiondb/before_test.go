package sessiondb_test

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// E8, S5: the history that a session's client left is the one of its main
// conversation that was used last, and no other workspace's.
func TestLaneThatWasLeftIsTheOneUsedLast(t *testing.T) {
	t.Parallel()
	f := setup(t)
	in, at := uuid.New(), time.Now()
	record := func(kind session.Kind, minutes, position int) uuid.UUID {
		lane := uuid.New()
		update := session.Update{
			Scope: f.scope, Session: in, Lane: lane, Kind: kind, Naming: session.Naming{Name: "run", Source: "header"},
			At:       at.Add(time.Duration(minutes) * time.Minute),
			Messages: session.Messages{Position: position, Head: conversation.Hash(append(lane[:], lane[:]...))},
		}
		if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{update}); err != nil {
			t.Fatal(err)
		}
		return lane
	}
	record(session.Main, 1, 3)
	left := record(session.Main, 2, 7)
	record(session.Side, 3, 8)
	record(session.Subagent, 4, 9)
	now := record(session.Main, 5, 1)

	got, messages, err := f.store.Before(t.Context(), f.scope.Workspace, in, now)
	if err != nil || got != left || messages != 7 {
		t.Errorf("left %s with %d messages (%v), want %s with 7", got, messages, err, left)
	}
	if _, _, err := f.store.Before(t.Context(), f.scope.Workspace, uuid.New(), now); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("another session: %v", err)
	}
	if _, _, err := f.store.Before(t.Context(), addWorkspace(t, f.runner), in, now); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("another workspace: %v", err)
	}
}

// E8, S5: where a client names no session, the history that it left is the one that
// holds what it kept, of its own key and workspace.
func TestLaneThatHoldsWhatAClientKeptIsFound(t *testing.T) {
	t.Parallel()
	f := setup(t)
	older, newer := f.newClient(), f.newClient()
	older.say("question", "short answer")
	newer.say("question", "short answer", "another question", "long answer")
	older.record(t)
	newer.record(t)
	kept := []conversation.Hash{sha256.Sum256(newer.messages[1]), sha256.Sum256(newer.messages[3]), sha256.Sum256([]byte("new"))}

	held, err := f.store.Holding(t.Context(), f.scope, uuid.New(), kept)
	if err != nil || held.Lane != newer.lane || held.Messages != 4 || held.Tokens != 10 {
		t.Errorf("%+v (%v), want lane %s with 4 messages", held, err, newer.lane)
	}
	elsewhere, another, upstream, user := f.scope, f.scope, f.scope, f.scope
	user.EndUser = "alice"
	elsewhere.Workspace, another.APIKey, upstream.Upstream = addWorkspace(t, f.runner), uuid.New(), "https://llm.example.com"
	for name, scope := range map[string]session.Scope{"another workspace": elsewhere, "another key": another, "another upstream": upstream, "another end user": user} {
		if found, err := f.store.Holding(t.Context(), scope, uuid.New(), kept); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	if found, err := f.store.Holding(t.Context(), f.scope, newer.lane, kept); err != nil || found.Lane != older.lane {
		t.Errorf("beside the lane itself: %+v, %v", found, err)
	}
}
