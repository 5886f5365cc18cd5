package manage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
)

// remark comments on the tenant's session and returns the comment's id.
func (w *tenant) remark(t *testing.T, body string) string {
	t.Helper()
	answer := w.send(t, http.MethodPost, w.path("/comments"), body)
	answer.want(t, http.StatusCreated)
	var added struct{ ID string }
	answer.decode(t, &added)
	return added.ID
}

func TestCommentsAreAddedListedAndDeleted(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ant")
	path := w.path("/comments")
	second := w.remark(t, `{"text":" <b>Here</b> it went wrong.\nKey sk-ant-0123456789abcdef ","message":2}`)
	var listed struct {
		Data []struct {
			ID, Text string
			Email    string `json:"author_email"`
			Message  *int
			Lane     string
		}
	}
	w.send(t, http.MethodGet, path, "").decode(t, &listed)
	if len(listed.Data) != 2 || listed.Data[0].ID != w.comment || listed.Data[0].Message != nil || listed.Data[1].ID != second {
		t.Fatalf("listed %+v", listed)
	}
	if on := listed.Data[1]; on.Text != "<b>Here</b> it went wrong.\nKey [redacted]" || on.Email != "ant@example.com" || *on.Message != 2 || on.Lane != w.lane.String() {
		t.Errorf("on a message: %+v", on)
	}
	var one struct {
		Comments int
		Starred  bool
	}
	w.send(t, http.MethodGet, w.path(""), "").decode(t, &one)
	if one.Comments != 2 || !one.Starred {
		t.Errorf("the session says %+v", one)
	}
	for body, field := range map[string]string{
		`{"text":" \n"}`: "text", `{"text":"` + strings.Repeat("é", tenants.MaxComment+1) + `"}`: "text", `{"text":"x","lane":"` + w.lane.String() + `"}`: "message",
	} {
		answer := w.send(t, http.MethodPost, path, body)
		answer.want(t, http.StatusUnprocessableEntity)
		if answer.field(t) != field {
			t.Errorf("%.40s: the field is %s", body, answer.field(t))
		}
	}
	for _, message := range []int{-1, len(w.messages)} {
		w.send(t, http.MethodPost, path, fmt.Sprintf(`{"text":"x","message":%d}`, message)).want(t, http.StatusNotFound)
	}
	w.send(t, http.MethodDelete, path+"/"+second, "").want(t, http.StatusNoContent)
	w.send(t, http.MethodDelete, path+"/"+second, "").want(t, http.StatusNotFound)
}

// Members delete their own comments, admins any; who may not read a session reads no comment on it.
func TestCommentsArePermittedByRole(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ant")
	w.setPolicy(t, tenants.ReadsAll, tenants.ReadsAll, tenants.ReadsAll)
	member, admin, viewer := w.colleague(t, tenants.Regular), w.colleague(t, tenants.Admin), w.colleague(t, tenants.Viewer)
	path := w.path("/comments")
	for _, one := range []*tenant{member, admin, viewer} {
		one.session = w.session
	}
	of := member.remark(t, `{"text":"The member's."}`)
	viewer.send(t, http.MethodPost, path, `{"text":"x"}`).want(t, http.StatusForbidden)
	if answer := viewer.send(t, http.MethodGet, path, ""); answer.status != http.StatusOK || !strings.Contains(string(answer.body), "The member's.") {
		t.Errorf("a viewer reads status %d: %s", answer.status, answer.body)
	}
	viewer.send(t, http.MethodDelete, path+"/"+of, "").want(t, http.StatusForbidden)
	member.send(t, http.MethodDelete, path+"/"+w.comment, "").want(t, http.StatusForbidden)
	admin.send(t, http.MethodDelete, path+"/"+w.comment, "").want(t, http.StatusNoContent)
	member.send(t, http.MethodDelete, path+"/"+of, "").want(t, http.StatusNoContent)

	w.setPolicy(t, tenants.ReadsAll, tenants.ReadsOwn, tenants.ReadsNone)
	for name, one := range map[string]*tenant{"a member": member, "a viewer": viewer} {
		if answer := one.send(t, http.MethodGet, path, ""); answer.status < http.StatusBadRequest {
			t.Errorf("%s who may not read the session: status %d: %s", name, answer.status, answer.body)
		}
	}
	member.send(t, http.MethodPost, path, `{"text":"x"}`).want(t, http.StatusNotFound)
	w.setPolicy(t, tenants.ReadsOwn, tenants.ReadsOwn, tenants.ReadsNone)
	admin.send(t, http.MethodGet, path, "").want(t, http.StatusForbidden)
	admin.send(t, http.MethodPost, path, `{"text":"x"}`).want(t, http.StatusForbidden)
}

func TestStarsAreOnesOwnAndNarrowTheList(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ant")
	viewer := w.colleague(t, tenants.Viewer)
	w.setPolicy(t, tenants.ReadsAll, tenants.ReadsOwn, tenants.ReadsAll)
	count := func(of *tenant, query string) int {
		var page struct{ Data []struct{ ID string } }
		of.send(t, http.MethodGet, "/sessions"+query, "").decode(t, &page)
		return len(page.Data)
	}
	if own, others := count(w, "?starred=true"), count(viewer, "?starred=true"); own != 1 || others != 0 {
		t.Errorf("%d starred, and %d of a colleague; want 1 and 0", own, others)
	}
	viewer.send(t, http.MethodPut, w.path("/star"), "").want(t, http.StatusNoContent)
	viewer.send(t, http.MethodPut, w.path("/star"), "").want(t, http.StatusNoContent)
	w.send(t, http.MethodDelete, w.path("/star"), "").want(t, http.StatusNoContent)
	w.send(t, http.MethodDelete, w.path("/star"), "").want(t, http.StatusNoContent)
	if own, others := count(w, "?starred=true"), count(viewer, "?starred=true"); own != 0 || others != 1 {
		t.Errorf("%d starred, and %d of a colleague; want 0 and 1", own, others)
	}
	w.send(t, http.MethodGet, "/sessions?starred=no", "").want(t, http.StatusUnprocessableEntity)
}

// An API key stars and comments for the person behind it.
func TestKeyStarsAndCommentsForItsPerson(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ant")
	other := w.another(t)
	starred := func(key, query string) string {
		var page struct {
			Data []struct {
				ID      string
				Starred bool
			}
		}
		w.sendWith(t, key, http.MethodGet, "/sessions"+query, "").decode(t, &page)
		var ids []string
		for _, one := range page.Data {
			if one.Starred {
				ids = append(ids, one.ID)
			}
		}
		return strings.Join(ids, ", ")
	}
	w.send(t, http.MethodDelete, w.path("/star"), "").want(t, http.StatusNoContent)
	w.sendWith(t, w.manage, http.MethodPut, "/sessions/"+other.String()+"/star", "").want(t, http.StatusNoContent)
	for name, got := range map[string]string{
		"the key's list": starred(w.manage, ""), "the stars of the key": starred(w.manage, "?starred=true"), "the stars of another key": starred(w.read, "?starred=true"),
	} {
		if got != other.String() {
			t.Errorf("%s has %q, want %s", name, got, other)
		}
	}
	var own struct{ Data []struct{ ID string } }
	if w.send(t, http.MethodGet, "/sessions?starred=true", "").decode(t, &own); len(own.Data) != 1 || own.Data[0].ID != other.String() {
		t.Errorf("the person has starred %+v", own.Data)
	}
	var said struct {
		Author string
		Email  string `json:"author_email"`
	}
	answer := w.sendWith(t, w.manage, http.MethodPost, w.path("/comments"), `{"text":"By a script."}`)
	answer.want(t, http.StatusCreated)
	if answer.decode(t, &said); said.Author != w.userID(t) || said.Email != "ant@example.com" {
		t.Errorf("the author is %+v", said)
	}
}
