package manage

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// authorizer identifies the sender of a request and checks its rights.
type authorizer struct {
	identity tenants.Identity
	cookies  tenants.Cookies
	keys     tenants.KeyAuthenticator
	readers  readers
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
		if err := a.see(c, who); err != nil {
			return err
		}
		return handle(c, who)
	})
}

// see limits what the stores answer to what the caller may see of the workspace.
func (a *authorizer) see(c echo.Context, who caller) error {
	var reader tenants.Reader
	if !who.may(tenants.ReadSpend) { // who sees everything anyway
		var err error
		if reader, err = a.readers.reader(c, who); err != nil {
			return err
		}
	}
	c.SetRequest(c.Request().WithContext(tenants.WithVisible(c.Request().Context(), reader.Visible(who.may))))
	return nil
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

// signOnHandler serves single sign-on settings.
type signOnHandler struct {
	signOn tenants.SingleSignOn
}

func (h signOnHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/sign-on", a.as(tenants.ManageSignOn, h.getSignOn))
	group.PUT("/sign-on", a.as(tenants.ManageSignOn, withBody(h.putSignOn)))
	group.DELETE("/sign-on", a.as(tenants.ManageSignOn, h.deleteSignOn))
	group.POST("/sign-on/domains", a.as(tenants.ManageSignOn, withBody(h.claimDomain)))
	group.POST("/sign-on/domains/:domain/prove", a.as(tenants.ManageSignOn, h.proveDomain))
	group.DELETE("/sign-on/domains/:domain", a.as(tenants.ManageSignOn, h.deleteDomain))
}

// signOnJSON is single sign-on without its secret.
type signOnJSON struct {
	Provider *identityProviderJSON `json:"provider"` // null if not set
	Domains  []domainJSON          `json:"domains"`
}

type identityProviderJSON struct {
	Issuer   string       `json:"issuer"`
	ClientID string       `json:"client_id"`
	Role     tenants.Role `json:"role"`
	SavedAt  time.Time    `json:"saved_at"`
}

type domainJSON struct {
	Domain   string     `json:"domain"`
	Record   string     `json:"record"`    // for the domain's TXT records
	ProvenAt *time.Time `json:"proven_at"` // null until proven
}

// answerSignOn answers with the stored settings.
func (h signOnHandler) answerSignOn(c echo.Context, status int, who caller) error {
	answer, err := h.signOnOf(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return c.JSON(status, answer)
}

// signOnOf returns a workspace's single sign-on settings, without the secret.
func (h signOnHandler) signOnOf(ctx context.Context, workspace tenants.WorkspaceID) (signOnJSON, error) {
	signOn, domains, err := h.signOn.Find(ctx, workspace)
	if err != nil {
		return signOnJSON{}, err
	}
	answer := signOnJSON{Domains: make([]domainJSON, len(domains))}
	if signOn.Issuer != "" {
		answer.Provider = &identityProviderJSON{Issuer: signOn.Issuer, ClientID: signOn.ClientID, Role: signOn.Role, SavedAt: signOn.SavedAt}
	}
	for i, domain := range domains {
		answer.Domains[i] = domainJSON{Domain: domain.Name, Record: domain.Record()}
		if !domain.ProvenAt.IsZero() {
			answer.Domains[i].ProvenAt = &domains[i].ProvenAt
		}
	}
	return answer, nil
}

func (h signOnHandler) getSignOn(c echo.Context, who caller) error {
	return h.answerSignOn(c, http.StatusOK, who)
}

func (h signOnHandler) putSignOn(c echo.Context, who caller, asked struct {
	Issuer   string       `json:"issuer"`
	ClientID string       `json:"client_id"`
	Secret   string       `json:"secret"`
	Role     tenants.Role `json:"role"`
}) error {
	wanted := tenants.WantedSignOn{Issuer: asked.Issuer, ClientID: asked.ClientID, Secret: asked.Secret, Role: asked.Role}
	if err := h.signOn.Save(c.Request().Context(), who.principal, wanted); err != nil {
		return err
	}
	return h.answerSignOn(c, http.StatusOK, who)
}

func (h signOnHandler) deleteSignOn(c echo.Context, who caller) error {
	return done(c, h.signOn.Remove(c.Request().Context(), who.principal))
}

func (h signOnHandler) claimDomain(c echo.Context, who caller, asked struct {
	Domain string `json:"domain"`
}) error {
	if err := h.signOn.Claim(c.Request().Context(), who.principal, asked.Domain); err != nil {
		return err
	}
	return h.answerSignOn(c, http.StatusCreated, who)
}

func (h signOnHandler) proveDomain(c echo.Context, who caller) error {
	if err := h.signOn.Prove(c.Request().Context(), who.principal, pathDomain(c)); err != nil {
		return err
	}
	return h.answerSignOn(c, http.StatusOK, who)
}

func (h signOnHandler) deleteDomain(c echo.Context, who caller) error {
	return done(c, h.signOn.RemoveDomain(c.Request().Context(), who.principal, pathDomain(c)))
}

// pathDomain returns the domain in the path; "" if it is malformed.
func pathDomain(c echo.Context) string {
	domain, err := url.PathUnescape(c.Param("domain"))
	if err != nil {
		return ""
	}
	return domain
}
