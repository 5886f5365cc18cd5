package manage

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// SignOn keeps where a workspace's people prove who they are. What can be mended is a
// tenants.Invalid. All that changes something returns tenants.ErrDenied for who is not an
// owner, and tenants.ErrLogInAgain.
type SignOn interface {
	// Find returns the zero SignOn where none is set.
	Find(ctx context.Context, workspace tenants.WorkspaceID) (tenants.SignOn, []tenants.Domain, error)
	// Save asks the provider before it keeps anything.
	Save(ctx context.Context, who tenants.Principal, wanted tenants.WantedSignOn) error
	// Remove returns tenants.ErrNotFound where none is set.
	Remove(ctx context.Context, who tenants.Principal) error

	Claim(ctx context.Context, who tenants.Principal, domain string) error
	// Prove and RemoveDomain return tenants.ErrNotFound for a domain that was not claimed.
	Prove(ctx context.Context, who tenants.Principal, domain string) error
	RemoveDomain(ctx context.Context, who tenants.Principal, domain string) error
}

// registerSignOn adds the routes about single sign-on.
func (s *server) registerSignOn(group *echo.Group) {
	group.GET("/sign-on", s.as(tenants.ManageSignOn, s.getSignOn))
	group.PUT("/sign-on", s.as(tenants.ManageSignOn, s.putSignOn))
	group.DELETE("/sign-on", s.as(tenants.ManageSignOn, s.deleteSignOn))
	group.POST("/sign-on/domains", s.as(tenants.ManageSignOn, s.claimDomain))
	group.POST("/sign-on/domains/:domain/prove", s.as(tenants.ManageSignOn, s.proveDomain))
	group.DELETE("/sign-on/domains/:domain", s.as(tenants.ManageSignOn, s.deleteDomain))
}

// signOnJSON is single sign-on without its secret.
type signOnJSON struct {
	Provider *identityProviderJSON `json:"provider"` // null: none is set
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
	Record   string     `json:"record"`    // to be found in its TXT records
	ProvenAt *time.Time `json:"proven_at"` // null: it counts for nothing yet
}

// answerSignOn answers with what is kept now.
func (s *server) answerSignOn(c echo.Context, status int, who caller) error {
	answer, err := s.signOnOf(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return c.JSON(status, answer)
}

// signOnOf returns what is kept of a workspace's single sign-on, without its secret.
func (s *server) signOnOf(ctx context.Context, workspace tenants.WorkspaceID) (signOnJSON, error) {
	signOn, domains, err := s.SignOn.Find(ctx, workspace)
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

func (s *server) getSignOn(c echo.Context, who caller) error {
	return s.answerSignOn(c, http.StatusOK, who)
}

func (s *server) putSignOn(c echo.Context, who caller) error {
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
	if err := s.SignOn.Save(c.Request().Context(), who.principal, wanted); err != nil {
		return err
	}
	return s.answerSignOn(c, http.StatusOK, who)
}

func (s *server) deleteSignOn(c echo.Context, who caller) error {
	if err := s.SignOn.Remove(c.Request().Context(), who.principal); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *server) claimDomain(c echo.Context, who caller) error {
	asked, err := readJSON[struct {
		Domain string `json:"domain"`
	}](c)
	if err != nil {
		return err
	}
	if err := s.SignOn.Claim(c.Request().Context(), who.principal, asked.Domain); err != nil {
		return err
	}
	return s.answerSignOn(c, http.StatusCreated, who)
}

func (s *server) proveDomain(c echo.Context, who caller) error {
	if err := s.SignOn.Prove(c.Request().Context(), who.principal, pathDomain(c)); err != nil {
		return err
	}
	return s.answerSignOn(c, http.StatusOK, who)
}

func (s *server) deleteDomain(c echo.Context, who caller) error {
	if err := s.SignOn.RemoveDomain(c.Request().Context(), who.principal, pathDomain(c)); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// pathDomain returns the domain in the path; one that cannot be read is nobody's.
func pathDomain(c echo.Context) string {
	domain, err := url.PathUnescape(c.Param("domain"))
	if err != nil {
		return ""
	}
	return domain
}
