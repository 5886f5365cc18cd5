package manage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
)

// S12: over the API, too, a link is answered once and lets its address in.
func TestInvitedPersonJoinsOverTheAPI(t *testing.T) {
	t.Parallel()
	p := setup(t)
	owner, grace := p.member(t, "northbeam"), p.member(t, "grace")

	answer := owner.send(t, http.MethodPost, "/members", `{"email":"grace@example.com","role":"admin"}`)
	answer.want(t, http.StatusCreated)
	var invited struct{ ID, Link string }
	answer.decode(t, &invited)
	if list := owner.send(t, http.MethodGet, "/invitations", ""); !strings.Contains(string(list.body), invited.ID) || strings.Contains(string(list.body), "link") {
		t.Errorf("the list is %s", list.body)
	}
	_, secret, _ := strings.Cut(invited.Link, "/invite/")
	accept := fmt.Sprintf(`{"token":%q}`, secret)
	if other := owner.send(t, http.MethodPost, "/invitations/accept", accept); other.status != http.StatusForbidden || other.field(t) != "token" {
		t.Errorf("with another address: %d %s", other.status, other.body)
	}
	grace.send(t, http.MethodPost, "/invitations/accept", accept).want(t, http.StatusNoContent)
	grace.send(t, http.MethodPost, "/invitations/accept", accept).want(t, http.StatusNotFound)

	var me struct {
		Workspace  struct{ Name string }
		Role       tenants.Role
		Workspaces []struct {
			ID, Name string
			Current  bool
		}
	}
	grace.send(t, http.MethodGet, "/me", "").decode(t, &me)
	if me.Workspace.Name != "northbeam" || me.Role != tenants.Admin || len(me.Workspaces) != 2 || me.Workspaces[0].Current || !me.Workspaces[1].Current {
		t.Errorf("she is %+v", me)
	}
	grace.send(t, http.MethodPost, "/workspaces/"+me.Workspaces[0].ID+"/enter", "").want(t, http.StatusNoContent)
	if in := grace.send(t, http.MethodGet, "/members", ""); strings.Contains(string(in.body), "northbeam@example.com") {
		t.Errorf("she still sees %s", in.body)
	}
}

func TestMembersAreChangedByTheRulesOverTheAPI(t *testing.T) {
	t.Parallel()
	p := setup(t)
	owner := p.member(t, "northbeam")
	admin := owner.colleague(t, tenants.Admin)
	above, below := "/members/"+owner.userID(t), "/members/"+admin.userID(t)

	admin.send(t, http.MethodPatch, above, `{"role":"viewer"}`).want(t, http.StatusForbidden)
	admin.send(t, http.MethodPatch, below, `{"role":"owner"}`).want(t, http.StatusForbidden)
	admin.send(t, http.MethodDelete, above, "").want(t, http.StatusForbidden)
	owner.send(t, http.MethodPatch, above, `{"role":"viewer"}`).want(t, http.StatusConflict)
	owner.send(t, http.MethodPatch, below, `{"role":"root"}`).want(t, http.StatusUnprocessableEntity)
	if keys := owner.send(t, http.MethodDelete, below+"?keys=burn", ""); keys.status != http.StatusUnprocessableEntity || keys.field(t) != "keys" {
		t.Errorf("status %d: %s", keys.status, keys.body)
	}
	owner.send(t, http.MethodDelete, below+"?keys=keep", "").want(t, http.StatusNoContent)
	admin.send(t, http.MethodGet, "/me", "").want(t, http.StatusUnauthorized)
}

func TestWhoBelongsToNoWorkspaceCanGetIntoOne(t *testing.T) {
	t.Parallel()
	p := setup(t)
	owner := p.member(t, "northbeam")
	owner.colleague(t, tenants.Owner)
	owner.send(t, http.MethodPost, "/workspaces/"+owner.workspace.String()+"/leave", "").want(t, http.StatusNoContent)

	if me := owner.send(t, http.MethodGet, "/me", ""); me.status != http.StatusOK || !strings.Contains(string(me.body), `"workspace":null`) {
		t.Errorf("status %d: %s", me.status, me.body)
	}
	owner.send(t, http.MethodGet, "/keys", "").want(t, http.StatusForbidden)
	owner.send(t, http.MethodPost, "/workspaces", `{"name":"another"}`).want(t, http.StatusCreated)
	owner.send(t, http.MethodGet, "/keys", "").want(t, http.StatusOK)
}

// What is left or renamed is the workspace that the login works in, and only if the path says so.
func TestLeavingAndRenamingNameTheWorkspaceOfTheLogin(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ant")
	first := w.workspace.String()
	w.colleague(t, tenants.Owner)
	w.send(t, http.MethodPost, "/workspaces", `{"name":"second"}`).want(t, http.StatusCreated) // the login works there now
	w.send(t, http.MethodPost, "/workspaces/"+first+"/leave", "").want(t, http.StatusNotFound)
	w.send(t, http.MethodPatch, "/workspaces/"+first, `{"name":"renamed"}`).want(t, http.StatusNotFound)
	var page struct{ Data []struct{ ID, Name string } }
	w.send(t, http.MethodGet, "/workspaces", "").decode(t, &page)
	if len(page.Data) != 2 || page.Data[0].Name != "ant" || page.Data[1].Name != "second" {
		t.Errorf("they belong to %+v", page.Data)
	}
}

// S3: with a member their keys end, unless they are to be kept.
func TestKeysEndWithTheirMemberUnlessTheyAreKept(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ant")
	for query, revoked := range map[string]bool{"": true, "?keys=revoke": true, "?keys=keep": false} {
		member := w.colleague(t, tenants.Regular)
		id, _ := member.createKey(t, "proxy")
		w.send(t, http.MethodDelete, "/members/"+member.userID(t)+query, "").want(t, http.StatusNoContent)
		keys, err := w.db.DB.APIKeys.APIKeys(tenants.OwnWork(t.Context()), w.workspace)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if key.ID.String() == id && (key.RevokedAt != nil) != revoked {
				t.Errorf("%q: the key was revoked at %v", query, key.RevokedAt)
			}
		}
	}
}
