package tenantsdb_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/tenants"
)

// S32: what changes a workspace is noted in the same transaction, with who did it.
func TestEveryChangeIsNotedWithWhoMadeIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	actor := tenants.Actor{User: b.user.ID, Name: b.user.Email, From: "192.0.2.1"}
	ctx := tenants.WithActor(t.Context(), actor)
	if err := b.SetRetention(ctx, b.workspace, tenants.Retention{Days: 30}); err != nil {
		t.Fatal(err)
	}
	if err := b.SetRetention(ctx, b.workspace, tenants.Retention{Days: 7}); err != nil {
		t.Fatal(err)
	}
	entries, err := b.Audit(t.Context(), b.workspace, uuid.Nil, 1)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	newest := entries[0]
	if newest.Action != tenants.RetentionSet || newest.Actor != actor || newest.At.IsZero() ||
		!maps.Equal(newest.Before, tenants.Fields{"days": "30"}) || !maps.Equal(newest.After, tenants.Fields{"days": "7"}) {
		t.Errorf("noted %+v", newest)
	}
	older, err := b.Audit(t.Context(), b.workspace, newest.ID, 100)
	if err != nil || len(older) == 0 || older[0].After["days"] != "30" || slices.ContainsFunc(older, func(e tenants.AuditEntry) bool { return e.ID == newest.ID }) {
		t.Errorf("before it: %+v, %v", older, err)
	}
}

// S32
func TestWhatWasNotChangedIsNotNoted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before, err := b.Audit(t.Context(), b.workspace, uuid.Nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("the rest failed")
	err = b.Together(t.Context(), b.workspace, func(ctx context.Context) error {
		if err := b.SetRetention(ctx, b.workspace, tenants.Retention{Days: 30}); err != nil {
			return err
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if after, err := b.Audit(t.Context(), b.workspace, uuid.Nil, 100); err != nil || len(after) != len(before) {
		t.Errorf("%d entries, were %d (%v)", len(after), len(before), err)
	}
}

// S32: the application can neither change nor remove an entry.
func TestAuditIsAppendOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, statement := range []string{"UPDATE audit_entries SET actor = 'nobody'", "DELETE FROM audit_entries", "TRUNCATE audit_entries"} {
		err := b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error { return tx.Exec(statement).Error })
		if !isRefused(err) {
			t.Errorf("%s: %v, want 42501", statement, err)
		}
	}
}
