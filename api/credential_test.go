package api

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
)

// The credential of a caller reaches the provider as it came, where the workspace allows that, and nothing else.
func TestCredentialOfTheCallerGoesToTheProviderOnly(t *testing.T) {
	t.Parallel()
	const login = "sk-ant-oat01-canary"
	for name, test := range map[string]struct {
		allowed bool
		limits  tenants.Limits
		header  []string
		want    int
		sent    map[string]string // to the provider
	}{
		"a login":              {true, tenants.Limits{}, []string{"Authorization", "Bearer " + login}, 200, map[string]string{"Authorization": "Bearer " + login}},
		"a key":                {true, tenants.Limits{}, []string{"X-Api-Key", login, "Authorization", ""}, 200, map[string]string{"X-Api-Key": login}},
		"not allowed":          {false, tenants.Limits{}, []string{"Authorization", "Bearer " + login}, 403, nil},
		"a key that is locked": {true, tenants.Limits{LockOverrides: true}, []string{"Authorization", "Bearer " + login}, 403, nil},
		"our key in both":      {true, tenants.Limits{}, nil, 200, map[string]string{"X-Api-Key": providerKey}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived := make(chan http.Header, 1)
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				arrived <- r.Header
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":1}}`))
			})
			p.store.mu.Lock()
			p.store.data.OwnCredentials, p.store.limits = test.allowed, test.limits
			p.store.keys[0].BaseURL, p.store.keys[0].Name = p.provider, "stored"
			p.store.mu.Unlock()
			if test.sent != nil && test.sent["X-Api-Key"] != providerKey {
				test.header = append(test.header, "X-Palimpsest-Provider-Key", "", "X-Palimpsest-Base-Url", p.provider)
			}
			got := p.send(http.MethodPost, messagesPath, `{"model":"claude-opus-5-5","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`,
				append([]string{"X-Palimpsest-Key", testKey, "Anthropic-Beta", "oauth-2025-04-20"}, test.header...)...)
			if got.status != test.want {
				t.Fatalf("%d: %s", got.status, got.body)
			}
			if strings.Contains(p.log.String(), "canary") {
				t.Error("the credential is in the log")
			}
			if test.sent == nil {
				return
			}
			header := <-arrived
			for _, name := range credentials {
				if header.Get(name) != test.sent[name] {
					t.Errorf("%s is %q, want %q", name, header.Get(name), test.sent[name])
				}
			}
			if header.Get(keyHeader) != "" || header.Get("Anthropic-Beta") != "oauth-2025-04-20" {
				t.Errorf("headers %v", header)
			}
			if recorded := p.last(1); test.sent["X-Api-Key"] != providerKey && recorded.Answer.ProviderKey != [16]byte{} {
				t.Errorf("recorded for the key %s", recorded.Answer.ProviderKey)
			}
		})
	}
}
