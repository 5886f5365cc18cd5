package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// authenticate returns the API key of a request. Clients send it as x-api-key, api-key, x-goog-api-key or a
// bearer token, some in two places at once: one valid key is enough. It notes the key's owner in the event. If the key may
// not be used from the client's address or for the path, the error is a tenants.Forbidden.
func (g *Gate) authenticate(ctx context.Context, request *http.Request, event *RequestLog) (_ tenants.APIKey, err error) {
	ctx, span := spans.Start(ctx, "authenticate")
	defer span.EndWith(&err)
	return g.keyWith(ctx, request, event, tenants.ErrScopeMissing, tenants.ScopeProxy)
}

// keyWith is authenticate for a key that needs at least one of some scopes; missing is the error for a key
// without any of them.
func (g *Gate) keyWith(ctx context.Context, request *http.Request, event *RequestLog, missing error, scopes ...tenants.Scope) (tenants.APIKey, error) {
	if sent := againIn(ctx); sent != nil {
		return g.usable(request, event, sent.key, missing, scopes)
	}
	failure := errNoKey
	for _, secret := range Secrets(request.Header) {
		key, err := g.Keys.Authenticate(ctx, secret)
		if errors.Is(err, tenants.ErrTooMany) {
			return tenants.APIKey{}, err // the key is valid
		}
		if err != nil {
			failure = err
			if signIn := signInOf(secret); signIn != nil {
				failure = signIn
			}
			continue
		}
		if event.from.cancel != nil {
			event.from.leave = g.underway.enter(secret, event, event.from.cancel)
		}
		return g.usable(request, event, key, missing, scopes)
	}
	return tenants.APIKey{}, failure
}

// usable returns a valid key if it may be used for a request.
func (g *Gate) usable(request *http.Request, event *RequestLog, key tenants.APIKey, missing error, scopes []tenants.Scope) (tenants.APIKey, error) {
	if !slices.ContainsFunc(scopes, func(scope tenants.Scope) bool { return slices.Contains(key.Scopes, scope) }) {
		return tenants.APIKey{}, missing
	}
	if g.RequireVerified && key.Unverified {
		return tenants.APIKey{}, tenants.ErrUnverified
	}
	event.from.Workspace, event.from.APIKey, event.from.KeyPrefix = key.Workspace, key.ID, key.Prefix
	g.readBy(request, key)
	return key, errors.Join(key.Limits.CheckAddress(g.clientAddress(request)), key.Limits.CheckEndpoint(request.URL.Path))
}

// clientAddress returns the address of a request's sender.
func (g *Gate) clientAddress(request *http.Request) string {
	if g.Address != nil {
		return g.Address(request)
	}
	host, _, err := net.SplitHostPort(request.RemoteAddr)
	if err != nil {
		return request.RemoteAddr
	}
	return host
}

// keyHeader holds our key if the caller's own credential goes to the provider.
const keyHeader = "X-Palimpsest-Key"

// credentials lists the headers in which clients send their keys.
var credentials = [...]string{"Authorization", "X-Api-Key", "Api-Key", googleKey}

// ownCredential returns the headers with a caller's own credential for the provider, and the credential. Both
// are empty if our key doesn't come in a header of its own, or comes without another credential.
func ownCredential(header http.Header) (own http.Header, secret string) {
	if header.Get(keyHeader) == "" {
		return nil, ""
	}
	for _, name := range credentials {
		value := header.Get(name)
		if value == "" || strings.Contains(value, tenants.KeyStart) {
			continue
		}
		if own == nil {
			own = http.Header{}
			secret = value
			if _, bare, isScheme := strings.Cut(value, " "); isScheme {
				secret = bare
			}
		}
		own[name] = slices.Clone(header[name])
	}
	return own, secret
}

// Secrets returns the values of a request in all places where clients put keys.
func Secrets(header http.Header) []string {
	var found []string
	add := func(secret string) {
		if secret = strings.TrimSpace(secret); secret != "" && !slices.Contains(found, secret) {
			found = append(found, secret)
		}
	}
	if own := header.Get(keyHeader); own != "" { // the other places hold the caller's own credential
		return []string{strings.TrimSpace(own)}
	}
	add(header.Get("X-Api-Key"))
	add(header.Get("Api-Key"))
	add(header.Get(googleKey))
	if scheme, secret, ok := strings.Cut(header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") {
		add(secret)
	}
	return found
}

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
