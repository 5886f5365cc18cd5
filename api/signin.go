package api

import (
	"net/http"
	"strings"

	"palimpsest/pipeline/wire"
)

// signIn is a credential of somewhere else, sent in place of an API key.
type signIn struct {
	what string // of what it is
	next string // what its owner can do
}

// Error implements error.
func (s signIn) Error() string { return s.what + " was sent in place of an API key" }

// problem says what the credential is and what to do. It is no 401: at that, clients renew
// a sign-in and try again, or ask their user to sign in, before they show what the answer says.
func (s signIn) problem() wire.Problem {
	return wire.Problem{
		Status: http.StatusForbidden, Type: "permission_error", Code: "sign_in_not_supported",
		Message: "This is " + s.what + ", which does not work through Palimpsest. Create an API key on the dashboard's API keys page" + s.next,
	}
}

// signInOf recognizes a sign-in of somewhere else; nil for other secrets. The key of a provider is a
// wrong key like any other (W4).
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
