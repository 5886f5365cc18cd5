package manage_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
)

// scopesOf returns the scopes of each API key of a workspace as they are stored.
func (w *tenant) scopesOf(t *testing.T) map[string]string {
	t.Helper()
	stored := map[string]string{}
	keys, err := w.db.DB.APIKeys.APIKeys(tenants.OwnWork(t.Context()), w.workspace)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		stored[key.ID.String()] = key.Fields()["scopes"]
	}
	return stored
}

// S3, S34: permission is decided on the scopes that are stored, however they are written.
func TestMemberCannotMintAnAdminKey(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ant")
	member := w.colleague(t, tenants.Regular)
	for scopes, status := range map[string]int{
		`["manage"]`: http.StatusForbidden, `["proxy","manage"]`: http.StatusForbidden, `["read"],"scopes":["manage"]`: http.StatusUnprocessableEntity,
		`["proxy"],"Scopes":["manage"]`: http.StatusUnprocessableEntity, `["manage"],"scopes":["read"]`: http.StatusUnprocessableEntity,
		`["manage"],"\u017Fcopes":["read"]`: http.StatusUnprocessableEntity, `["man\u0061ge"]`: http.StatusForbidden,
		`["proxy,manage"]`: http.StatusUnprocessableEntity, `[" manage"]`: http.StatusUnprocessableEntity, `["manage "]`: http.StatusUnprocessableEntity,
		`["manage,"]`: http.StatusUnprocessableEntity, `["Manage"]`: http.StatusUnprocessableEntity, `["proxy",""]`: http.StatusUnprocessableEntity,
		`["manage\u0000"]`: http.StatusUnprocessableEntity, `["\tmanage"]`: http.StatusUnprocessableEntity, `["*"]`: http.StatusUnprocessableEntity,
	} {
		answer := member.send(t, http.MethodPost, "/keys", `{"name":"x","scopes":`+scopes+`}`)
		if answer.status != status {
			t.Errorf("scopes %s: status %d, want %d: %s", scopes, answer.status, status, answer.body)
		}
	}
	if stored := w.scopesOf(t); len(stored) != 0 {
		t.Errorf("keys were made: %v", stored)
	}
	member.send(t, http.MethodPost, "/keys", `{"name":"x","scopes":["proxy","read","proxy"]}`).want(t, http.StatusCreated)
	for _, scopes := range w.scopesOf(t) {
		if scopes != "proxy,read" {
			t.Errorf("stored %s", scopes)
		}
	}
}

// changeRole gives a colleague another role as an owner does.
func (w *tenant) changeRole(t *testing.T, colleague *tenant, role tenants.Role) {
	t.Helper()
	w.send(t, http.MethodPatch, "/members/"+colleague.userID(t), fmt.Sprintf(`{"role":%q}`, role)).want(t, http.StatusNoContent)
	w.forget(w.workspace)
}

// S3, S36
func TestKeyMayNoMoreThanItsCreatorMayNow(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ant")
	admin := w.colleague(t, tenants.Admin)
	_, manage := admin.createKey(t, "manage")
	child := struct{ Secret string }{}
	made := admin.sendWith(t, manage, http.MethodPost, "/keys", `{"name":"made by a key","scopes":["manage","read"]}`)
	made.want(t, http.StatusCreated)
	made.decode(t, &child)
	raise := fmt.Sprintf(`{"role":%q}`, tenants.Admin)
	path := "/members/" + admin.userID(t)

	w.changeRole(t, admin, tenants.Viewer)
	for name, secret := range map[string]string{"its key": manage, "a key of its key": child.Secret} {
		if answer := w.sendWith(t, secret, http.MethodPatch, path, raise); answer.status != http.StatusForbidden {
			t.Errorf("%s: status %d: %s", name, answer.status, answer.body)
		}
		if answer := w.sendWith(t, secret, http.MethodPost, "/keys", `{"name":"y","scopes":["manage"]}`); answer.status != http.StatusForbidden {
			t.Errorf("%s makes a key: status %d: %s", name, answer.status, answer.body)
		}
	}
	w.sendWith(t, child.Secret, http.MethodGet, "/keys", "").want(t, http.StatusOK) // a viewer may

	w.changeRole(t, admin, tenants.Billing)
	w.sendWith(t, child.Secret, http.MethodGet, "/keys", "").want(t, http.StatusForbidden)

	w.changeRole(t, admin, tenants.Admin)
	w.sendWith(t, manage, http.MethodGet, "/members", "").want(t, http.StatusOK)
}

// S3: what was allowed when a request began is looked at again where it is stored.
func TestKeyOfADemotedAdminChangesNobodyEvenIfItIsStillBelieved(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ant")
	admin := w.colleague(t, tenants.Admin)
	_, manage := admin.createKey(t, "manage")
	w.sendWith(t, manage, http.MethodGet, "/keys", "").want(t, http.StatusOK)
	id := admin.userID(t)
	w.send(t, http.MethodPatch, "/members/"+id, `{"role":"viewer"}`).want(t, http.StatusNoContent)
	for _, call := range [][3]string{
		{http.MethodPatch, "/members/" + id, `{"role":"admin"}`},
		{http.MethodPost, "/invitations", `{"email":"me@example.com","role":"admin"}`},
		{http.MethodPost, "/keys", `{"name":"y","scopes":["manage"]}`},
	} {
		if answer := w.sendWith(t, manage, call[0], call[1], call[2]); answer.status != http.StatusForbidden {
			t.Errorf("%s: status %d: %s", answer.request, answer.status, answer.body)
		}
	}
}

// S3
func TestKeptKeysOfAFormerMemberOnlySendRequests(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(owner, admin *tenant) reply{
		"removed": func(owner, admin *tenant) reply {
			return owner.send(t, http.MethodDelete, "/members/"+admin.userID(t)+"?keys=keep", "")
		},
		"left": func(_, admin *tenant) reply {
			return admin.send(t, http.MethodPost, "/workspaces/"+admin.workspace.String()+"/leave?keys=keep", "")
		},
	} {
		w := setup(t).member(t, "ant")
		admin := w.colleague(t, tenants.Admin)
		var key struct{ ID, Secret string }
		made := admin.send(t, http.MethodPost, "/keys", `{"name":"both","scopes":["proxy","manage","recall"]}`)
		made.want(t, http.StatusCreated)
		made.decode(t, &key)
		onlyManage, _ := admin.createKey(t, "manage")
		end(w, admin).want(t, http.StatusNoContent)
		w.forget(w.workspace)
		w.sendWith(t, key.Secret, http.MethodGet, "/members", "").want(t, http.StatusForbidden)
		known, err := w.keys.Authenticate(t.Context(), key.Secret)
		if err != nil || !slices.Equal(known.Scopes, []tenants.Scope{tenants.ScopeProxy}) || known.Person.String() != w.userID(t) {
			t.Errorf("%s: the kept key is %+v, %v", name, known, err)
		}
		keys, err := w.db.DB.APIKeys.APIKeys(tenants.OwnWork(t.Context()), w.workspace)
		if err != nil {
			t.Fatal(err)
		}
		for _, stored := range keys {
			if stored.ID.String() == onlyManage && stored.RevokedAt == nil {
				t.Errorf("%s: a key that sent no requests is kept", name)
			}
		}
	}
}

// S3, S36
func TestKeyMakesNoKeyBeyondItsOwnBounds(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ant")
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	var bounded, wide struct{ ID, Secret string }
	made := w.send(t, http.MethodPost, "/keys", fmt.Sprintf(
		`{"name":"bounded","scopes":["manage"],"expires_at":%q,"allowed_ips":["127.0.0.0/8","::1"],"concurrency":5}`, end.Format(time.RFC3339)))
	made.want(t, http.StatusCreated)
	made.decode(t, &bounded)
	made = w.send(t, http.MethodPost, "/keys", `{"name":"wide","scopes":["proxy"]}`)
	made.want(t, http.StatusCreated)
	made.decode(t, &wide)
	within := fmt.Sprintf(`"expires_at":%q,"allowed_ips":["127.0.0.1"],"concurrency":5`, end.Format(time.RFC3339))
	later := fmt.Sprintf("%q", end.Add(time.Second).Format(time.RFC3339))
	for what, call := range map[string][3]string{
		"no end":          {http.MethodPost, "/keys", `{"name":"x","scopes":["manage"],"allowed_ips":["127.0.0.1"],"concurrency":5}`},
		"a later end":     {http.MethodPost, "/keys", strings.Replace(`{"name":"x",`+within+`}`, fmt.Sprintf("%q", end.Format(time.RFC3339)), later, 1)},
		"no addresses":    {http.MethodPost, "/keys", fmt.Sprintf(`{"name":"x","expires_at":%q,"concurrency":5}`, end.Format(time.RFC3339))},
		"other addresses": {http.MethodPost, "/keys", strings.Replace(`{"name":"x",`+within+`}`, "127.0.0.1", "10.0.0.1", 1)},
		"all addresses":   {http.MethodPost, "/keys", strings.Replace(`{"name":"x",`+within+`}`, "127.0.0.1", "0.0.0.0/0", 1)},
		"no concurrency":  {http.MethodPost, "/keys", strings.Replace(`{"name":"x",`+within+`}`, `"concurrency":5`, `"concurrency":0`, 1)},
		"itself, forever": {http.MethodPatch, "/keys/" + bounded.ID, `{"expires_at":null}`},
		"itself, all":     {http.MethodPatch, "/keys/" + bounded.ID, `{"allowed_ips":[]}`},
		"a secret":        {http.MethodPost, "/keys/" + wide.ID + "/rotate", `{}`},
	} {
		if answer := w.sendWith(t, bounded.Secret, call[0], call[1], call[2]); answer.status != http.StatusForbidden {
			t.Errorf("%s: status %d: %s", what, answer.status, answer.body)
		}
	}
	w.sendWith(t, bounded.Secret, http.MethodPost, "/keys", `{"name":"x",`+within+`}`).want(t, http.StatusCreated)
	// A wider key may be renamed and narrowed, not widened.
	w.sendWith(t, bounded.Secret, http.MethodPatch, "/keys/"+wide.ID, `{"name":"renamed","concurrency":9}`).want(t, http.StatusOK)
	w.sendWith(t, bounded.Secret, http.MethodPatch, "/keys/"+wide.ID, `{"concurrency":10}`).want(t, http.StatusForbidden)
}

// S3: a secret that ends soon, because its key was rotated, makes none that stays.
func TestRotatedOutSecretMakesNoKeyThatOutlivesIt(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ant")
	id, old := w.createKey(t, "manage")
	w.send(t, http.MethodPost, "/keys/"+id+"/rotate", `{"grace":"1h"}`).want(t, http.StatusOK)
	w.forget(w.workspace)
	w.sendWith(t, old, http.MethodPost, "/keys", `{"name":"x","scopes":["manage"]}`).want(t, http.StatusForbidden)
	w.sendWith(t, old, http.MethodPost, "/keys/"+id+"/rotate", `{}`).want(t, http.StatusForbidden)
}

// S3: the person who was shown the newest secret stands behind the key.
func TestWhoRotatesAKeyStandsBehindIt(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ant")
	admin := w.colleague(t, tenants.Admin)
	id, _ := w.createKey(t, "manage")
	var rotated struct{ Secret string }
	answer := admin.send(t, http.MethodPost, "/keys/"+id+"/rotate", `{}`)
	answer.want(t, http.StatusOK)
	answer.decode(t, &rotated)
	w.changeRole(t, admin, tenants.Viewer)
	w.sendWith(t, rotated.Secret, http.MethodGet, "/members", "").want(t, http.StatusForbidden)
}
