package patternsdb_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/patterns/miner"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// bundle is a database with two workspaces and a miner whose clock stands.
type bundle struct {
	db        *dbtest.Database
	store     *patternsdb.Store
	sessions  *sessiondb.Store
	config    pipeline.Config
	now       time.Time
	workspace tenants.WorkspaceID
	other     tenants.WorkspaceID
	miner     *miner.Miner
	recorded  int
}

func setup(t *testing.T) *bundle {
	t.Helper()
	db := dbtest.New(t)
	b := &bundle{
		db: db, store: patternsdb.New(db.DB), sessions: sessiondb.New(db.DB, archivetest.Keys()), config: modules.Catalog().Default(), now: time.Now().UTC().Truncate(time.Microsecond),
		workspace: tenants.NewWorkspaceID(), other: tenants.NewWorkspaceID(),
	}
	for _, id := range []tenants.WorkspaceID{b.workspace, b.other} {
		err := db.DB.InTenant(t.Context(), id, func(tx *gorm.DB) error {
			return tx.Exec("INSERT INTO workspaces (workspace_id, name) VALUES (?, 'test')", id).Error
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	b.miner = miner.New(miner.Config{
		Store: b.store, Archive: archivedb.New(db.DB, archivetest.Keys()), Inserts: b.sessions.Browser(),
		Codecs:   map[conversation.Format]wire.Codec{conversation.Anthropic: anthropic.New()},
		Settings: func(context.Context, tenants.WorkspaceID) (pipeline.Config, error) { return b.config, nil },
		Log:      slog.New(slog.DiscardHandler), Now: func() time.Time { return b.now },
	})
	return b
}

// record records a session of messages that alternate between a person and the model.
func (b *bundle) record(t *testing.T, workspace tenants.WorkspaceID, said ...string) session.Update {
	t.Helper()
	b.recorded++
	seen := session.Update{
		Scope:   session.Scope{Workspace: workspace, APIKey: uuid.New(), Format: conversation.Anthropic},
		Session: uuid.New(), Lane: uuid.New(), Naming: session.Naming{Source: "lineage"}, At: b.now,
		Messages:  session.Messages{Position: len(said), Head: sha256.Sum256(fmt.Append(nil, "head", b.recorded))},
		Increment: session.Increment{Exchanges: 1},
	}
	for i, text := range said {
		role := []conversation.Role{conversation.User, conversation.Assistant}[i%2]
		raw, err := json.Marshal(map[string]string{"role": string(role), "content": text})
		if err != nil {
			t.Fatal(err)
		}
		seen.Entries = append(seen.Entries, archive.Entry{Index: i, Hash: sha256.Sum256(raw), Role: role, Raw: raw})
	}
	if err := b.sessions.Record(t.Context(), workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	return seen
}

// pass mines once all sessions are quiet.
func (b *bundle) pass(t *testing.T) {
	t.Helper()
	b.now = b.now.Add(time.Hour)
	if err := b.miner.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (b *bundle) list(t *testing.T, workspace tenants.WorkspaceID, status patterns.Status) []patterns.Pattern {
	t.Helper()
	filter := patterns.Filter{Limit: 100}
	if status != "" {
		filter.Statuses = []patterns.Status{status}
	}
	found, err := b.store.List(t.Context(), workspace, filter)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

const order = "Never commit generated files to the repository."

func TestOrderTypedInTwoSessionsBecomesACandidateOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.record(t, b.workspace, "Mend the parser. "+order, "Done.")
	b.pass(t)
	if found := b.list(t, b.workspace, ""); len(found) != 0 {
		t.Fatalf("after one session: %+v", found)
	}
	b.record(t, b.workspace, "Please never commit generated files to the repository", "Yes.")
	b.record(t, b.other, "Hello. "+order, "Hi.")
	for range 3 { // S5; S28: and again comes to the same
		b.pass(t)
	}
	found := b.list(t, b.workspace, "")
	if len(found) != 1 || found[0].Text != order || found[0].Status != patterns.Candidate || found[0].Sessions != 2 || found[0].Evidence != 2 {
		t.Fatalf("found %+v", found)
	}
	if others := b.list(t, b.other, ""); len(others) != 0 {
		t.Errorf("the other workspace has %+v", others)
	}
	places, err := b.store.Places(t.Context(), b.workspace, found[0].ID, 10)
	if err != nil || len(places) != 2 || places[0].Message != 0 {
		t.Errorf("places are %+v, %v", places, err)
	}
	if approved, err := b.store.Approved(t.Context(), b.workspace); err != nil || len(approved) != 0 {
		t.Errorf("approved by nobody: %+v, %v", approved, err)
	}
}

func TestSameMessageInTwoSessionsCountsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 3 {
		b.record(t, b.workspace, "Mend the parser. "+order, "Done.")
	}
	b.pass(t)
	if found := b.list(t, b.workspace, ""); len(found) != 0 {
		t.Errorf("a script's message became %+v", found)
	}
}

func TestReviewOffApprovesWhatWasMetInThreeSessions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pipeline.Change[patterns.Config](&b.config).Review = patterns.ReviewAuto
	for i := range 3 {
		b.record(t, b.workspace, []string{"Mend it. ", "Build it. ", "Ship it. "}[i]+order, "Done.")
		b.pass(t)
		if approved := b.list(t, b.workspace, patterns.Approved); len(approved) != i/2 {
			t.Errorf("after %d sessions: %+v", i+1, approved)
		}
	}
	if approved := b.list(t, b.workspace, patterns.Approved); len(approved) == 1 && (approved[0].Reason != "auto" || approved[0].IsReviewed()) {
		t.Errorf("approved as %+v", approved[0])
	}
}

func TestLaneThatGoesOnIsReadAgainWhenItIsQuiet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	seen := b.record(t, b.workspace, "Mend it.", "Done.")
	if lanes, err := b.store.Due(t.Context(), b.workspace, b.now.Add(-miner.Quiet), 10); err != nil || len(lanes) != 0 {
		t.Errorf("a busy lane is due: %v, %v", lanes, err)
	}
	b.pass(t)
	due := func() int {
		lanes, err := b.store.Due(t.Context(), b.workspace, b.now.Add(time.Hour), 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(lanes)
	}
	if due() != 0 {
		t.Error("a lane that was read is due")
	}
	seen.At, seen.Entries, seen.Position = b.now, nil, 2
	if err := b.sessions.Record(t.Context(), b.workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}
	if due() != 1 {
		t.Error("a lane that went on is not due")
	}
}

func TestUseIsCountedOncePerLane(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.add(t)
	helped := b.record(t, b.workspace, "Install it.", "Done.")
	failed := b.record(t, b.workspace, "Install it.", "With pnpm.", "pnpm and npm: we changed that, use bun", "Yes.")
	for _, seen := range []session.Update{helped, failed} {
		seen.Entries, seen.Exchanges = nil, 0
		err := b.sessions.Inject(t.Context(), seen, []session.Insert{{Number: 1, Message: 0, Module: patterns.Name, Text: "x", Tokens: 1, Items: []string{p.ID.String(), uuid.NewString()}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	b.pass(t)
	b.pass(t)
	got, err := b.store.Pattern(t.Context(), b.workspace, p.ID)
	if err != nil || got.Injected != 2 || got.Successes != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func (b *bundle) add(t *testing.T) patterns.Pattern {
	t.Helper()
	p, err := b.store.Add(t.Context(), b.workspace, patterns.Pattern{
		Kind: patterns.Convention, Text: "We use pnpm, not npm.", CreatedBy: uuid.New(), When: patterns.When{Terms: []string{"pnpm", "npm"}, Always: true},
	}, b.now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPatternThatNobodyMeetsIsDisabledAfterHalfAYear(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.add(t)
	for _, step := range []struct {
		after time.Duration
		want  patterns.Status
	}{{179 * 24 * time.Hour, patterns.Approved}, {2 * 24 * time.Hour, patterns.Disabled}} {
		b.now = b.now.Add(step.after)
		b.pass(t)
		got, err := b.store.Pattern(t.Context(), b.workspace, p.ID)
		if err != nil || got.Status != step.want || (got.Reason != "") != (step.want == patterns.Disabled) {
			t.Errorf("after %s: %+v, %v", step.after, got, err)
		}
	}
	// Anyone who approves it again is not overruled by the next pass.
	approved := patterns.Approved
	if _, err := b.store.Change(t.Context(), b.workspace, p.ID, 2, patterns.Change{Status: &approved}, uuid.New(), b.now); err != nil {
		t.Fatal(err)
	}
	b.pass(t)
	if got, err := b.store.Approved(t.Context(), b.workspace); err != nil || len(got) != 1 {
		t.Errorf("approved: %+v, %v", got, err)
	}
}

func TestWhatWasLearntGoesWithItsSessions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	seen := []session.Update{b.record(t, b.workspace, "One. "+order, "Yes."), b.record(t, b.workspace, "Two. "+order, "Yes.")}
	b.pass(t)
	if len(b.list(t, b.workspace, patterns.Candidate)) != 1 {
		t.Fatal("no candidate")
	}
	for _, one := range seen {
		if err := b.sessions.Browser().Delete(t.Context(), b.workspace, one.Session); err != nil {
			t.Fatal(err)
		}
	}
	b.pass(t)
	if left := b.list(t, b.workspace, ""); len(left) != 0 {
		t.Errorf("left are %+v", left)
	}
}

func TestChangesMeetTheVersionTheyWereMadeFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.add(t)
	text, rejected := "We use bun.", patterns.Rejected
	changed, err := b.store.Change(t.Context(), b.workspace, p.ID, 1, patterns.Change{Text: &text, Status: &rejected}, uuid.New(), b.now)
	if err != nil || changed.Text != text || changed.Status != rejected || changed.Version != 2 || !changed.When.Always {
		t.Errorf("%+v, %v", changed, err)
	}
	if _, err := b.store.Change(t.Context(), b.workspace, p.ID, 1, patterns.Change{Text: &text}, uuid.New(), b.now); !errors.Is(err, patterns.ErrChanged) {
		t.Errorf("over an older version: %v", err)
	}
	if _, err := b.store.Change(t.Context(), b.other, p.ID, 2, patterns.Change{Text: &text}, uuid.New(), b.now); !errors.Is(err, patterns.ErrNotFound) {
		t.Errorf("of another workspace: %v", err)
	}
	again, err := b.store.Add(t.Context(), b.workspace, patterns.Pattern{Kind: p.Kind, Text: "we use bun", CreatedBy: uuid.New()}, b.now)
	if err != nil || again.ID != p.ID || again.Status != patterns.Approved || !again.IsReviewed() {
		t.Errorf("what was rejected and is added by hand: %+v, %v", again, err)
	}
	if err := b.store.Delete(t.Context(), b.other, p.ID); !errors.Is(err, patterns.ErrNotFound) {
		t.Errorf("deleted by another workspace: %v", err)
	}
	if err := b.store.Delete(t.Context(), b.workspace, p.ID); err != nil {
		t.Error(err)
	}
}

func TestPatternsAreCountedByStatusOfOneWorkspace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.add(t)
	b.record(t, b.workspace, "Mend the parser. "+order, "Done.")
	b.pass(t) // met once: nobody sees it
	if counts, err := b.store.Counts(t.Context(), b.workspace); err != nil || len(counts) != 1 || counts[patterns.Approved] != 1 {
		t.Errorf("%v, %v", counts, err)
	}
	rejected := patterns.Rejected
	if _, err := b.store.Change(t.Context(), b.workspace, p.ID, 1, patterns.Change{Status: &rejected}, uuid.New(), b.now); err != nil {
		t.Fatal(err)
	}
	found, err := b.store.List(t.Context(), b.workspace, patterns.Filter{Statuses: []patterns.Status{patterns.Disabled, patterns.Rejected}, Limit: 10})
	if err != nil || len(found) != 1 || found[0].ID != p.ID {
		t.Errorf("disabled or rejected: %+v, %v", found, err)
	}
	if counts, err := b.store.Counts(t.Context(), b.other); err != nil || len(counts) != 0 {
		t.Errorf("of another workspace: %v, %v", counts, err)
	}
}
