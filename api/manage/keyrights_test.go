package manage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
)

const (
	toEveryone = `rehydrator: {scope: workspace}`
	toProject  = `rehydrator: {scope: project}`
	toMyself   = `rehydrator: {scope: person}`
)

// rights returns what a key may decide that is presented now.
func (w *tenant) rights(t *testing.T, secret string) tenants.KeyRights {
	t.Helper()
	key, err := w.keys.Authenticate(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	key.Rights.Private = false // says nothing of text
	return key.Rights
}

// refusedPipeline wants an answer that names a setting and what may be set at most.
func (r reply) refusedPipeline(t *testing.T, field string) {
	t.Helper()
	r.want(t, http.StatusUnprocessableEntity)
	if r.field(t) != field || !strings.Contains(string(r.body), "at most person") {
		t.Errorf("%s: %s", r.request, r.body)
	}
}

// S46: by whichever way a key gets its pipeline, that goes no further than the people behind the
// key may read and approve.
func TestPipelineOfAKeyIsWithinTheRightsOfItsPeople(t *testing.T) {
	t.Parallel()
	p := setup(t)
	w := p.member(t, "ant")
	member, admin := w.colleague(t, tenants.Regular), w.colleague(t, tenants.Admin)
	create := func(as *tenant, pipeline string) reply {
		return as.send(t, http.MethodPost, "/keys", fmt.Sprintf(`{"name":"k","scopes":["proxy"],"pipeline":%q}`, pipeline))
	}
	create(member, toEveryone).refusedPipeline(t, "pipeline.rehydrator.scope")
	create(member, toProject).refusedPipeline(t, "pipeline.rehydrator.scope")
	create(member, `semantic-cache: {scope: "workspace"}`).refusedPipeline(t, "pipeline.semantic-cache.scope")
	for _, pipeline := range []string{toEveryone, toProject} {
		create(w, pipeline).want(t, http.StatusCreated)
		create(admin, pipeline).want(t, http.StatusCreated)
	}

	made := create(member, toMyself)
	made.want(t, http.StatusCreated)
	var key struct{ ID, Secret string }
	made.decode(t, &key)
	change := fmt.Sprintf(`{"pipeline":%q}`, toEveryone)
	member.send(t, http.MethodPatch, "/keys/"+key.ID, change).refusedPipeline(t, "pipeline.rehydrator.scope")
	// It is the member's key, no matter who changes it.
	for _, as := range []*tenant{w, admin} {
		as.send(t, http.MethodPatch, "/keys/"+key.ID, change).refusedPipeline(t, "pipeline.rehydrator.scope")
	}
	file := fmt.Sprintf("palimpsest: 1\napi_keys:\n  - {id: %s, name: k, pipeline: %q}\n", key.ID, toEveryone)
	imported := w.send(t, http.MethodPost, "/config/import", file, "Content-Type", "application/yaml")
	imported.want(t, http.StatusUnprocessableEntity)
	if !strings.Contains(string(imported.body), "rehydrator.scope") || !strings.Contains(string(imported.body), "at most person") {
		t.Errorf("import: %s", imported.body)
	}
	_, manage := admin.createKey(t, "manage")
	w.sendWith(t, manage, http.MethodPatch, "/keys/"+key.ID, change).refusedPipeline(t, "pipeline.rehydrator.scope")

	// What was allowed when it was set stays: it is bounded when it is used.
	w.changeRole(t, member, tenants.Admin)
	member.send(t, http.MethodPatch, "/keys/"+key.ID, change).want(t, http.StatusOK)
	if rights := w.rights(t, key.Secret); rights != (tenants.KeyRights{Reads: tenants.ReadsAll}) {
		t.Errorf("of an admin: %+v", rights)
	}
	w.changeRole(t, member, tenants.Regular)
	member.send(t, http.MethodPatch, "/keys/"+key.ID, `{"name":"renamed"}`).want(t, http.StatusOK)
	if rights := w.rights(t, key.Secret); rights != (tenants.KeyRights{Reads: tenants.ReadsOwn}) {
		t.Errorf("of a member again: %+v", rights)
	}
	// Nobody widens it by taking it over.
	var rotated struct{ Secret string }
	w.send(t, http.MethodPost, "/keys/"+key.ID+"/rotate", `{"grace":"1h"}`).decode(t, &rotated)
	w.forget(w.workspace)
	for _, secret := range []string{key.Secret, rotated.Secret} {
		if rights := w.rights(t, secret); rights != (tenants.KeyRights{Reads: tenants.ReadsOwn}) {
			t.Errorf("of a rotated key: %+v", rights)
		}
	}
	w.setPolicy(t, tenants.ReadsAll, tenants.ReadsAll, tenants.ReadsNone)
	w.forget(w.workspace)
	if rights := w.rights(t, key.Secret); rights != (tenants.KeyRights{Reads: tenants.ReadsAll}) {
		t.Errorf("of a member who may read everything: %+v", rights)
	}
	create(member, toEveryone).want(t, http.StatusCreated)

	w.send(t, http.MethodDelete, "/members/"+member.userID(t)+"?keys=keep", "").want(t, http.StatusNoContent)
	w.forget(w.workspace)
	if rights := w.rights(t, rotated.Secret); rights != (tenants.KeyRights{Reads: tenants.ReadsNone}) {
		t.Errorf("of a former member: %+v", rights)
	}
}
