package manage_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"
)

type listedKey struct {
	ID, Name, Prefix, Suffix, Pipeline, Secret string
	Scopes                                     []string
	RevokedAt                                  *time.Time `json:"revoked_at"`
	ExpiresAt                                  *time.Time `json:"expires_at"`
}

func (w *tenant) listKeys(t *testing.T) []listedKey {
	t.Helper()
	answer := w.send(t, http.MethodGet, "/keys", "")
	answer.want(t, http.StatusOK)
	var list struct{ Data []listedKey }
	answer.decode(t, &list)
	return list.Data
}

// S7
func TestAKeysSecretIsShownOnce(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	answer := w.send(t, http.MethodPost, "/keys", `{"name":" laptop ","scopes":["manage","read"],"expires_at":"2999-01-01T00:00:00Z","pipeline":"ipc: {targetUtilization: 0.5}"}`)
	answer.want(t, http.StatusCreated)
	var created listedKey
	answer.decode(t, &created)
	if !strings.HasPrefix(created.Secret, "plm_") || answer.header.Get("Cache-Control") != "no-store" {
		t.Errorf("created %+v with headers %v", created, answer.header)
	}
	listed := w.listKeys(t)
	if len(listed) != 1 || listed[0].Secret != "" || listed[0].Name != "laptop" || listed[0].Pipeline == "" || listed[0].ExpiresAt == nil {
		t.Fatalf("listed are %+v", listed)
	}
	if !strings.HasPrefix(created.Secret, listed[0].Prefix) || !strings.HasSuffix(created.Secret, listed[0].Suffix) {
		t.Errorf("the key %s is listed as %s…%s", created.Secret, listed[0].Prefix, listed[0].Suffix)
	}
	if strings.Contains(w.db.Rows(t, w.workspace), created.Secret) {
		t.Error("the secret is in the database")
	}

	me := w.sendWith(t, created.Secret, http.MethodGet, "/me", "")
	me.want(t, http.StatusOK)
	if !bytes.Contains(me.body, []byte(created.ID)) || !bytes.Contains(me.body, []byte(`"user":null`)) {
		t.Errorf("the key is told %s", me.body)
	}
}

func TestARevokedKeyIsRefused(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	id, secret := w.createKey(t, "manage")
	w.sendWith(t, secret, http.MethodGet, "/keys", "").want(t, http.StatusOK)
	w.send(t, http.MethodDelete, "/keys/"+id, "").want(t, http.StatusNoContent)
	w.keys.Changed(w.workspace.String()) // as the notification of the revocation has every replica do
	w.sendWith(t, secret, http.MethodGet, "/keys", "").want(t, http.StatusUnauthorized)
	if listed := w.listKeys(t); len(listed) != 1 || listed[0].RevokedAt == nil {
		t.Errorf("listed are %+v", listed)
	}
}

func TestAKeyDoesOnlyWhatItsScopesAllow(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	for scope, statuses := range map[string][2]int{
		"manage": {http.StatusOK, http.StatusCreated},
		"read":   {http.StatusOK, http.StatusForbidden},
		"proxy":  {http.StatusForbidden, http.StatusForbidden},
		"recall": {http.StatusForbidden, http.StatusForbidden},
	} {
		_, secret := w.createKey(t, scope)
		w.sendWith(t, secret, http.MethodGet, "/keys", "").want(t, statuses[0])
		w.sendWith(t, secret, http.MethodPost, "/keys", `{"name":"another"}`).want(t, statuses[1])
	}
}

func TestAKeyThatCannotBeMadeNamesTheField(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	for body, field := range map[string]string{
		`{}`:            "name",
		`{"name":"  "}`: "name",
		`{"name":"` + strings.Repeat("é", 101) + `"}`:                     "name",
		`{"name":"a","scopes":["all"]}`:                                   "scopes",
		`{"name":"a","scopes":"proxy"}`:                                   "scopes",
		`{"name":"a","expires_at":"2020-01-01T00:00:00Z"}`:                "expires_at",
		`{"name":"a","pipeline":"ipc: {targetUtilization: 2}"}`:           "pipeline.ipc.targetUtilization",
		`{"name":"a","pipeline":"ipc: {targetUtilisation: 0.5}"}`:         "pipeline.ipc.targetUtilisation",
		`{"name":"a","pipeline":": nonsense"}`:                            "pipeline",
		`{"name":"a","secret":"plm_mine"}`:                                "secret",
		`{"name":"a","scopes":["proxy"],"workspace":"someone else's id"}`: "workspace",
	} {
		answer := w.send(t, http.MethodPost, "/keys", body)
		answer.want(t, http.StatusUnprocessableEntity)
		if got := answer.field(t); got != field {
			t.Errorf("%s: field %q, want %q", body, got, field)
		}
	}
	if listed := w.listKeys(t); len(listed) != 0 {
		t.Errorf("keys were made: %+v", listed)
	}
}

// A key with every scope learns that none would do, not that it lacks the one it has.
func TestKeyIsToldWhatNoKeyMay(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ant")
	for _, path := range []string{"DELETE /workspace", "POST /billing/portal"} {
		method, path, _ := strings.Cut(path, " ")
		answer := w.sendWith(t, w.manage, method, path, "")
		answer.want(t, http.StatusForbidden)
		if !strings.Contains(string(answer.body), "No API key may do this") {
			t.Errorf("%s: %s", answer.request, answer.body)
		}
		if answer = w.sendWith(t, w.read, method, path, ""); !strings.Contains(string(answer.body), "lacks the scope manage") {
			t.Errorf("%s: %s", answer.request, answer.body)
		}
	}
}
