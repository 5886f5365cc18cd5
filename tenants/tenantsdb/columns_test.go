package tenantsdb_test

import (
	"slices"
	"testing"

	"palimpsest/tenants"
)

// Columns are hidden from one person, in one list of one workspace.
func TestHiddenColumnsAreOnePersons(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other, _ := b.signUp(t, "other@example.com")
	if err := b.Views.HideColumns(t.Context(), b.workspace, b.user.ID, tenants.SessionViews, []string{"reach", "levels"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Views.HideColumns(t.Context(), b.workspace, b.user.ID, tenants.RequestViews, []string{"cost"}); err != nil {
		t.Fatal(err)
	}
	hidden, err := b.Views.HiddenColumns(t.Context(), b.workspace, b.user.ID, tenants.SessionViews)
	if err != nil || !slices.Equal(hidden, []string{"reach", "levels"}) {
		t.Errorf("hidden are %v, %v", hidden, err)
	}
	if hidden, err := b.Views.HiddenColumns(t.Context(), b.workspace, other.ID, tenants.SessionViews); err != nil || len(hidden) > 0 {
		t.Errorf("from another person: %v, %v", hidden, err)
	}
	if err := b.Views.HideColumns(t.Context(), b.workspace, b.user.ID, tenants.SessionViews, nil); err != nil {
		t.Fatal(err)
	}
	if hidden, err := b.Views.HiddenColumns(t.Context(), b.workspace, b.user.ID, tenants.SessionViews); err != nil || len(hidden) > 0 {
		t.Errorf("all are shown, but %v are hidden, %v", hidden, err)
	}
}
