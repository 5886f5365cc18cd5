package manage

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// authorizer identifies the sender of a request and checks its rights.
type authorizer struct {
	identity tenants.Identity
	cookies  tenants.Cookies
	keys     tenants.KeyAuthenticator
	origins  *http.CrossOriginProtection
	log      *slog.Logger
}

// caller is the sender of a request, and the workspace.
type caller struct {
	workspace tenants.WorkspaceID
	principal tenants.Principal // zero for an API key
	key       tenants.APIKey    // zero for a login
}

// author returns the author of the caller's changes.
func (c caller) author() uuid.UUID {
	if c.key.ID != uuid.Nil {
		return c.key.ID
	}
	return c.principal.User.ID
}

// person returns the person behind the caller: the user of the login, or the person behind an API key.
func (c caller) person() uuid.UUID {
	if c.key.ID != uuid.Nil {
		return c.key.Person
	}
	return c.principal.User.ID
}

// may reports whether the caller has a permission.
func (c caller) may(permission tenants.Permission) bool {
	if c.key.ID != uuid.Nil {
		return c.key.May(permission)
	}
	return c.principal.Role.May(permission)
}

// isKey reports whether the caller uses an API key instead of a login.
func (c caller) isKey() bool { return c.key.ID != uuid.Nil }

// as wraps a handler that works in a workspace, for callers with the permission.
func (a *authorizer) as(permission tenants.Permission, handle func(c echo.Context, who caller) error) echo.HandlerFunc {
	return a.known(func(c echo.Context, who caller) error {
		if !who.may(permission) {
			return who.denied()
		}
		if suspended := who.principal.Workspace.Suspension; suspended != nil && permission != tenants.Enter {
			return tenants.Suspended{Reason: suspended.Reason}
		}
		return handle(c, who)
	})
}

// asPerson wraps a handler for logged-in users, with or without a workspace.
func (a *authorizer) asPerson(handle func(c echo.Context, who caller) error) echo.HandlerFunc {
	return a.known(func(c echo.Context, who caller) error {
		if who.isKey() {
			return errNoPerson
		}
		return handle(c, who)
	})
}

// known wraps a handler for any known caller.
func (a *authorizer) known(handle func(c echo.Context, who caller) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		who, err := a.caller(c)
		if err != nil {
			return err
		}
		request := c.Request()
		c.SetRequest(request.WithContext(tenants.WithActor(request.Context(), who.actor(c.RealIP()))))
		return handle(c, who)
	}
}

// denied says why the caller doesn't have a permission.
func (c caller) denied() error {
	if slices.Contains(c.key.Scopes, tenants.ScopeManage) {
		return errNoKey
	}
	if c.key.ID != uuid.Nil {
		return tenants.ErrScopeMissing
	}
	if c.workspace.IsZero() {
		return errNoWorkspace
	}
	return tenants.ErrDenied
}

// actor returns the caller's entry for the audit log.
func (c caller) actor(from string) tenants.Actor {
	if c.key.ID != uuid.Nil {
		return tenants.Actor{APIKey: c.key.ID, Name: c.key.Name, From: from, Until: c.key.ExpiresAt}
	}
	return c.principal.Actor(from)
}

// caller returns the sender of a request: the holder of an API key, otherwise of the login cookie.
func (a *authorizer) caller(c echo.Context) (caller, error) {
	request := c.Request()
	if secret := apiKey(request.Header); secret != "" {
		return a.keyHolder(request, secret, c.RealIP())
	}
	token := a.cookies.Token(request)
	if token == "" {
		return caller{}, errNoLogin
	}
	if err := a.origins.Check(request); err != nil {
		return caller{}, errCrossOrigin
	}
	principal, err := a.identity.Authenticate(request.Context(), token)
	if err != nil {
		return caller{}, err
	}
	return caller{workspace: principal.Workspace.ID, principal: principal}, nil
}

// keyHolder returns the owner of an API key that is used from an address.
func (a *authorizer) keyHolder(request *http.Request, secret, from string) (caller, error) {
	key, err := a.keys.Authenticate(request.Context(), secret)
	if err != nil {
		return caller{}, err
	}
	if err := key.Limits.CheckAddress(from); err != nil {
		return caller{}, err
	}
	return caller{workspace: key.Workspace, key: key}, nil
}

// sameOrigin refuses requests that another site makes a browser send.
func (a *authorizer) sameOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := a.origins.Check(c.Request()); err != nil {
			return errCrossOrigin
		}
		return next(c)
	}
}

// apiKey returns the secret of a request; "" if absent.
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
