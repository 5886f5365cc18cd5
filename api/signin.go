package api

import (
	"net/http"
	"strings"

	"palimpsest/pipeline/wire"
)

// signIn is a foreign credential, sent in place of an API key.
type signIn struct {
	what string // description of the credential
	next string // advice to its owner
}

// Error implements error.
func (s signIn) Error() string { return s.what + " was sent in place of an API key" }

// problem names the credential and the remedy. It avoids a 401, because at that status clients renew a
// sign-in and try again, or ask their user to sign in, before they show the answer's text.
func (s signIn) problem() wire.Problem {
	return wire.Problem{
		Status: http.StatusForbidden, Type: "permission_error", Code: "sign_in_not_supported",
		Message: "This is " + s.what + ", which does not work through Palimpsest. Create an API key on the dashboard's API keys page" + s.next,
	}
}

// signInOf recognizes a foreign sign-in; nil for other secrets. The key of a provider is a wrong key like any
// other (W4).
func signInOf(secret string) error {
	switch {
	case strings.HasPrefix(secret, "sk-ant-oat"), strings.HasPrefix(secret, "sk-ant-ort"):
		return signIn{"the sign-in of a Claude plan", ", set ANTHROPIC_AUTH_TOKEN to it, and log out with /logout or unset CLAUDE_CODE_OAUTH_TOKEN."}
	case strings.HasPrefix(secret, "eyJ") && strings.Count(secret, ".") == 2:
		return signIn{"a sign-in token, as of a ChatGPT plan", ", set the client up to use it, as docs/clients.md says, and log out of the plan, for Codex with codex logout."}
	case strings.HasPrefix(secret, "ya29."):
		return signIn{"a sign-in with Google", " and set the client up to use it, as docs/clients.md says."}
	case strings.HasPrefix(secret, "gho_"), strings.HasPrefix(secret, "ghu_"), strings.HasPrefix(secret, "ghp_"), strings.HasPrefix(secret, "github_pat_"):
		return signIn{"a sign-in with GitHub", " and set the client up to use it, as docs/clients.md says."}
	}
	return nil
}
