// Package signon is the pages to log in through a workspace's single sign-on, and to set it up.
package signon

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Handler handles the pages' requests.
type Handler struct {
	service   tenants.SingleSignOn
	cookies   tenants.Cookies
	publicURL string
	log       *slog.Logger
}

// New returns a Handler for a product at publicURL.
func New(service tenants.SingleSignOn, cookies tenants.Cookies, publicURL string, log *slog.Logger) *Handler {
	return &Handler{service: service, cookies: cookies, publicURL: publicURL, log: log}
}

// linkText describes an account's connection with single sign-on.
const linkText = "Your account also belongs elsewhere, so your company’s login alone can’t open it. Log in once with your password or a passkey, then come back to this page to connect the two."

const askTitle = "Log in with single sign-on"

// Ask asks for the address.
func (h *Handler) Ask(c echo.Context) error {
	return layout.Plain(c, http.StatusOK, askTitle, askView(newAsk("", c.QueryParam("next"), "")))
}

// Begin shows the link to the identity provider. A redirect would not work, because the page's policy
// restricts forms to this site.
func (h *Handler) Begin(c echo.Context) error {
	email, next := c.FormValue("email"), c.FormValue("next")
	ctx := tenants.WithActor(c.Request().Context(), tenants.Actor{From: c.RealIP()})
	address, held, err := h.service.Begin(ctx, email, next)
	many, tooMany := errors.AsType[tenants.TooMany](err)
	switch {
	case tooMany:
		return h.tooMany(c, email, next, many)
	case errors.Is(err, tenants.ErrNotFound):
		return layout.Plain(c, http.StatusUnprocessableEntity, askTitle, askView(newAsk(email, next, "No workspace has single sign-on for this domain. Log in with your password.")))
	case errors.Is(err, tenants.ErrSignOn):
		h.log.WarnContext(ctx, "single sign-on does not begin", "error", err)
		return layout.Plain(c, http.StatusUnprocessableEntity, askTitle, askView(newAsk(email, next, "Your company’s login does not answer. Try again, or log in with your password.")))
	case err != nil:
		return err
	}
	h.cookies.SetSignOn(c.Response(), held)
	host := address
	if parsed, err := url.Parse(address); err == nil {
		host = parsed.Host
	}
	return layout.Plain(c, http.StatusOK, askTitle, goView(address, host))
}

// Callback logs in a person who returns from the provider.
func (h *Handler) Callback(c echo.Context, here tenants.Principal) error {
	request := c.Request()
	ctx := tenants.WithActor(request.Context(), tenants.Actor{From: c.RealIP()})
	held := h.cookies.TakeSignOn(c.Response(), request)
	token, next, err := h.service.Finish(ctx, here, held, c.QueryParam("state"), c.QueryParam("code"), request.UserAgent())
	if needed, is := errors.AsType[tenants.CodeNeeded](err); is {
		h.cookies.SetPending(c.Response(), needed.Pending)
		return layout.Redirect(c, paths.With(paths.LogInCode, "next", next))
	}
	if many, is := errors.AsType[tenants.TooMany](err); is {
		return h.tooMany(c, "", next, many)
	}
	if errors.Is(err, tenants.ErrSignOnLink) {
		return layout.Plain(c, http.StatusForbidden, askTitle, askView(newAsk("", next, linkText)))
	}
	if errors.Is(err, tenants.ErrSignOn) {
		h.log.WarnContext(ctx, "single sign-on is refused", "error", err)
		return layout.Plain(c, http.StatusForbidden, askTitle, askView(newAsk("", "", "Single sign-on could not verify who you are. Try again. If it keeps failing, ask the administrator of your company’s login.")))
	}
	if err != nil {
		return err
	}
	h.cookies.Set(c.Response(), token)
	return layout.Redirect(c, paths.Local(next))
}

// tooMany tells how long to wait.
func (h *Handler) tooMany(c echo.Context, email, next string, many tenants.TooMany) error {
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(int(many.Wait.Seconds())+1))
	problem := "Too many failed attempts. Try again in " + components.Span(many.Wait) + ", or log in with your password."
	return layout.Plain(c, http.StatusTooManyRequests, askTitle, askView(newAsk(email, next, problem)))
}

// Show shows the settings.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) { m.Done = doneText(c.QueryParam("done")) })
}

// Save saves the settings.
func (h *Handler) Save(c echo.Context, who tenants.Principal) error {
	wanted := tenants.WantedSignOn{Issuer: c.FormValue("issuer"), ClientID: c.FormValue("client_id"), Secret: c.FormValue("secret"), Role: tenants.Role(c.FormValue("role"))}
	err := h.service.Save(c.Request().Context(), who, wanted)
	return h.done(c, who, "saved", err, func(m *model) { m.form(wanted, err) })
}

// Remove disables single sign-on.
func (h *Handler) Remove(c echo.Context, who tenants.Principal) error {
	return h.done(c, who, "removed", h.service.Remove(c.Request().Context(), who), nil)
}

// Claim adds a domain whose ownership must be proven.
func (h *Handler) Claim(c echo.Context, who tenants.Principal) error {
	domain := c.FormValue("domain")
	err := h.service.Claim(c.Request().Context(), who, domain)
	return h.done(c, who, "claimed", err, func(m *model) { m.domain(domain, err) })
}

// Prove checks a domain's DNS record.
func (h *Handler) Prove(c echo.Context, who tenants.Principal) error {
	err := h.service.Prove(c.Request().Context(), who, c.FormValue("domain"))
	return h.done(c, who, "proven", err, func(m *model) { m.domain("", err) })
}

// RemoveDomain removes a domain.
func (h *Handler) RemoveDomain(c echo.Context, who tenants.Principal) error {
	return h.done(c, who, "domain-removed", h.service.RemoveDomain(c.Request().Context(), who, c.FormValue("domain")), nil)
}

func (h *Handler) done(c echo.Context, who tenants.Principal, what string, err error, change func(*model)) error {
	if err == nil {
		return layout.Redirect(c, paths.With(paths.SignOn, "done", what))
	}
	if _, is := errors.AsType[tenants.Invalid](err); is && change != nil {
		return h.page(c, who, http.StatusUnprocessableEntity, change)
	}
	return err
}

func (h *Handler) page(c echo.Context, who tenants.Principal, status int, change func(*model)) error {
	signOn, domains, err := h.service.Find(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return err
	}
	page := newModel(signOn, domains, h.publicURL+paths.SignOnCallback)
	change(&page)
	return layout.Page(c, status, layout.Frame{Title: "Sign-on", Section: layout.SignOn, Who: who}, view(page))
}

// newAsk returns the form for the address.
func newAsk(email, next, problem string) askModel {
	return askModel{Email: components.FieldModel{Label: "E-mail", Name: "email", Value: email}, Next: next, Error: problem}
}
