package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/migrations/dbtest"
)

// S52: a stream of the running program ends once its key is revoked, or the member behind it is
// removed; another one of the same workspace goes on.
func TestRevokedKeysStreamsEnd(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	i := startOn(t, database.OwnerURL, providerdouble.Config{})
	w := i.tenant("owner")
	member := w.member(database.Owner(t), "owner")
	url, goOn := holding(t)
	w.call(http.MethodPost, "/api/v1/provider-keys", map[string]any{"provider": "anthropic", "name": "held", "key": providerKey, "base_url": url}, http.StatusCreated, nil)
	held := http.Header{"X-Palimpsest-Provider": {"held"}}
	makeKey := func(who *tenant) (id string) {
		var made struct{ ID, Secret string }
		who.call(http.MethodPost, "/api/v1/keys", map[string]any{"name": "test", "scopes": []string{"proxy"}}, http.StatusCreated, &made)
		who.key = made.Secret
		return made.ID
	}
	owner := &tenant{instance: i, cookies: w.cookies}
	id := makeKey(owner)
	makeKey(member)
	stays, revoked, removed := w.stream(held.Clone()), owner.stream(held.Clone()), member.stream(held.Clone())

	w.call(http.MethodDelete, "/api/v1/keys/"+id, nil, http.StatusNoContent, nil)
	if rest, err := io.ReadAll(revoked); err == nil {
		t.Errorf("the stream of a revoked key ends with %q", rest)
	}
	var people struct{ Data []struct{ ID, Email string } }
	w.call(http.MethodGet, "/api/v1/members", nil, http.StatusOK, &people)
	for _, person := range people.Data {
		if strings.HasPrefix(person.Email, "member@") {
			w.call(http.MethodDelete, "/api/v1/members/"+person.ID, nil, http.StatusNoContent, nil)
		}
	}
	if rest, err := io.ReadAll(removed); err == nil {
		t.Errorf("the stream of a removed member ends with %q", rest)
	}
	goOn()
	if rest, err := io.ReadAll(stays); err != nil || string(rest) != heldEvent {
		t.Errorf("the stream of another key ends with %q, %v", rest, err)
	}
}
