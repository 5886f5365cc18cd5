package patternsdb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// bundle is a database with two workspaces.
type bundle struct {
	db        *dbtest.Database
	store     *patternsdb.Store
	now       time.Time
	workspace tenants.WorkspaceID
	other     tenants.WorkspaceID
}

func setup(t *testing.T) *bundle {
	t.Helper()
	db := dbtest.New(t)
	b := &bundle{
		db: db, store: patternsdb.New(db.DB), now: time.Now().UTC().Truncate(time.Microsecond),
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
	return b
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

func TestChangesMeetTheVersionTheyWereMadeFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.add(t)
	text, disabled := "We use bun.", patterns.Disabled
	changed, err := b.store.Change(t.Context(), b.workspace, p.ID, 1, patterns.Change{Text: &text, Status: &disabled}, uuid.New(), b.now)
	if err != nil || changed.Text != text || changed.Status != disabled || changed.Version != 2 || !changed.When.Always {
		t.Errorf("%+v, %v", changed, err)
	}
	if _, err := b.store.Change(t.Context(), b.workspace, p.ID, 1, patterns.Change{Text: &text}, uuid.New(), b.now); !errors.Is(err, patterns.ErrChanged) {
		t.Errorf("over an older version: %v", err)
	}
	if _, err := b.store.Change(t.Context(), b.other, p.ID, 2, patterns.Change{Text: &text}, uuid.New(), b.now); !errors.Is(err, patterns.ErrNotFound) {
		t.Errorf("of another workspace: %v", err)
	}
	again, err := b.store.Add(t.Context(), b.workspace, patterns.Pattern{Kind: p.Kind, Text: "we use bun", CreatedBy: uuid.New()}, b.now)
	if err != nil || again.ID != p.ID || again.Status != patterns.Approved {
		t.Errorf("what was disabled and is added again: %+v, %v", again, err)
	}
	if err := b.store.Delete(t.Context(), b.other, p.ID); !errors.Is(err, patterns.ErrNotFound) {
		t.Errorf("deleted by another workspace: %v", err)
	}
	if err := b.store.Delete(t.Context(), b.workspace, p.ID); err != nil {
		t.Error(err)
	}
}

func TestPatternsAreListedByStatusOfOneWorkspace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.add(t)
	if approved, err := b.store.Approved(t.Context(), b.workspace); err != nil || len(approved) != 1 || approved[0].ID != p.ID || !approved[0].EditedAt.Equal(b.now) {
		t.Errorf("approved: %+v, %v", approved, err)
	}
	disabled := patterns.Disabled
	if _, err := b.store.Change(t.Context(), b.workspace, p.ID, 1, patterns.Change{Status: &disabled}, uuid.New(), b.now); err != nil {
		t.Fatal(err)
	}
	for status, want := range map[patterns.Status]int{"": 1, patterns.Approved: 0, patterns.Disabled: 1} {
		if found, err := b.store.List(t.Context(), b.workspace, patterns.Filter{Status: status, Limit: 10}); err != nil || len(found) != want {
			t.Errorf("%q: %+v, %v", status, found, err)
		}
	}
	if approved, err := b.store.Approved(t.Context(), b.workspace); err != nil || len(approved) != 0 {
		t.Errorf("approved: %+v, %v", approved, err)
	}
	if found, err := b.store.List(t.Context(), b.other, patterns.Filter{Limit: 10}); err != nil || len(found) != 0 {
		t.Errorf("of another workspace: %+v, %v", found, err)
	}
}

// A version that finds patterns in sessions may still run beside this one.
func TestWhatNoOneWroteOrApprovedIsNotServed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const mined = `INSERT INTO patterns (workspace_id, id, kind, text, words, status, source, created_at, edited_at, edited_by, last_seen)
		VALUES ($1, $2, 'directive', $3, $3, 'approved', 'mined', now(), now(), $4, now())`
	for text, by := range map[string]*uuid.UUID{"by no one": nil, "by someone": new(uuid.New())} {
		if _, err := b.db.Owner(t).Exec(t.Context(), mined, b.workspace, uuid.New(), text, by); err != nil {
			t.Fatal(err)
		}
	}
	approved, err := b.store.Approved(t.Context(), b.workspace)
	listed, listErr := b.store.List(t.Context(), b.workspace, patterns.Filter{Limit: 10})
	if err != nil || listErr != nil || len(approved) != 1 || len(listed) != 1 || approved[0].Text != "by someone" || listed[0].Text != "by someone" {
		t.Errorf("approved %+v, listed %+v, %v, %v", approved, listed, err, listErr)
	}
}
