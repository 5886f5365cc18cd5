package sessiondb_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/archive/blob"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants"
)

// dump returns all rows of a workspace, past row-level security.
func (f *fixture) dump(t *testing.T, workspace tenants.WorkspaceID) string {
	t.Helper()
	owner := f.db.Owner(t)
	var all bytes.Buffer
	for _, table := range []string{
		"sessions", "session_stars", "session_comments", "session_scores", "session_labels", "lanes", "lane_heads", "lane_pins", "lane_inserts", "epochs", "summaries", "cached_answers", "archive_objects", "archive_entries", "exchanges",
	} {
		var rows string
		err := owner.QueryRow(t.Context(), "SELECT coalesce(string_agg(r::text, E'\n'), '') FROM "+table+" r WHERE workspace_id = $1", workspace).Scan(&rows)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(rows + "\n")
	}
	return all.String()
}

// recordExchange records what the client's last request cost, with its answer.
func (c *client) recordExchange(t *testing.T, answer string) {
	t.Helper()
	seen := c.update()
	seen.Messages.Answer = []byte(answer)
	if err := c.f.store.Record(t.Context(), c.f.scope.Workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(seen.Messages.Answer)
	err := c.f.db.DB.Exchanges.RecordExchanges(t.Context(), c.f.scope.Workspace, []tenants.Exchange{{
		ID: uuid.Must(uuid.NewV7()), Workspace: c.f.scope.Workspace, At: time.Now(),
		Request: tenants.ExchangeRequest{
			Session: c.session, Lane: c.lane, APIKey: c.f.scope.APIKey, Endpoint: "/v1/messages",
		},
		Answer: tenants.ExchangeAnswer{Provider: tenants.ProviderAnthropic, Status: 200, Answer: hash[:]},
		Cost:   tenants.ExchangeCost{CostMicroUSD: 77},
		Prompt: tenants.ExchangePrompt{Report: []byte(`{"compression":"none"}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// S31, E11
func TestDeletedSessionLeavesNoRowBlobOrHash(t *testing.T) {
	t.Parallel()
	f := setup(t)
	gone, staying := f.newClient(), f.newClient()
	gone.say("shared by both", "only in the one that goes", "and this")
	staying.say("shared by both", "only in the one that stays")
	gone.recordExchange(t, "an answer that goes")
	gone.recordExchange(t, "an answer of both")
	staying.recordExchange(t, "an answer of both")
	gone.commit(t, gone.projection(1, 2))
	if err := f.store.Browser().Pin(t.Context(), f.scope.Workspace, session.Pin{Lane: gone.lane, Message: 1, By: uuid.New()}); err != nil {
		t.Fatal(err)
	}
	staying.recordExchange(t, "an answer that stays")
	if err := f.store.Browser().Delete(t.Context(), f.scope.Workspace, gone.session); err != nil {
		t.Fatal(err)
	}

	left := f.dump(t, f.scope.Workspace)
	traces := []string{gone.session.String(), gone.lane.String()}
	for _, text := range []string{"only in the one that goes", "and this", "an answer that goes"} {
		traces = append(traces, fmt.Sprintf("%x", sha256.Sum256([]byte(text))))
	}
	for _, head := range gone.chain[1:] {
		traces = append(traces, fmt.Sprintf("%x", head))
	}
	for _, trace := range traces {
		if strings.Contains(left, trace) {
			t.Errorf("the database still holds %s:\n%s", trace, left)
		}
	}
	for _, text := range []string{"shared by both", "only in the one that stays", "an answer that stays", "an answer of both"} {
		if !strings.Contains(left, fmt.Sprintf("%x", sha256.Sum256([]byte(text)))) {
			t.Errorf("%q of the other session is gone", text)
		}
	}
	if got := f.count(t, "exchanges"); got != 4 {
		t.Errorf("%d exchanges are left, want all with their costs", got)
	}
}

// keep has a workspace keep its sessions for some days.
func (f *fixture) keep(t *testing.T, workspace tenants.WorkspaceID, days int) {
	t.Helper()
	if err := f.db.DB.Data.SetRetention(t.Context(), workspace, tenants.Retention{Days: days}); err != nil {
		t.Fatal(err)
	}
}

// S31: what has expired is deleted, and nothing else. S28: once more, nothing is left to do.
func TestASweepDeletesWhatHasExpiredAndNothingElse(t *testing.T) {
	t.Parallel()
	f := setup(t)
	day, now := 24*time.Hour, time.Now().Truncate(time.Microsecond)
	used := map[uuid.UUID]time.Duration{}
	for _, ago := range []time.Duration{0, 29 * day, 30 * day, 31 * day, 400 * day} {
		c := f.conversationOf(3)
		seen := c.update()
		seen.At = now.Add(-ago)
		if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
			t.Fatal(err)
		}
		used[c.session] = ago
	}
	if deleted, err := f.store.Cleaner().Sweep(t.Context(), now, 100); err != nil || deleted != 0 {
		t.Fatalf("without a retention: %d deleted, %v", deleted, err)
	}
	f.keep(t, f.scope.Workspace, 30)
	f.keep(t, addWorkspace(t, f.runner), 1) // one without sessions
	for _, want := range []int{1, 1, 0} {
		if deleted, err := f.store.Cleaner().Sweep(t.Context(), now, 1); err != nil || deleted != want {
			t.Fatalf("deleted %d, %v, want %d", deleted, err, want)
		}
	}
	for id, ago := range used {
		if _, err := f.store.Browser().Session(tenants.OwnWork(t.Context()), f.scope.Workspace, id); (err == nil) != (ago <= 30*day) {
			t.Errorf("used %v ago: %v", ago, err)
		}
	}
	if objects := f.count(t, "archive_objects"); objects != 9 {
		t.Errorf("%d messages are left, want those of three sessions", objects)
	}
}

// brokenFor is a database that fails for one workspace.
type brokenFor struct {
	batchdb.TxRunner

	workspace tenants.WorkspaceID
}

var errBroken = errors.New("it is broken")

func (b brokenFor) InTenant(ctx context.Context, tenant tenants.Tenant, work func(tx *gorm.DB) error) error {
	if tenant == tenants.Tenant(b.workspace) {
		return errBroken
	}
	return b.TxRunner.InTenant(ctx, tenant, work)
}

// S31: a workspace of which nothing can be deleted, and one of which much can, keep no other from forgetting.
func TestASweepOfOneWorkspaceStopsNoOther(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const many = 210 // more than a turn
	expired := func(in tenants.WorkspaceID, count int) {
		f.keep(t, in, 1)
		for range count {
			c := f.conversationOf(1)
			seen := c.update()
			seen.Scope.Workspace = in
			seen.At = time.Now().AddDate(0, 0, -9)
			if err := f.store.Record(t.Context(), in, []session.Update{seen}); err != nil {
				t.Fatal(err)
			}
		}
	}
	busy, quiet := addWorkspace(t, f.runner), addWorkspace(t, f.runner) // ids grow with time
	expired(f.scope.Workspace, 1)
	expired(busy, many)
	expired(quiet, 1)

	broken := sessiondb.New(brokenFor{f.runner, f.scope.Workspace}, archivetest.Keys())
	deleted, err := broken.Cleaner().Sweep(t.Context(), time.Now(), many)
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), f.scope.Workspace.String()) {
		t.Errorf("the sweep ends with %v, want the workspace and %v", err, errBroken)
	}
	if deleted != many {
		t.Errorf("%d sessions were deleted, want as many as were asked for, %d", deleted, many)
	}
	var left int
	if err := f.runner.InTenant(t.Context(), quiet, func(tx *gorm.DB) error {
		return tx.Raw("SELECT count(*) FROM sessions WHERE workspace_id = ?", quiet).Scan(&left).Error
	}); err != nil || left != 0 {
		t.Errorf("the last workspace has %d expired sessions left, %v", left, err)
	}
}

// counted is a database that counts the transactions of tenants.
type counted struct {
	batchdb.TxRunner

	transactions int
}

func (c *counted) InTenant(ctx context.Context, tenant tenants.Tenant, work func(tx *gorm.DB) error) error {
	c.transactions++
	return c.TxRunner.InTenant(ctx, tenant, work)
}

// One transaction deletes many small sessions, and few that have many exchanges.
func TestASweepDeletesManySessionsInATransaction(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ sessions, exchanges, deletions int }{{40, 3, 1}, {6, 2500, 3}, {3, 9000, 3}} {
		t.Run(fmt.Sprintf("%d with %d exchanges each", test.sessions, test.exchanges), func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			for range test.sessions {
				f.conversationOf(2).recordExchange(t, uuid.NewString())
			}
			if _, err := f.db.Owner(t).Exec(t.Context(), "UPDATE sessions SET exchanges = $1", test.exchanges); err != nil {
				t.Fatal(err)
			}
			f.keep(t, f.scope.Workspace, 1)
			counts := &counted{TxRunner: f.runner}
			deleted, err := sessiondb.New(counts, archivetest.Keys()).Cleaner().Sweep(t.Context(), time.Now().AddDate(0, 0, 2), 100)
			if err != nil || deleted != test.sessions {
				t.Fatalf("deleted %d, %v", deleted, err)
			}
			if want := test.deletions + 2; counts.transactions != want { // one forgets errors, one finds no more
				t.Errorf("%d transactions, want %d", counts.transactions, want)
			}
			if left := f.count(t, "archive_objects") + f.count(t, "lanes"); left != 0 {
				t.Errorf("%d messages and lanes are left", left)
			}
		})
	}
}

// S31: within 24 hours of its expiry nothing of a session is left, neither a row nor
// an object in the bucket; until then everything is. The clock goes hour by hour as
// the product's upkeep does.
func TestWhatHasExpiredIsGoneFromRowsAndBucketWithinADay(t *testing.T) {
	t.Parallel()
	f := setup(t)
	root := t.TempDir()
	bucket, err := blob.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	mover := archivedb.NewMover(f.runner, archivetest.Keys(), bucket)
	mover.Segments.Originals, mover.Segments.Wait, mover.Segments.Keep = 1, 0, 0 // kept for six hours by the clock of the database
	c := f.newClient()
	c.say("one", "two", "three")
	c.recordExchange(t, "an answer")
	used := time.Now() // make test-calendar runs it in a zone one of whose days has another length
	f.keep(t, f.scope.Workspace, 7)
	expires := used.Add(7 * 24 * time.Hour)
	for now := used; !now.After(expires.Add(24 * time.Hour)); now = now.Add(time.Hour) {
		if _, err := f.store.Cleaner().Sweep(t.Context(), now, 100); err != nil {
			t.Fatal(err)
		}
		if _, err := mover.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		objects, err := os.ReadDir(filepath.Join(root, f.scope.Workspace.String()))
		if err != nil {
			t.Fatal(err)
		}
		rows := f.count(t, "sessions") + f.count(t, "archive_objects") + f.count(t, "archive_entries")
		switch {
		case now.Before(expires) && (len(objects) != 4 || rows != 1+4+3):
			t.Fatalf("%v before it expires %d objects and %d rows are left", expires.Sub(now), len(objects), rows)
		case now.After(expires.Add(23*time.Hour)) && len(objects)+rows != 0:
			t.Fatalf("%v after it has expired %d objects and %d rows are left", now.Sub(expires), len(objects), rows)
		}
	}
}

// What providers said where they refused goes with its time, whether its exchange has a
// session or none; the figures stay.
func TestASweepForgetsWhatProvidersSaid(t *testing.T) {
	t.Parallel()
	f := setup(t)
	kept := f.scope
	record := func(age time.Duration) {
		err := f.db.DB.Exchanges.RecordExchanges(t.Context(), kept.Workspace, []tenants.Exchange{{
			ID: uuid.Must(uuid.NewV7()), Workspace: kept.Workspace, At: time.Now().Add(-age),
			Request: tenants.ExchangeRequest{APIKey: kept.APIKey},
			Answer:  tenants.ExchangeAnswer{Status: 529, ErrorText: []byte("sealed")},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	record(50 * time.Hour)
	record(time.Hour)
	f.keep(t, kept.Workspace, 2)
	if _, err := f.store.Cleaner().Sweep(t.Context(), time.Now(), 100); err != nil {
		t.Fatal(err)
	}
	var all, old, recent int
	err := f.db.Owner(t).QueryRow(t.Context(), `SELECT count(*), count(error_text) FILTER (WHERE at < now() - interval '2 days'),
		count(error_text) FILTER (WHERE at > now() - interval '2 days') FROM exchanges`).Scan(&all, &old, &recent)
	if err != nil || all != 2 || old != 0 || recent != 1 {
		t.Errorf("of %d exchanges %d old and %d recent errors are kept, %v", all, old, recent, err)
	}
}

// S28: several processes at once delete each session once.
func TestSweepsAtOnceDeleteEachSessionOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for range 12 {
		f.conversationOf(2).record(t)
	}
	f.keep(t, f.scope.Workspace, 1)
	var mu sync.Mutex
	var sweeps sync.WaitGroup
	total := 0
	for range 4 {
		sweeps.Go(func() {
			deleted, err := f.store.Cleaner().Sweep(context.WithoutCancel(t.Context()), time.Now().AddDate(0, 0, 2), 100)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			total += deleted
		})
	}
	sweeps.Wait()
	if left := f.count(t, "sessions"); total != 12 || left != 0 {
		t.Errorf("deleted %d, %d are left, want 12 and none", total, left)
	}
}

// C1, C6: sealed, a projection is replayed byte for byte after a restart.
func TestProjectionsAndSummariesAreSealed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(6)
	c.commit(t, c.projection(1, 4))
	attempt := session.SummaryAttempt{
		Session: c.session, Lane: c.lane, Form: "own", Model: "m", At: time.Now(),
		Summary: session.Summary{Covers: 4, Chain: c.chain[4], Text: "canary of a summary"},
	}
	if err := f.store.SaveSummary(t.Context(), f.scope.Workspace, attempt); err != nil {
		t.Fatal(err)
	}
	found, err := sessiondb.New(f.runner, archivetest.Keys()).Find(t.Context(), f.scope.Workspace, c.chain[1:])
	if err != nil || len(found.Projections) != 1 || len(found.Summaries) != 1 {
		t.Fatalf("found %+v, %v", found, err)
	}
	if got, want := found.Projections[0].Parts[1].Raw, c.projection(1, 4).Parts[1].Raw; !bytes.Equal(got, want) {
		t.Errorf("the projection is %q, want %q", got, want)
	}
	if got := found.Summaries[0].Text; got != "canary of a summary" {
		t.Errorf("the summary is %q", got)
	}
	var open int
	err = f.runner.InTenant(t.Context(), f.scope.Workspace, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT (SELECT count(*) FROM epochs WHERE get_byte(projection, 0) <> 1)
			+ (SELECT count(*) FROM summaries WHERE text <> '' OR sealed IS NULL)`).Scan(&open).Error
	})
	if err != nil || open != 0 {
		t.Errorf("%d lie open, %v", open, err)
	}
	if _, err := sessiondb.New(f.runner, archivetest.KeysOf("another installation")).Find(t.Context(), f.scope.Workspace, []conversation.Hash{c.chain[6]}); err == nil {
		t.Error("a projection opens with another key")
	}
}
