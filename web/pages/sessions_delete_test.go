package pages_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// deletions returns the audit entries of deleted sessions, the newest first.
func deletions(t *testing.T, person *webtest.Person) []tenants.AuditEntry {
	t.Helper()
	entries, err := person.DB.Audit.Audit(t.Context(), person.Workspace.ID, tenants.AuditFilter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var deleted []tenants.AuditEntry
	for i := range entries {
		if entries[i].Action == tenants.SessionDeleted {
			deleted = append(deleted, entries[i])
		}
	}
	return deleted
}

// S32: sessions go after the words were typed, each with a row of its own that holds
// nothing of what was said.
func TestChosenSessionsAreDeletedAfterTheWordsWereTyped(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	ids := keep(t, person, kept{title: "first secret"}, kept{title: "second secret", ago: time.Minute}, kept{title: "stays", ago: time.Hour})

	asked := person.Get("/sessions/delete?id=" + ids[0].String() + "&id=" + ids[1].String() + "&id=" + ids[0].String())
	dialog := asked.Text("#dlg-delete")
	for _, want := range []string{"Delete 2 sessions", "first secret", "second secret", "Type “delete 2”", "cannot be undone"} {
		if !strings.Contains(dialog, want) {
			t.Errorf("the question lacks %q: %s", want, dialog)
		}
	}
	if strings.Contains(dialog, "stays") || asked.Find(`#dlg-delete input[name="id"]`).Length() != 2 {
		t.Errorf("it asks for more than was chosen: %s", dialog)
	}
	refused := person.Post("/sessions/delete", "id", ids[0].String(), "id", ids[1].String(), "confirm", "delete")
	if refused.Status != http.StatusUnprocessableEntity || !strings.Contains(refused.Text("#dlg-delete"), "Nothing is deleted yet") ||
		refused.Find(`#dlg-delete input[name="confirm"]`).AttrOr("value", "") != "delete" || refused.Find(`#dlg-delete input[name="id"]`).Length() != 2 {
		t.Errorf("other words: status %d, %q", refused.Status, refused.Text("#dlg-delete"))
	}
	if left := titles(person.Get("/sessions")); left != "first secret, second secret, stays" || len(deletions(t, person)) != 0 {
		t.Fatalf("asking and refusing left %q", left)
	}

	done := person.Post("/sessions/delete", "id", ids[0].String(), "id", ids[1].String(), "confirm", " delete 2 ")
	if done.Path != "/sessions?deleted=2" || titles(done) != "stays" || !strings.Contains(done.Text(".callout"), "Deleted 2 sessions.") {
		t.Errorf("%s lists %q and says %q", done.Path, titles(done), done.Text(".callout"))
	}
	noted := deletions(t, person)
	if len(noted) != 2 || noted[1].Target != ids[0].String() || noted[0].Target != ids[1].String() {
		t.Fatalf("noted is %+v", noted)
	}
	for _, entry := range noted {
		if entry.Actor.Name != person.Email || strings.Contains(entry.Target, "secret") || entry.Before != nil || entry.After != nil {
			t.Errorf("noted is %+v", entry)
		}
	}
	if page := person.Get("/sessions/" + ids[0].String()); page.Status != http.StatusNotFound {
		t.Errorf("a deleted session answers %d", page.Status)
	}
}

func TestNothingIsDeletedWhereNothingWasChosen(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person, other := product.SignUp(t, "northbeam"), product.SignUp(t, "zebra")
	keep(t, person, kept{title: "ours"})
	theirs := keep(t, other, kept{title: "theirs"})[0].String()

	for _, page := range []webtest.Page{
		person.Get("/sessions/delete"), person.Get("/sessions/delete?id=nonsense"), person.Get("/sessions/delete?id=" + uuid.NewString()),
		person.Get("/sessions/delete?id=" + theirs), // S3
		person.Post("/sessions/delete", "confirm", "delete 0"),
		person.Post("/sessions/delete", "id", "nonsense", "confirm", "delete 1"),
	} {
		if page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.Text(".callout"), "No session is chosen") || page.Has("main dialog") ||
			strings.Contains(page.HTML, "theirs") {
			t.Errorf("%s: status %d: %q", page.Path, page.Status, page.Text("main"))
		}
	}
	// With the words, what is another workspace's is not there either.
	if done := person.Post("/sessions/delete", "id", theirs, "confirm", "delete 1"); done.Path != "/sessions?deleted=0" {
		t.Errorf("another workspace's: %s, status %d", done.Path, done.Status)
	}
	if titles(other.Get("/sessions")) != "theirs" || titles(person.Get("/sessions")) != "ours" || len(deletions(t, person))+len(deletions(t, other)) != 0 {
		t.Error("something was deleted or noted")
	}
}

// Someone else was quicker: the rest is deleted, and what is said is what was done.
func TestSessionsThatAreGoneAlreadyAreNotCountedAsDeleted(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	ids := keep(t, person, kept{title: "first"}, kept{title: "second"})
	if err := person.Sessions.Browser().Delete(t.Context(), person.Workspace.ID, ids[0]); err != nil {
		t.Fatal(err)
	}
	// A refused answer asks again for what is left.
	if again := person.Post("/sessions/delete", "id", ids[0].String(), "id", ids[1].String(), "confirm", "x"); !strings.Contains(again.Text("#dlg-delete"), "Type “delete 1”") {
		t.Errorf("asked again: %q", again.Text("#dlg-delete"))
	}
	done := person.Post("/sessions/delete", "id", ids[0].String(), "id", ids[1].String(), "confirm", "delete 2")
	if done.Path != "/sessions?deleted=1" || len(deletions(t, person)) != 1 {
		t.Errorf("%s, %d noted", done.Path, len(deletions(t, person)))
	}
}

// An admin who may read only what is theirs deletes what they may not read, without
// seeing what it is called.
func TestQuestionHoldsNoTitleThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	id := keep(t, person, kept{title: "the owner's own"})[0].String()
	if saved := person.Post("/settings", "time_zone", "Europe/Berlin", "managers_read", "own", "members_read", "own", "viewers_read", "none"); saved.Status != http.StatusOK {
		t.Fatalf("saving answers %d", saved.Status)
	}
	admin := person.Colleague(tenants.Admin)
	for _, page := range []webtest.Page{admin.Get("/sessions/delete?id=" + id), admin.Post("/sessions/delete", "id", id, "confirm", "x")} {
		if strings.Contains(page.HTML, "the owner&#39;s own") || strings.Contains(page.HTML, "the owner's own") || !strings.Contains(page.Text("#dlg-delete"), id[:8]) {
			t.Errorf("the question is %q", page.Text("#dlg-delete"))
		}
	}
	for _, role := range []tenants.Role{tenants.Regular, tenants.Viewer} {
		colleague := person.Colleague(role)
		if page := colleague.Post("/sessions/delete", "id", id, "confirm", "delete 1"); page.Status != http.StatusForbidden {
			t.Errorf("%s deletes with %d", role, page.Status)
		}
	}
	if len(deletions(t, person)) != 0 {
		t.Error("it is deleted")
	}
}
