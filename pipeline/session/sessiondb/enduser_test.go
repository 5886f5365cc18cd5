package sessiondb_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/modules/semanticcache/semanticcachedb"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// speaking returns what a client adds on behalf of an end user.
func (c *client) speaking(user string) session.Update {
	update := c.update()
	if update.Scope.EndUser = session.EndUserID(c.f.scope.Workspace, user); user != "" {
		update.Scope.EndUserName = user
	}
	return update
}

// recordFor records a conversation of an end user, with its exchange.
func (f *fixture) recordFor(t *testing.T, user string, said ...string) (*client, tenants.Exchange) {
	t.Helper()
	c := f.newClient()
	c.say(said...)
	update := c.speaking(user)
	exchange := tenants.Exchange{
		ID: uuid.Must(uuid.NewV7()), Workspace: f.scope.Workspace, At: update.At,
		Request: tenants.ExchangeRequest{Session: c.session, Lane: c.lane, APIKey: f.scope.APIKey, EndUser: update.Scope.EndUser},
		Answer:  tenants.ExchangeAnswer{ErrorText: []byte("sealed")},
		Cost:    tenants.ExchangeCost{CostMicroUSD: 7},
	}
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{update}); err != nil {
		t.Fatal(err)
	}
	if err := f.db.DB.Exchanges.RecordExchanges(t.Context(), f.scope.Workspace, []tenants.Exchange{exchange}); err != nil {
		t.Fatal(err)
	}
	return c, exchange
}

// showEndUsers has the workspace keep the ids of its end users.
func (f *fixture) showEndUsers(t *testing.T, shown tenants.EndUserIDs) {
	t.Helper()
	settings, err := f.db.DB.Data.DataSettings(t.Context(), f.scope.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	settings.EndUsers = shown
	if err := f.db.DB.Data.SetDataSettings(t.Context(), f.scope.Workspace, settings); err != nil {
		t.Fatal(err)
	}
}

// erase erases the end user alice and returns what was deleted.
func (f *fixture) erase(t *testing.T) session.Erased {
	t.Helper()
	erased, err := session.EraseAll(t.Context(), f.store.Browser(), f.scope.Workspace, []string{session.EndUserID(f.scope.Workspace, "alice")}, time.Now(),
		f.db.DB.Together, func(tenants.Tenant, string, session.Erased) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return erased
}

// meet stores a pattern that an earlier version found in the clients' sessions and someone approved.
func (f *fixture) meet(t *testing.T, text string, clients ...*client) {
	t.Helper()
	id := uuid.New()
	_, err := f.db.Owner(t).Exec(t.Context(), `INSERT INTO patterns (workspace_id, id, kind, text, words, status, source, created_at, edited_at, last_seen)
		VALUES ($1, $2, 'directive', $3, $3, 'approved', 'mined', now(), now(), now())`, f.scope.Workspace, id, text)
	for _, c := range clients {
		if err == nil {
			_, err = f.db.Owner(t).Exec(t.Context(), `INSERT INTO pattern_evidence (workspace_id, pattern_id, lane_id, message, session_id, hash, at)
				VALUES ($1, $2, $3, 0, $4, 'h', now())`, f.scope.Workspace, id, c.lane, c.session)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// textsLeft returns all rows of the workspace, as text.
func (f *fixture) textsLeft(t *testing.T) string {
	t.Helper()
	var all []byte
	for _, table := range []string{"sessions", "lanes", "lane_heads", "session_words", "archive_entries", "archive_objects", "archive_unindexed", "exchanges", "exchange_tags", "patterns", "pattern_evidence", "cached_answers"} {
		rows, err := f.db.Owner(t).Query(t.Context(), "SELECT to_jsonb(t)::text FROM "+table+" t WHERE workspace_id = $1", f.scope.Workspace)
		if err != nil {
			t.Fatal(err)
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			all = append(append(append(all, table...), ' '), text...)
			all = append(all, '\n')
		}
	}
	return string(all)
}

// S52: nothing of an erased end user is left, and everything of the others is.
func TestErasingAnEndUserTakesTheirsAndNobodyElses(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.showEndUsers(t, tenants.EndUsersPlain)
	workspace := f.scope.Workspace
	answers := semanticcachedb.New(f.runner, archivetest.Keys())
	alice, request := f.recordFor(t, "alice", "words of alice", "said by both")
	second, _ := f.recordFor(t, "alice", "more words of alice")
	bob, _ := f.recordFor(t, "bob", "words of bob", "said by both")
	f.meet(t, "of alice alone", alice, second)
	f.meet(t, "of both", alice, bob)
	for i, user := range []string{"alice", "bob", ""} {
		entry := semanticcache.Entry{Key: semanticcache.Key{byte(i + 1)}, Answer: []byte("answer"), At: time.Now(), EndUser: session.EndUserID(workspace, user)}
		if err := answers.Put(t.Context(), workspace, entry, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}

	if erased, want := f.erase(t), (session.Erased{Sessions: 2, Requests: 2, Answers: 1, Patterns: 1}); erased != want {
		t.Errorf("erased are %+v, want %+v", erased, want)
	}
	left := f.textsLeft(t)
	for _, gone := range []string{session.EndUserID(workspace, "alice"), alice.session.String(), second.lane.String(), "of alice alone"} {
		if strings.Contains(left, gone) {
			t.Errorf("%s is left in\n%s", gone, left)
		}
	}
	if names, err := f.store.Browser().EndUserNames(t.Context(), workspace, []string{session.EndUserID(workspace, "alice")}); err != nil || len(names) > 0 {
		t.Errorf("alice is still named: %v, %v", names, err)
	}
	if got, err := f.archive.Original(t.Context(), workspace, bob.lane, 1); err != nil || string(got.Raw) != "said by both" {
		t.Errorf("bob's message: %q, %v", got.Raw, err)
	}
	if got := f.count(t, "patterns"); got != 1 {
		t.Errorf("%d patterns are left, want the one that bob's session shows, too", got)
	}
	if got := f.count(t, "cached_answers"); got != 2 {
		t.Errorf("%d answers are left, want bob's and the one of no end user", got)
	}
	figures, err := f.db.DB.Exchanges.Exchange(tenants.OwnWork(t.Context()), workspace, request.ID)
	if err != nil || figures.Cost.CostMicroUSD != 7 || figures.Request.EndUser != "" || figures.Request.Session != uuid.Nil || figures.Answer.ErrorText != nil {
		t.Errorf("the figures of alice's request: %+v, %v", figures, err)
	}
	if again := f.erase(t); !again.None() {
		t.Errorf("erased a second time are %+v", again)
	}
}

// S52: what was on its way when an end user was erased, on a disk or behind an answer, does not come back.
func TestRequestsFromBeforeAnErasureAreNotRecorded(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.showEndUsers(t, tenants.EndUsersPlain)
	workspace, before := f.scope.Workspace, time.Now().Add(-time.Minute)
	f.erase(t)
	late, other, later := f.newClient(), f.newClient(), f.newClient()
	late.say("late words of alice")
	other.say("words of bob")
	later.say("new words of alice")
	updates := []session.Update{late.speaking("alice"), other.speaking("bob"), later.speaking("alice")}
	updates[0].At, updates[1].At, updates[2].At = before, before, time.Now().Add(time.Minute)
	exchanges := make([]tenants.Exchange, len(updates))
	for i, update := range updates {
		exchanges[i] = tenants.Exchange{
			ID: uuid.Must(uuid.NewV7()), Workspace: workspace, At: update.At,
			Request: tenants.ExchangeRequest{Session: update.Session, Lane: update.Lane, EndUser: update.Scope.EndUser},
			Answer:  tenants.ExchangeAnswer{Answer: []byte("hash"), ErrorText: []byte("sealed")},
			Prompt:  tenants.ExchangePrompt{Report: []byte(`{}`)},
			Cost:    tenants.ExchangeCost{CostMicroUSD: 7},
		}
	}
	if err := f.store.Announce(t.Context(), workspace, updates[:1]); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Record(t.Context(), workspace, updates); err != nil {
		t.Fatal(err)
	}
	if err := f.db.DB.Exchanges.RecordExchanges(t.Context(), workspace, exchanges); err != nil {
		t.Fatal(err)
	}
	page, err := f.store.Browser().Sessions(tenants.OwnWork(t.Context()), workspace, session.Filter{})
	var recorded []uuid.UUID
	for _, one := range page.Sessions {
		recorded = append(recorded, one.ID)
	}
	if err != nil || len(recorded) != 2 || slices.Contains(recorded, late.session) {
		t.Errorf("recorded are %v, %v; the late one is %s", recorded, err, late.session)
	}
	if _, err := f.archive.Original(t.Context(), workspace, late.lane, 0); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("the late words: %v", err)
	}
	for i, isKept := range []bool{false, true, true} {
		got, err := f.db.DB.Exchanges.Exchange(tenants.OwnWork(t.Context()), workspace, exchanges[i].ID)
		has := got.Request.EndUser != "" && got.Request.Session != uuid.Nil && got.Answer.Answer != nil && got.Prompt.Report != nil && got.Answer.ErrorText != nil
		hasNone := got.Request.EndUser == "" && got.Request.Session == uuid.Nil && got.Request.Lane == uuid.Nil && got.Answer.Answer == nil && got.Prompt.Report == nil && got.Answer.ErrorText == nil
		if err != nil || got.Cost.CostMicroUSD != 7 || isKept && !has || !isKept && !hasNone {
			t.Errorf("request %d: %+v, %v", i, got, err)
		}
	}
	epoch := f.newClient()
	epoch.say("one", "two", "three", "four")
	committed := epoch.speaking("alice")
	committed.At = before
	if err := f.store.Commit(t.Context(), committed, epoch.projection(1, 3)); !errors.Is(err, session.ErrOvertaken) {
		t.Errorf("a compaction from before: %v", err)
	}
	answers := semanticcachedb.New(f.runner, archivetest.Keys())
	entry := semanticcache.Entry{Key: semanticcache.Key{1}, Answer: []byte("answer"), At: time.Now(), AskedAt: before, EndUser: committed.Scope.EndUser}
	if err := answers.Put(t.Context(), workspace, entry, time.Now().Add(time.Hour)); err != nil || f.count(t, "cached_answers") != 0 {
		t.Errorf("the answer to a question from before is kept (%v)", err)
	}
}

// S52: a batch that is recorded while its end user is erased comes wholly before that or not at all.
func TestErasingAnEndUserMeetsThoseWhoRecord(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for range 20 {
		c := f.newClient()
		c.say("one", "two")
		update, ctx := c.speaking("alice"), context.WithoutCancel(t.Context())
		var both sync.WaitGroup
		both.Go(func() {
			if err := f.store.Record(ctx, f.scope.Workspace, []session.Update{update}); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() { f.erase(t) })
		both.Wait()
		if left := f.count(t, "sessions") + f.count(t, "archive_objects"); left > 0 {
			t.Fatalf("%d rows are left", left)
		}
	}
}

func TestIDsOfEndUsersAreKeptAsLongAsTheyAreShown(t *testing.T) {
	t.Parallel()
	f := setup(t)
	workspace, browser := f.scope.Workspace, f.store.Browser()
	named := func() (names []string) {
		t.Helper()
		page, err := browser.Sessions(tenants.OwnWork(t.Context()), workspace, session.Filter{Whose: session.Whose{EndUser: session.EndUserIDs(workspace, "alice")}})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range page.Sessions {
			if one.EndUser != session.EndUserID(workspace, "alice") {
				t.Errorf("found is a session of %s", one.EndUser)
			}
			names = append(names, one.EndUserName)
		}
		return names
	}
	f.recordFor(t, "alice", "while ids are hashed")
	f.recordFor(t, "bob", "another one's")
	if got := named(); !slices.Equal(got, []string{""}) {
		t.Errorf("hashed: %q", got)
	}
	f.showEndUsers(t, tenants.EndUsersPlain)
	f.recordFor(t, "alice", "while ids are shown")
	if got := named(); !slices.Equal(got, []string{"alice", "alice"}) {
		t.Errorf("plain: %q", got)
	}
	masked, err := browser.Sessions(tenants.OwnWork(t.Context()), workspace, session.Filter{Masked: true})
	if err != nil || len(masked.Sessions) != 3 {
		t.Fatal(len(masked.Sessions), err)
	}
	for _, one := range masked.Sessions {
		if one.EndUserName != "" || one.EndUser == "" {
			t.Errorf("who may not read sees %q of %q", one.EndUserName, one.EndUser)
		}
	}
	var stored []byte
	if err := f.db.Owner(t).QueryRow(t.Context(), "SELECT name FROM end_users WHERE workspace_id = $1 AND id = $2", workspace, session.EndUserID(workspace, "alice")).Scan(&stored); err != nil || bytes.Contains(stored, []byte("alice")) {
		t.Errorf("stored is %q, %v", stored, err)
	}
	f.showEndUsers(t, tenants.EndUsersHashed)
	if got := named(); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("hashed again: %q", got)
	}
	f.showEndUsers(t, tenants.EndUsersPlain)
	f.recordFor(t, "carol", "one session")
	f.recordFor(t, "carol", "and another")
	carol := []string{session.EndUserID(workspace, "carol")}
	sessions, err := browser.Sessions(tenants.OwnWork(t.Context()), workspace, session.Filter{Whose: session.Whose{EndUser: carol}})
	if err != nil || len(sessions.Sessions) != 2 {
		t.Fatal(len(sessions.Sessions), err)
	}
	for i, want := range []int{1, 0} { // the id goes with the last session
		if err := browser.Delete(t.Context(), workspace, sessions.Sessions[i].ID); err != nil {
			t.Fatal(err)
		}
		if names, err := browser.EndUserNames(t.Context(), workspace, carol); err != nil || len(names) != want {
			t.Errorf("%d sessions deleted: %v, %v", i+1, names, err)
		}
	}
}
