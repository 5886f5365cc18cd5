package api

import (
	"net/http"
	"strings"
	"testing"
)

// W55: a credential of somewhere else is named for what it is, and what to do is said.
func TestSignInsOfElsewhereAreNamed(t *testing.T) {
	t.Parallel()
	p := setup(t, func(http.ResponseWriter, *http.Request) { t.Error("the provider was asked") })
	for secret, want := range map[string]string{
		"sk-ant-oat01-abcdefghijklmnop":            "Claude plan",
		"eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln": "ChatGPT plan",
		"ya29.a0AfH6SMBx":                          "Google",
		"gho_16C7e42F292c6912E7710c838":            "GitHub",
	} {
		for _, path := range []string{messagesPath, chatPath, "/v1/responses", "/v1/models", "/v1/files"} {
			got := p.send(map[bool]string{true: http.MethodGet, false: http.MethodPost}[path == "/v1/models" || path == "/v1/files"], path, "{}", "Authorization", "Bearer "+secret)
			if message := got.said(t).Error.Message; got.status != http.StatusForbidden || !strings.Contains(message, want) || !strings.Contains(message, "dashboard's API keys page") || strings.Contains(message, secret) {
				t.Errorf("%s, %s: status %d, %s", path, want, got.status, message)
			}
		}
	}
	for _, secret := range []string{"something", "sk-ant-api03-abcdef", "sk-proj-abcdef"} {
		got := p.send(http.MethodPost, messagesPath, askClaude, "Authorization", "Bearer "+secret)
		if got.status != http.StatusUnauthorized || !strings.Contains(got.said(t).Error.Message, "Providers page") {
			t.Errorf("%s: %d", secret, got.status)
		}
	}
}
