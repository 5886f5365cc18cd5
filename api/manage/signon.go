package manage

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// signOnHandler serves single sign-on settings.
type signOnHandler struct {
	signOn tenants.SingleSignOn
}

func (h signOnHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/sign-on", a.as(tenants.ManageSignOn, h.getSignOn))
	group.PUT("/sign-on", a.as(tenants.ManageSignOn, h.putSignOn))
	group.DELETE("/sign-on", a.as(tenants.ManageSignOn, h.deleteSignOn))
	group.POST("/sign-on/domains", a.as(tenants.ManageSignOn, h.claimDomain))
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

func (h signOnHandler) putSignOn(c echo.Context, who caller) error {
	asked, err := readJSON[struct {
		Issuer   string       `json:"issuer"`
		ClientID string       `json:"client_id"`
		Secret   string       `json:"secret"`
		Role     tenants.Role `json:"role"`
	}](c)
	if err != nil {
		return err
	}
	wanted := tenants.WantedSignOn{Issuer: asked.Issuer, ClientID: asked.ClientID, Secret: asked.Secret, Role: asked.Role}
	if err := h.signOn.Save(c.Request().Context(), who.principal, wanted); err != nil {
		return err
	}
	return h.answerSignOn(c, http.StatusOK, who)
}

func (h signOnHandler) deleteSignOn(c echo.Context, who caller) error {
	return done(c, h.signOn.Remove(c.Request().Context(), who.principal))
}

func (h signOnHandler) claimDomain(c echo.Context, who caller) error {
	asked, err := readJSON[struct {
		Domain string `json:"domain"`
	}](c)
	if err != nil {
		return err
	}
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
