package tenantsdb_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// save keeps a view of a person.
func (b bundle) save(t *testing.T, user uuid.UUID, list tenants.ViewList, name, query string) tenants.View {
	t.Helper()
	view, err := b.Views.SaveView(t.Context(), b.workspace, user, tenants.View{List: list, Name: name, Query: query})
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// viewsOf returns the names and queries of a person's views.
func (b bundle) viewsOf(t *testing.T, workspace tenants.WorkspaceID, user uuid.UUID, list tenants.ViewList) string {
	t.Helper()
	views, err := b.Views.Views(t.Context(), workspace, user, list)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, view := range views {
		all = append(all, view.Name+" "+view.Query)
	}
	return strings.Join(all, ", ")
}

func TestViewsAreSavedReplacedAndDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	user := b.user.ID
	first := b.save(t, user, tenants.SessionViews, "Slow ones", "range=7d")
	b.save(t, user, tenants.SessionViews, "codex", "client=codex")
	b.save(t, user, tenants.RequestViews, "Slow ones", "status=5xx")
	if first.ID == uuid.Nil || first.List != tenants.SessionViews || first.SavedAt.IsZero() {
		t.Errorf("saved %+v", first)
	}
	if got := b.viewsOf(t, b.workspace, user, tenants.SessionViews); got != "codex client=codex, Slow ones range=7d" {
		t.Errorf("views of sessions: %s", got)
	}

	again := b.save(t, user, tenants.SessionViews, "Slow ones", "range=30d")
	if again.ID != first.ID || again.Query != "range=30d" || again.SavedAt.Before(first.SavedAt) {
		t.Errorf("saved again: %+v, it was %+v", again, first)
	}
	if err := b.Views.DeleteView(t.Context(), b.workspace, user, tenants.RequestViews, first.ID); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("deleted as one of another list: %v", err)
	}
	if err := b.Views.DeleteView(t.Context(), b.workspace, user, tenants.SessionViews, first.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.Views.DeleteView(t.Context(), b.workspace, user, tenants.SessionViews, first.ID); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if got := b.viewsOf(t, b.workspace, user, tenants.SessionViews) + "; " + b.viewsOf(t, b.workspace, user, tenants.RequestViews); got != "codex client=codex; Slow ones status=5xx" {
		t.Errorf("left: %s", got)
	}
}

// S2: a view is its person's in its workspace: no one else sees, replaces or deletes it.
func TestViewsArePrivateToTheirPerson(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mine := b.save(t, b.user.ID, tenants.SessionViews, "mine", "client=codex")
	colleague, theirs := b.signUp(t, "eve@example.com")
	const join = "INSERT INTO members (workspace_id, user_id, role) VALUES ($1, $2, 'owner')"
	if _, err := b.database.Owner(t).Exec(t.Context(), join, b.workspace, colleague.ID); err != nil {
		t.Fatal(err)
	}

	for _, workspace := range []tenants.WorkspaceID{b.workspace, theirs} {
		if got := b.viewsOf(t, workspace, colleague.ID, tenants.SessionViews); got != "" {
			t.Errorf("a colleague sees %s", got)
		}
		if err := b.Views.DeleteView(t.Context(), workspace, colleague.ID, tenants.SessionViews, mine.ID); !errors.Is(err, tenants.ErrNotFound) {
			t.Errorf("a colleague deletes it: %v", err)
		}
	}
	if err := b.Views.DeleteView(t.Context(), b.workspace, b.user.ID, tenants.RequestViews, mine.ID); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("it is deleted as a view of another list: %v", err)
	}
	b.save(t, colleague.ID, tenants.SessionViews, "mine", "client=curl")
	if got := b.viewsOf(t, b.workspace, b.user.ID, tenants.SessionViews); got != "mine client=codex" {
		t.Errorf("after a colleague saved one of the same name: %s", got)
	}
	if _, err := b.database.Owner(t).Exec(t.Context(), "DELETE FROM members WHERE workspace_id = $1 AND user_id = $2", b.workspace, colleague.ID); err != nil {
		t.Fatal(err)
	}
	if got := b.viewsOf(t, b.workspace, colleague.ID, tenants.SessionViews); got != "" {
		t.Errorf("of who left there is %s", got)
	}
}

// S31: an export has the views of everybody, and of no other workspace.
func TestEveryViewOfAWorkspaceIsListedInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	colleague, theirs := b.signUp(t, "eve@example.com")
	const join = "INSERT INTO members (workspace_id, user_id, role) VALUES ($1, $2, 'owner')"
	if _, err := b.database.Owner(t).Exec(t.Context(), join, b.workspace, colleague.ID); err != nil {
		t.Fatal(err)
	}
	want := []tenants.View{
		b.save(t, b.user.ID, tenants.SessionViews, "a", "range=7d"), b.save(t, colleague.ID, tenants.SessionViews, "b", "range=7d"),
		b.save(t, b.user.ID, tenants.RequestViews, "c", "status=5xx"),
	}
	if want[0].User != b.user.ID || want[1].User != colleague.ID {
		t.Errorf("saved %+v", want)
	}
	var got []tenants.View
	for after := uuid.Nil; len(got) <= len(want); after = got[len(got)-1].ID {
		page, err := b.Views.EveryView(t.Context(), b.workspace, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, page...); len(page) < 2 {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %+v, want %+v", got, want)
	}
	if got, err := b.Views.EveryView(t.Context(), theirs, uuid.Nil, 9); err != nil || len(got) != 0 {
		t.Errorf("another workspace has %+v (%v)", got, err)
	}
}

func TestViewThatCannotBeSavedSaysWhy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, try := range map[string]struct{ name, query, field string }{
		"no name":        {" ", "range=7d", "name"},
		"long name":      {strings.Repeat("ä", 61), "range=7d", "name"},
		"two lines":      {"a\nb", "range=7d", "name"},
		"no text":        {"a\xff", "range=7d", "name"},
		"no filter":      {"a", "", "query"},
		"a long address": {"a", "q=" + strings.Repeat("x", 4096), "query"},
	} {
		_, err := b.Views.SaveView(t.Context(), b.workspace, b.user.ID, tenants.View{List: tenants.SessionViews, Name: try.name, Query: try.query})
		if invalid, is := errors.AsType[tenants.Invalid](err); !is || invalid.Field != try.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.save(t, b.user.ID, tenants.SessionViews, strings.Repeat("ä", 60), "q="+strings.Repeat("x", 4094))
}

func TestSomebodyHasFiftyViewsOfAList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 49 {
		b.save(t, b.user.ID, tenants.SessionViews, fmt.Sprintf("view %d", i), "range=7d")
	}
	var group sync.WaitGroup
	refused := make(chan error, 4)
	for i := range 4 {
		group.Go(func() {
			_, err := b.Views.SaveView(t.Context(), b.workspace, b.user.ID, tenants.View{List: tenants.SessionViews, Name: fmt.Sprintf("last %d", i), Query: "range=7d"})
			refused <- err
		})
	}
	group.Wait()
	close(refused)
	saved := 0
	for err := range refused {
		if invalid, is := errors.AsType[tenants.Invalid](err); err == nil {
			saved++
		} else if !is || invalid.Field != "name" || !strings.Contains(invalid.Message, "50 views") {
			t.Errorf("refused with %v", err)
		}
	}
	if saved != 1 {
		t.Errorf("%d of 4 were saved as the fiftieth", saved)
	}
	b.save(t, b.user.ID, tenants.SessionViews, "view 0", "range=30d") // replaces one
	b.save(t, b.user.ID, tenants.RequestViews, "view 0", "range=30d")
}
