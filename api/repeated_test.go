package api

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/tenants"
)

// S34: a body that has a member twice shows limits one model and may show the provider another.
func TestRepeatedMemberDoesNotGoAroundALimit(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	for name, limits := range map[string]tenants.Limits{"no limit": {}, "a limit": {Models: []string{"claude-haiku-*", "gpt-5.5"}}} {
		p.store.limit(limits)
		for path, body := range map[string]string{messagesPath: askClaude, chatPath: askGPT, responsesPath: strings.Replace(askGPT, `"messages"`, `"input"`, 1)} {
			for _, member := range []string{`"model":"claude-haiku-4-5"`, `"Model":"claude-opus-5-5"`, `"m\u006fdel":"claude-haiku-4-5"`, `"ſtream":true,"stream":false`, `"messages":[],"MESSAGES":[],"input":[],"INPUT":[]`} {
				before := len(double.Requests())
				got := p.send(http.MethodPost, path, strings.TrimSuffix(body, "}")+","+member+"}")
				if got.status != http.StatusBadRequest || !strings.Contains(string(got.body), "is there twice") {
					t.Errorf("%s, %s with %s: status %d: %.300s", name, path, member, got.status, got.body)
				}
				if len(double.Requests()) != before {
					t.Errorf("%s, %s with %s: the provider was asked", name, path, member)
				}
			}
		}
	}
}
