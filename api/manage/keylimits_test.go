package manage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
)

// heldKey is a key with its limits as the API shows them.
type heldKey struct {
	ID, Name, Secret, Prefix, Pipeline string
	Models                             []string `json:"allowed_models"`
	Addresses                          []string `json:"allowed_ips"`
	Lock                               bool     `json:"lock_overrides"`
	NoStore                            bool     `json:"no_store"`
	Requests                           int      `json:"requests_per_minute"`
	Concurrency                        int      `json:"concurrency"`
	Day                                float64  `json:"budget_day_usd"`
	ExpiresAt                          *string  `json:"expires_at"`
	OldUntil                           *string  `json:"old_secret_until"`
}

func TestLimitsAreCreatedAndChangedOneByOne(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	answer := w.send(t, http.MethodPost, "/keys", `{"name":"ci","allowed_models":["claude-*"],"allowed_ips":["10.0.0.0/8","203.0.113.7"],
		"lock_overrides":true,"no_store":true,"requests_per_minute":60,"budget_day_usd":7.25,"expires_at":"2999-01-01T00:00:00Z"}`)
	answer.want(t, http.StatusCreated)
	var key heldKey
	answer.decode(t, &key)
	if fmt.Sprint(key.Models, key.Addresses, key.Lock, key.Requests, key.Day) != "[claude-*] [10.0.0.0/8 203.0.113.7] true 60 7.25" || !key.NoStore {
		t.Errorf("created %+v", key)
	}

	answer = w.send(t, http.MethodPatch, "/keys/"+key.ID, `{"name":" agents ","allowed_models":[],"concurrency":5,"requests_per_minute":0,"no_store":false}`)
	answer.want(t, http.StatusOK)
	key = heldKey{}
	answer.decode(t, &key)
	if key.Name != "agents" || fmt.Sprint(key.Models, key.Addresses, key.Lock, key.Requests, key.Concurrency, key.Day) != "[] [10.0.0.0/8 203.0.113.7] true 0 5 7.25" || key.ExpiresAt == nil || key.Secret != "" || key.NoStore {
		t.Errorf("changed %+v", key)
	}
	answer = w.send(t, http.MethodPatch, "/keys/"+key.ID, `{"expires_at":null}`)
	answer.want(t, http.StatusOK)
	answer.decode(t, &key)
	if key.ExpiresAt != nil || key.Concurrency != 5 {
		t.Errorf("changed %+v", key)
	}
	for body, field := range map[string]string{
		`{"budget_day_usd":-1}`:                 "budget_day_usd",
		`{"budget_month_usd":1e300}`:            "budget_month_usd",
		`{"budget_day_usd":0.0000004}`:          "budget_day_usd",
		`{"budget_month_usd":0.0000009}`:        "budget_month_usd",
		`{"concurrency":1.5}`:                   "concurrency",
		`{"allowed_models":"claude"}`:           "allowed_models",
		`{"allowed_endpoints":["v1"]}`:          "allowed_endpoints",
		`{"allowed_ips":["here"]}`:              "allowed_ips",
		`{"name":""}`:                           "name",
		`{"scopes":["manage"]}`:                 "scopes",
		`{"expires_at":"2020-01-01T00:00:00Z"}`: "expires_at",
	} {
		answer := w.send(t, http.MethodPatch, "/keys/"+key.ID, body)
		answer.want(t, http.StatusUnprocessableEntity)
		if got := answer.field(t); got != field {
			t.Errorf("%s: field %q, want %q", body, got, field)
		}
	}
	w.send(t, http.MethodDelete, "/keys/"+key.ID, "").want(t, http.StatusNoContent)
	w.send(t, http.MethodPatch, "/keys/"+key.ID, `{"concurrency":5}`).want(t, http.StatusUnprocessableEntity)
}

// S7
func TestRotatedKeyHasAnotherSecret(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	id, old := w.createKey(t, "read")
	answer := w.send(t, http.MethodPost, "/keys/"+id+"/rotate", `{}`)
	answer.want(t, http.StatusOK)
	var key heldKey
	answer.decode(t, &key)
	if key.ID != id || key.Secret == old || !strings.HasPrefix(key.Secret, key.Prefix) || key.OldUntil == nil || answer.header.Get("Cache-Control") != "no-store" {
		t.Errorf("rotated %+v with headers %v", key, answer.header)
	}
	w.keys.Changed(w.workspace.String()) // as the notification has every replica do
	w.sendWith(t, old, http.MethodGet, "/keys", "").want(t, http.StatusOK)
	w.sendWith(t, key.Secret, http.MethodGet, "/keys", "").want(t, http.StatusOK)
	w.send(t, http.MethodPost, "/keys/"+id+"/rotate", `{"grace":"0s"}`).want(t, http.StatusOK)
	w.keys.Changed(w.workspace.String())
	w.sendWith(t, old, http.MethodGet, "/keys", "").want(t, http.StatusUnauthorized)
	w.sendWith(t, key.Secret, http.MethodGet, "/keys", "").want(t, http.StatusUnauthorized)
	for _, grace := range []string{`"721h"`, `"-1s"`, `"a day"`, `5`} {
		answer := w.send(t, http.MethodPost, "/keys/"+id+"/rotate", `{"grace":`+grace+`}`)
		answer.want(t, http.StatusUnprocessableEntity)
		if got := answer.field(t); got != "grace" {
			t.Errorf("%s: field %q", grace, got)
		}
	}
}

func TestKeyIsRefusedFromOtherAddressesHereToo(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	id, secret := w.createKey(t, "read")
	for network, status := range map[string]int{"198.51.100.0/24": http.StatusForbidden, "127.0.0.0/8": http.StatusOK} {
		w.send(t, http.MethodPatch, "/keys/"+id, `{"allowed_ips":["`+network+`","192.0.2.0/24"]}`).want(t, http.StatusOK)
		w.keys.Changed(w.workspace.String())
		w.sendWith(t, secret, http.MethodGet, "/keys", "").want(t, status)
	}
}

// A member changes their own keys only, and hands out none that manages.
func TestMembersChangeTheirOwnKeysOnly(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	id, _ := w.createKey(t, "manage")
	member := w.colleague(t, tenants.Regular)
	for _, call := range [][3]string{
		{http.MethodPatch, "/keys/" + id, `{"concurrency":1}`}, {http.MethodPost, "/keys/" + id + "/rotate", `{}`}, {http.MethodDelete, "/keys/" + id, ""},
	} {
		member.send(t, call[0], call[1], call[2]).want(t, http.StatusNotFound) // as if it was not there
	}
	member.send(t, http.MethodPost, "/keys", `{"name":"sneaky","scopes":["proxy","manage"]}`).want(t, http.StatusForbidden)
	own, _ := member.createKey(t, "recall")
	member.send(t, http.MethodPatch, "/keys/"+own, `{"concurrency":1}`).want(t, http.StatusOK)
	member.send(t, http.MethodPost, "/keys/"+own+"/rotate", `{}`).want(t, http.StatusOK)
	member.send(t, http.MethodDelete, "/keys/"+own, "").want(t, http.StatusNoContent)
}

// A key with the scope recall searches and reads the archive, and nothing else.
func TestRecallKeyReadsTheArchiveOnly(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ant")
	_, secret := w.createKey(t, "recall")
	for path, status := range map[string]int{
		"/search?q=question": http.StatusOK, "/sessions/" + w.session.String() + "/turns": http.StatusOK,
		"/keys": http.StatusForbidden, "/usage": http.StatusForbidden, "/sessions": http.StatusForbidden,
	} {
		w.sendWith(t, secret, http.MethodGet, path, "").want(t, status)
	}
}
