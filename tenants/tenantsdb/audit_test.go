package tenantsdb_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"palimpsest/tenants"
)

// S32: what changes a workspace is noted in the same transaction, with who did it.
func TestEveryChangeIsNotedWithWhoMadeIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	actor := tenants.Actor{User: b.user.ID, Name: b.user.Email, From: "192.0.2.1"}
	ctx := tenants.WithActor(t.Context(), actor)
	if err := b.Data.SetRetention(ctx, b.workspace, tenants.Retention{Days: 30}); err != nil {
		t.Fatal(err)
	}
	if err := b.Data.SetRetention(ctx, b.workspace, tenants.Retention{Days: 7}); err != nil {
		t.Fatal(err)
	}
	entries, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Limit: 1})
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	newest := entries[0]
	if newest.Action != tenants.RetentionSet || newest.Actor != actor || newest.At.IsZero() ||
		!maps.Equal(newest.Before, tenants.Fields{"days": "30"}) || !maps.Equal(newest.After, tenants.Fields{"days": "7"}) {
		t.Errorf("noted %+v", newest)
	}
	older, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Before: newest.ID})
	if err != nil || len(older) == 0 || older[0].After["days"] != "30" || slices.ContainsFunc(older, func(e tenants.AuditEntry) bool { return e.ID == newest.ID }) {
		t.Errorf("before it: %+v, %v", older, err)
	}
}

// S32
func TestWhatWasNotChangedIsNotNoted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("the rest failed")
	err = b.Together(t.Context(), b.workspace, func(tenant tenants.Tenant) error {
		if err := b.Data.SetRetention(t.Context(), tenant, tenants.Retention{Days: 30}); err != nil {
			return err
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if after, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Limit: 100}); err != nil || len(after) != len(before) {
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

func TestTheAuditIsFilteredAndPaged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := now().Add(-time.Hour)
	for i, name := range []string{"ann@example.com", "Bob's key", "ann@example.com"} {
		ctx := tenants.WithActor(t.Context(), tenants.Actor{Name: name})
		if err := b.Data.SetRetention(ctx, b.workspace, tenants.Retention{Days: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		filter tenants.AuditFilter
		want   int
	}{
		"actor":             {tenants.AuditFilter{Actor: "ANN@"}, 2},
		"no such actor":     {tenants.AuditFilter{Actor: "%"}, 0},
		"action":            {tenants.AuditFilter{Action: "retention.set"}, 3},
		"what it is about":  {tenants.AuditFilter{Action: "retention"}, 3},
		"part of an action": {tenants.AuditFilter{Action: "retention.s"}, 0},
		"since":             {tenants.AuditFilter{Action: "retention", From: before}, 3},
		"until":             {tenants.AuditFilter{Action: "retention", To: before}, 0},
		"both":              {tenants.AuditFilter{Actor: "bob", Action: "retention"}, 1},
	} {
		if entries, err := b.Audit.Audit(t.Context(), b.workspace, test.filter); err != nil || len(entries) != test.want {
			t.Errorf("%s: %d entries, %v, want %d", name, len(entries), err, test.want)
		}
	}
	// A range holds its beginning and not its end.
	all, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Action: "retention"})
	if err != nil || len(all) != 3 {
		t.Fatalf("%d entries, %v", len(all), err)
	}
	ranged, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Action: "retention", From: all[1].At, To: all[0].At})
	if err != nil || len(ranged) != 1 || ranged[0].ID != all[1].ID {
		t.Errorf("from the second entry to the third there is %+v, %v", ranged, err)
	}
	others, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Except: "retention"})
	if err != nil || len(others) == 0 || slices.ContainsFunc(others, func(entry tenants.AuditEntry) bool { return entry.Action == all[0].Action }) {
		t.Errorf("beside retention there is %+v, %v", others, err)
	}
	filter := tenants.AuditFilter{Action: "retention", Limit: 2}
	var days []string
	for {
		page, err := b.Audit.Audit(t.Context(), b.workspace, filter)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range page {
			days = append(days, entry.After["days"])
		}
		if len(page) < filter.Limit {
			break
		}
		filter.Before = page[len(page)-1].ID
	}
	if !slices.Equal(days, []string{"3", "2", "1"}) {
		t.Errorf("paged through %v", days)
	}
}
