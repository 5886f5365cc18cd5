package sessiondb_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
)

// C1, C6
func TestProjectionsAreTheSameBytesAfterARestart(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(10)
	first, second := c.projection(1, 4), c.projection(2, 8)
	second.Parts = append(second.Parts, session.Part{From: 8, To: 9, Level: 3, Raw: json.RawMessage{}})
	c.commit(t, first)
	c.commit(t, second)

	found := c.find(t)
	if len(found.Projections) != 2 {
		t.Fatalf("%d projections, want 2", len(found.Projections))
	}
	for i, want := range []session.Projection{first, second} {
		got := found.Projections[i]
		if !got.At.Equal(want.At) {
			t.Errorf("projection %d was made at %v, want %v", i+1, got.At, want.At)
		}
		got.At = want.At
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if newest, err := f.store.Browser().Projection(t.Context(), f.scope.Workspace, c.lane); err != nil || newest.Number != 2 {
		t.Errorf("the newest is %d, %v", newest.Number, err)
	}
}

func TestFindReturnsTheLaneThatWentFurthest(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(3)
	c.record(t)
	c.say("four", "five")
	c.record(t)
	c.say("six", "seven")

	found := c.find(t)
	want := session.Found{Session: c.session, Lane: c.lane, Naming: session.Naming{Name: "run-1", Source: "header"}, Kind: session.Main, Extent: session.Extent{Match: 5, Tip: 5, Archived: 5}}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("got %+v, want %+v", found, want)
	}
}

func TestFindReachesHeadsFarBack(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(2)
	c.record(t)
	for i := range 100 {
		c.say(fmt.Sprint("and ", i))
	}
	if found := c.find(t); found.Match != 2 || found.Lane != c.lane {
		t.Errorf("found %+v", found)
	}
}

func TestFindFindsNothingForAnotherHistory(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.conversationOf(3).record(t)
	for _, heads := range [][]conversation.Hash{nil, f.conversationOf(3).chain[1:], f.conversationOf(200).chain[1:]} {
		if _, err := f.store.Find(t.Context(), f.scope.Workspace, heads); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%d heads: %v, want session.ErrNotFound", len(heads), err)
		}
	}
}

// E9, S2
func TestAnotherWorkspaceFindsNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(4)
	c.commit(t, c.projection(1, 2))
	other := addWorkspace(t, f.runner)

	if _, err := f.store.Find(t.Context(), other, c.chain[1:]); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("find: %v, want session.ErrNotFound", err)
	}
	if _, err := f.store.Browser().Session(tenants.OwnWork(t.Context()), other, c.session); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("session: %v, want session.ErrNotFound", err)
	}
	if _, err := f.store.Browser().Projection(t.Context(), other, c.lane); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("projection: %v, want session.ErrNotFound", err)
	}
	if epochs, err := f.store.Browser().Epochs(t.Context(), other, c.lane); err != nil || len(epochs) != 0 {
		t.Errorf("epochs: %d, %v", len(epochs), err)
	}
	if page, err := f.store.Browser().Sessions(tenants.OwnWork(t.Context()), other, session.Filter{}); err != nil || len(page.Sessions) != 0 {
		t.Errorf("sessions: %d, %v", len(page.Sessions), err)
	}
	if err := f.store.Browser().Delete(t.Context(), other, c.session); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("delete: %v, want session.ErrNotFound", err)
	}
	if found := c.find(t); found.Archived != 4 || len(found.Projections) != 1 {
		t.Errorf("the owner finds %+v", found)
	}
}

func TestRecordingAgainStoresNothingTwice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(5)
	seen := c.update()
	for range 3 {
		if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen, seen}); err != nil {
			t.Fatal(err)
		}
	}
	for table, want := range map[string]int{"sessions": 1, "lanes": 1, "lane_heads": 1, "archive_entries": 5, "archive_objects": 5} {
		if got := f.count(t, table); got != want {
			t.Errorf("%d rows in %s, want %d", got, table, want)
		}
	}
	detail, err := f.store.Browser().Session(tenants.OwnWork(t.Context()), f.scope.Workspace, c.session)
	if err != nil || detail.Sums.Exchanges != 6 || detail.Sums.TokensBefore != 600 || detail.Sums.TokensAfter != 360 || detail.Sums.NetMicroUSD != -42 || detail.Sums.Reach != 6 || detail.Sums.ReachBefore != 600 || detail.Sums.ReachAfter != 360 {
		t.Errorf("counts are %+v, %v", detail.Overview, err)
	}
}

func TestABatchIsStoredInOrder(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c, other := f.conversationOf(2), f.conversationOf(1)
	batch := []session.Update{c.update(), other.update()}
	c.say("three", "four")
	batch = append(batch, c.update())
	batch[0].Title, batch[2].Title = "", "the second exchange had the first title"
	batch[2].Model = "claude-opus-4-5"
	if err := f.store.Record(t.Context(), f.scope.Workspace, batch); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Record(t.Context(), f.scope.Workspace, nil); err != nil {
		t.Errorf("an empty batch: %v", err)
	}
	detail, err := f.store.Browser().Session(tenants.OwnWork(t.Context()), f.scope.Workspace, c.session)
	if err != nil {
		t.Fatal(err)
	}
	if detail.Sums.Exchanges != 2 || detail.Model != "claude-opus-4-5" || !strings.HasPrefix(detail.Title, "the second") {
		t.Errorf("session is %+v", detail.Overview)
	}
	if len(detail.Lanes) != 1 || detail.Lanes[0].Position != 4 || detail.Lanes[0].Archived != 4 {
		t.Errorf("lanes are %+v", detail.Lanes)
	}
	if got := f.count(t, "lane_heads"); got != 3 {
		t.Errorf("%d heads, want 3", got)
	}
}

// E2
func TestEveryRecordedOriginalIsRestored(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.newClient()
	c.say("{}", "\x00\xff\xfe", `{"role":"user","content":[{"type":"image","data":"`+strings.Repeat("iVBORw0KGgo=", 20_000)+`"}]}`,
		"{ \"n\": 1.0,\t\"n\": \"\\u00e9é 漢字 🙂\" }")
	c.record(t)
	for range 100 { // the client sends all of it again, and a process that has just started records it
		c.recorded = 0
		c.record(t)
	}
	for i, want := range c.messages {
		got, err := f.archive.Original(t.Context(), f.scope.Workspace, c.lane, i)
		if err != nil || !bytes.Equal(got.Raw, want) || got.Hash != sha256.Sum256(want) {
			t.Errorf("message %d: %d bytes, %v", i, len(got.Raw), err)
		}
	}
	if got := f.count(t, "archive_objects"); got != len(c.messages) {
		t.Errorf("%d objects, want %d", got, len(c.messages))
	}
}

func TestArchivedEndsAtTheFirstGap(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(8)
	seen := c.update()
	seen.Messages.Entries = append(append([]archive.Entry{}, seen.Messages.Entries[:3]...), seen.Messages.Entries[5:]...)
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	if found := c.find(t); found.Archived != 3 {
		t.Errorf("archived %d, want 3", found.Archived)
	}
}

// C5
func TestAForkKeepsTheProjectionsItTookOver(t *testing.T) {
	t.Parallel()
	f := setup(t)
	parent := f.conversationOf(12)
	parent.commit(t, parent.projection(1, 4))
	parent.commit(t, parent.projection(2, 6))

	fork := &client{f: f, session: parent.session, lane: uuid.New(), messages: parent.messages[:7:7], chain: parent.chain[:8:8]}
	fork.say("another way")
	seen := fork.update()
	seen.Parent, seen.ForkAt, seen.Inherited = parent.lane, 7, 2
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	// The parent goes on; its next epoch is not the fork's.
	parent.commit(t, parent.projection(3, 7))
	if got := numbers(fork.find(t).Projections); !reflect.DeepEqual(got, []int{1, 2}) {
		t.Errorf("the fork has the projections %v, want 1 and 2", got)
	}

	// Its own go on from the number it took over, and a fork of it has both.
	fork.say("and on")
	fork.commit(t, fork.projection(3, 8))
	again := &client{f: f, session: parent.session, lane: uuid.New(), messages: fork.messages[:8:8], chain: fork.chain[:9:9]}
	again.say("a third way")
	seen = again.update()
	seen.Parent, seen.ForkAt, seen.Inherited = fork.lane, 8, 3
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	found := again.find(t)
	if got := numbers(found.Projections); !reflect.DeepEqual(got, []int{1, 2, 3}) || found.Projections[2].Covers != 8 {
		t.Errorf("the fork's fork has the projections %v", got)
	}
	epochs, err := f.store.Browser().Epochs(t.Context(), f.scope.Workspace, again.lane)
	if err == nil && len(epochs) == 3 && !reflect.DeepEqual(epochs[0].Certificate, parent.projection(1, 2).Certificate) {
		t.Errorf("the certificate is %+v", epochs[0].Certificate)
	}
	if err != nil || len(epochs) != 3 || epochs[0].Lane != parent.lane || epochs[2].Lane != fork.lane || epochs[2].Reason != "target" {
		t.Errorf("epochs are %+v, %v", epochs, err)
	}
}

// What a fork shares with its parent is written with the parent only.
func TestAForkReadsWhatItSharesFromItsParent(t *testing.T) {
	t.Parallel()
	f := setup(t)
	parent := f.conversationOf(6)
	parent.record(t)

	fork := &client{f: f, session: parent.session, lane: uuid.New(), messages: parent.messages[:4:4], chain: parent.chain[:5:5], recorded: 4}
	fork.say("another way", "and on")
	seen := fork.update()
	seen.Parent, seen.ForkAt = parent.lane, 4
	again := &client{f: f, session: parent.session, lane: uuid.New(), messages: fork.messages[:5:5], chain: fork.chain[:6:6], recorded: 5}
	again.say("a third way")
	seenAgain := again.update()
	seenAgain.Parent, seenAgain.ForkAt = fork.lane, 5
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen, seenAgain}); err != nil {
		t.Fatal(err)
	}
	if got := f.count(t, "archive_entries"); got != 6+2+1 {
		t.Errorf("%d entries are stored, want 9", got)
	}
	for _, c := range []*client{parent, fork, again} {
		originals, err := f.archive.Originals(t.Context(), f.scope.Workspace, c.lane, 0, 100)
		if err != nil || len(originals) != 6 {
			t.Fatalf("%d originals, %v; want 6", len(originals), err)
		}
		for i, original := range originals {
			if string(original.Raw) != string(c.messages[i]) || original.Index != i {
				t.Errorf("message %d is %q, want %q", original.Index, original.Raw, c.messages[i])
			}
		}
		if found := c.find(t); found.Lane != c.lane || found.Archived != 6 {
			t.Errorf("found lane %s with %d archived, want %s with 6", found.Lane, found.Archived, c.lane)
		}
	}

	if err := f.store.Browser().Delete(t.Context(), f.scope.Workspace, parent.session); err != nil {
		t.Fatal(err)
	}
	if got := f.count(t, "archive_objects"); got != 0 {
		t.Errorf("%d messages are left of the deleted session", got)
	}
}

// A fork whose parent was never stored does not count what it lacks.
func TestAForkWithoutItsParentHasAGap(t *testing.T) {
	t.Parallel()
	f := setup(t)
	fork := f.conversationOf(6)
	fork.recorded = 4
	seen := fork.update()
	seen.Parent, seen.ForkAt = uuid.New(), 4
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	if found := fork.find(t); found.Archived != 0 {
		t.Errorf("%d messages count as archived, want none", found.Archived)
	}
	fork.recorded = 0 // so they are handed over again
	fork.record(t)
	if found := fork.find(t); found.Archived != 6 {
		t.Errorf("%d messages count as archived, want 6", found.Archived)
	}
}

func numbers(projections []session.Projection) []int {
	var list []int
	for _, projection := range projections {
		list = append(list, projection.Number)
	}
	return list
}

func TestFindLooksHeadsUpInTheirIndex(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	const insert = `INSERT INTO lane_heads (workspace_id, head, lane_id, position, seen_at)
		SELECT $1, sha256(convert_to($3 || n::text, 'UTF8')), $2, n, now() FROM generate_series(1, 20000) n`
	f := setup(t)
	c := f.conversationOf(1)
	c.record(t)
	heads := make([][]byte, 1_000)
	for i := range heads {
		sum := sha256.Sum256(fmt.Append(nil, i))
		heads[i] = sum[:]
	}
	// A workspace that has come since the database last looked at the table.
	owner, fresh := f.db.Owner(t), *f
	fresh.scope.Workspace = addWorkspace(t, f.runner)
	other := fresh.conversationOf(1)
	other.record(t)
	for _, filled := range []struct {
		statement string
		arguments []any
	}{
		{insert, []any{f.scope.Workspace, c.lane, "a"}},
		{"DELETE FROM lane_heads WHERE workspace_id = $1", []any{fresh.scope.Workspace}},
		{"ANALYZE lane_heads", nil},
		{insert, []any{fresh.scope.Workspace, other.lane, "b"}},
	} {
		if _, err := owner.Exec(t.Context(), filled.statement, filled.arguments...); err != nil {
			t.Fatal(err)
		}
	}
	for _, workspace := range []tenants.WorkspaceID{f.scope.Workspace, fresh.scope.Workspace} {
		plan := f.explain(t, workspace, sessiondb.StatementHead, workspace, heads)
		if !strings.Contains(plan, "(head = wanted.head)") || !strings.Contains(plan, "Index Scan using lane_heads_pkey") ||
			strings.Contains(plan, "Filter: (head") || strings.Contains(plan, "Sort") {
			t.Errorf("heads are not looked up one by one in their index:\n%s", plan)
		}
	}
}

func (f *fixture) explain(t *testing.T, workspace tenants.WorkspaceID, statement string, arguments ...any) string {
	t.Helper()
	var plan strings.Builder
	err := f.runner.InTenant(t.Context(), workspace, func(tx *gorm.DB) error {
		rows, err := tx.Statement.ConnPool.QueryContext(t.Context(), "EXPLAIN "+statement, arguments...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				return err
			}
			plan.WriteString(line + "\n")
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(plan.String(), "exchanges_first", "exchanges") // the only partition
}

func TestRecordersOfTheSameSessionsDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var batch []session.Update
	for range 20 {
		batch = append(batch, f.conversationOf(5).update())
	}
	var recorders sync.WaitGroup
	for recorder := range 8 {
		mixed := append(append([]session.Update{}, batch[recorder:]...), batch[:recorder]...)
		recorders.Go(func() {
			for range 5 {
				if err := f.store.Record(context.WithoutCancel(t.Context()), f.scope.Workspace, mixed); err != nil {
					t.Error(err)
				}
			}
		})
	}
	recorders.Wait()
	page, err := f.store.Browser().Sessions(tenants.OwnWork(t.Context()), f.scope.Workspace, session.Filter{})
	if err != nil || len(page.Sessions) != 20 {
		t.Fatalf("%d sessions, %v", len(page.Sessions), err)
	}
	for _, overview := range page.Sessions {
		if overview.Sums.Exchanges != 40 {
			t.Errorf("%d exchanges, want 40", overview.Sums.Exchanges)
		}
	}
}

func TestTextThatPostgresRefusesIsStored(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(1)
	seen := c.update()
	seen.Title, seen.Name, seen.Model, seen.At = "a\x00b\xff", "\xf0\x28", "m\x00", time.Now()
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	detail, err := f.store.Browser().Session(tenants.OwnWork(t.Context()), f.scope.Workspace, c.session)
	if err != nil || detail.Title != "ab\uFFFD" || detail.Model != "m" {
		t.Errorf("got %+v, %v", detail.Overview, err)
	}
}
