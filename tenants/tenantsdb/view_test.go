package tenantsdb_test

import (
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// S31: an export has the views that an earlier version kept of everybody, and of no other workspace.
func TestEveryViewOfAWorkspaceIsListedInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, theirs := b.signUp(t, "eve@example.com")
	for _, name := range []string{"a", "b", "c"} {
		const save = "INSERT INTO views (workspace_id, id, user_id, list, name, query) VALUES ($1, $2, $3, 'sessions', $4, 'range=7d')"
		if _, err := b.database.Owner(t).Exec(t.Context(), save, b.workspace, uuid.Must(uuid.NewV7()), b.user.ID, name); err != nil {
			t.Fatal(err)
		}
	}
	var got []tenants.View
	for after := uuid.Nil; ; after = got[len(got)-1].ID {
		page, err := b.Views.EveryView(t.Context(), b.workspace, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, page...); len(page) < 2 {
			break
		}
	}
	if len(got) != 3 || got[0].Name != "a" || got[2].Name != "c" || got[2].User != b.user.ID || got[2].List != "sessions" || got[2].Query != "range=7d" || got[2].SavedAt.IsZero() {
		t.Errorf("listed %+v", got)
	}
	if got, err := b.Views.EveryView(t.Context(), theirs, uuid.Nil, 9); err != nil || len(got) != 0 {
		t.Errorf("another workspace has %+v (%v)", got, err)
	}
}
