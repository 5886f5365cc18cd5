package main

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/migrations/dbtest"
)

// S51: a header leads to a private address with the right of the key alone, and nothing leads to
// the program's own listeners, where private addresses are allowed, too.
func TestBaseURLLeadsToNoListenerOfTheProgram(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	i := startOn(t, database.OwnerURL, providerdouble.Config{})
	w := i.tenant("owner")
	member := w.member(database.Owner(t), "owner")
	makeKey := func(who *tenant, status int, limits map[string]any) (id, secret string) {
		var made struct{ ID, Secret string }
		body := map[string]any{"name": "test", "scopes": []string{"proxy"}}
		maps.Copy(body, limits)
		who.call(http.MethodPost, "/api/v1/keys", body, status, &made)
		return made.ID, made.Secret
	}
	const question = `{"model":"claude-sonnet-4-5","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`
	asks := func(key, base string, status int, says string) {
		t.Helper()
		who := &tenant{instance: i, key: key}
		response, answer := who.post("/v1/messages", []byte(question), map[string]string{"X-Palimpsest-Provider-Key": providerKey, "X-Palimpsest-Base-Url": base})
		if response.StatusCode != status || !strings.Contains(string(answer), says) {
			t.Errorf("%s: status %d, want %d with %q: %s", base, response.StatusCode, status, says, answer)
		}
	}
	_, rest, _ := strings.Cut(i.log.String(), `"admin listening","addr":"`)
	addr, _, found := strings.Cut(rest, `"`)
	if !found {
		t.Fatal("the log does not name the admin address")
	}
	admin, public := "http://"+addr, "http://"+i.program.addr()
	for base, says := range map[string]string{
		admin + "/metrics#": "fragment", admin + "/metrics#x": "fragment", public + "/#": "fragment", "http://user@127.0.0.1": "user", "http://169.254.169.254": "link-local",
	} {
		asks(w.key, base, http.StatusBadRequest, says)
	}
	for _, base := range []string{admin + "/metrics", public, strings.Replace(public, "127.0.0.1", "localhost", 1)} {
		asks(w.key, base, http.StatusBadRequest, "forbidden_base_url")
	}
	asks(w.key, i.double.URL, http.StatusOK, "")

	id, key := makeKey(member, http.StatusCreated, nil)
	asks(key, i.double.URL, http.StatusForbidden, "private_base_url_not_allowed")
	makeKey(member, http.StatusUnprocessableEntity, map[string]any{"private_base_url": true})
	member.call(http.MethodPatch, "/api/v1/keys/"+id, map[string]any{"private_base_url": true}, http.StatusUnprocessableEntity, nil)
	_, closed := makeKey(w, http.StatusCreated, map[string]any{"private_base_url": false})
	asks(closed, i.double.URL, http.StatusForbidden, "private_base_url_not_allowed")
	_, given := makeKey(w, http.StatusCreated, map[string]any{"private_base_url": true})
	asks(given, i.double.URL, http.StatusOK, "")
	for _, base := range []string{admin + "/metrics#", "http://169.254.169.254"} {
		w.call(http.MethodPost, "/api/v1/provider-keys", map[string]any{"provider": "anthropic", "name": "own", "key": providerKey, "base_url": base}, http.StatusUnprocessableEntity, nil)
	}
}
