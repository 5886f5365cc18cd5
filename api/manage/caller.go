package manage

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// Keys tells whose API key a secret is.
type Keys interface {
	// Authenticate returns the kinds tenants.ErrKeyMalformed, ErrKeyUnknown,
	// ErrKeyRevoked and ErrKeyExpired.
	Authenticate(ctx context.Context, secret string) (tenants.APIKey, error)
}

// caller is who sent a request, and for which workspace.
type caller struct {
	workspace tenants.WorkspaceID
	principal tenants.Principal // zero for an API key
	key       uuid.UUID         // uuid.Nil for a login
}

// author returns who is noted as the author of a change.
func (c caller) author() uuid.UUID {
	if c.key != uuid.Nil {
		return c.key
	}
	return c.principal.User.ID
}

// as wraps a handler that works for a workspace.
func (s *server) as(handle func(c echo.Context, who caller) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		who, err := s.caller(c)
		if err != nil {
			return err
		}
		return handle(c, who)
	}
}

// caller returns who sent a request: the holder of an API key, or else of the
// login cookie.
func (s *server) caller(c echo.Context) (caller, error) {
	request := c.Request()
	if secret := apiKey(request.Header); secret != "" {
		return s.keyHolder(request, secret)
	}
	token := s.Cookies.Token(request)
	if token == "" {
		return caller{}, errNoLogin
	}
	if err := s.origins.Check(request); err != nil {
		return caller{}, errCrossOrigin
	}
	principal, err := s.Identity.Authenticate(request.Context(), token)
	if err != nil {
		return caller{}, err
	}
	if !safe(request.Method) && !mayChange(principal.Role) {
		return caller{}, errRole
	}
	return caller{workspace: principal.Workspace.ID, principal: principal}, nil
}

// keyHolder returns who an API key belongs to, if it has the scope that the
// request needs.
func (s *server) keyHolder(request *http.Request, secret string) (caller, error) {
	key, err := s.Keys.Authenticate(request.Context(), secret)
	if err != nil {
		return caller{}, err
	}
	allowed := slices.Contains(key.Scopes, tenants.ScopeManage) ||
		safe(request.Method) && slices.Contains(key.Scopes, tenants.ScopeRead)
	if !allowed {
		return caller{}, tenants.ErrScopeMissing
	}
	return caller{workspace: key.Workspace, key: key.ID}, nil
}

// sameOrigin refuses what another site makes a browser send.
func (s *server) sameOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := s.origins.Check(c.Request()); err != nil {
			return errCrossOrigin
		}
		return next(c)
	}
}

// apiKey returns the secret that a request was sent with; empty if there is none.
func apiKey(header http.Header) string {
	scheme, secret, _ := strings.Cut(header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "bearer") && strings.TrimSpace(secret) != "" {
		return strings.TrimSpace(secret)
	}
	if secret := strings.TrimSpace(header.Get("X-Api-Key")); secret != "" {
		return secret
	}
	return strings.TrimSpace(header.Get("Api-Key"))
}

// safe reports whether a method changes nothing.
func safe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// mayChange reports whether a member with the role may change the workspace.
func mayChange(role tenants.Role) bool {
	return role == tenants.Owner || role == tenants.Admin || role == tenants.Regular
}
