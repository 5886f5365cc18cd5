package api

import (
	"net/http"
	"testing"

	"palimpsest/tenants"
)

// E9: requests of one session that go to different upstreams share neither session nor
// lane; two keys for one upstream share both.
func TestSessionsAreKeptApartByUpstream(t *testing.T) {
	t.Parallel()
	c := setupCrowd(t, []tenants.ProviderKey{
		{Name: "near", Provider: tenants.ProviderAnthropic, ProviderKeyRouting: tenants.ProviderKeyRouting{Models: []string{"claude-opus-*"}}},
		{Name: "far", Provider: tenants.ProviderAnthropic, ProviderKeyRouting: tenants.ProviderKeyRouting{Models: []string{"claude-haiku-*"}}},
		{Name: "near too", Provider: tenants.ProviderAnthropic, ProviderKeyRouting: tenants.ProviderKeyRouting{Models: []string{"claude-sonnet-*"}}},
	}, nil)
	c.store.mu.Lock()
	c.store.keys[2].BaseURL = c.store.keys[0].BaseURL + "/v1/"
	c.store.mu.Unlock()
	c.Settings.ForgetAll()

	exchanges := map[string]tenants.Exchange{}
	for i, model := range []string{"claude-opus-5", "claude-haiku-4-5", "claude-sonnet-4-5"} {
		body := `{"model":"` + model + `","max_tokens":1,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"z"}]}`
		if got := c.send(http.MethodPost, messagesPath, body, "X-Palimpsest-Session-Id", "run"); got.status != http.StatusOK {
			t.Fatalf("%s: %d, %s", model, got.status, got.body)
		}
		exchanges[model] = c.last(i + 1)
	}
	near, far, too := exchanges["claude-opus-5"], exchanges["claude-haiku-4-5"], exchanges["claude-sonnet-4-5"]
	if near.Request.Session == far.Request.Session || near.Request.Lane == far.Request.Lane {
		t.Errorf("two upstreams share session %s or lane %s", near.Request.Session, near.Request.Lane)
	}
	if near.Request.Session != too.Request.Session || near.Request.Lane != too.Request.Lane {
		t.Errorf("two keys for one upstream have sessions %s and %s, lanes %s and %s", near.Request.Session, too.Request.Session, near.Request.Lane, too.Request.Lane)
	}
}
