package signon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"palimpsest/tenants"
)

// maxDomains bounds the domains of a workspace.
const maxDomains = 50

// Find returns the single sign-on of a workspace, zero if absent, and its
// domains.
func (s *Service) Find(ctx context.Context, workspace tenants.WorkspaceID) (tenants.SignOn, []tenants.Domain, error) {
	signOn, err := s.Store.SignOn(ctx, workspace)
	if err != nil && !errors.Is(err, tenants.ErrNotFound) {
		return tenants.SignOn{}, nil, err
	}
	domains, err := s.Store.Domains(ctx, workspace)
	return signOn, domains, err
}

// Save stores the single sign-on of a workspace after its provider has answered. It returns a tenants.Invalid
// for issuer, client_id, secret or role. It and the other methods that change something return
// tenants.ErrDenied for non-owners, and tenants.ErrLogInAgain.
func (s *Service) Save(ctx context.Context, who tenants.Principal, wanted tenants.WantedSignOn) error {
	workspace, err := s.changing(who)
	if err != nil {
		return err
	}
	wanted.Issuer, wanted.ClientID = strings.TrimSpace(wanted.Issuer), strings.TrimSpace(wanted.ClientID)
	if err := s.checkIssuer(wanted.Issuer); err != nil {
		return err
	}
	if wanted.ClientID == "" || len(wanted.ClientID) > 500 || strings.ContainsFunc(wanted.ClientID, notInID) {
		return tenants.Invalid{Field: "client_id", Message: "must have 1 to 500 characters of ASCII without control characters"}
	}
	if wanted.Role != tenants.Regular && wanted.Role != tenants.Viewer {
		return tenants.Invalid{Field: "role", Message: "must be member or viewer"}
	}
	signOn := tenants.SignOn{Issuer: wanted.Issuer, ClientID: wanted.ClientID, Role: wanted.Role}
	if err := s.sealSecret(ctx, workspace, wanted.Secret, &signOn); err != nil {
		return err
	}
	if _, _, err := s.provider(ctx, workspace, signOn); err != nil {
		if errors.Is(err, tenants.ErrSignOn) {
			return tenants.Invalid{Field: "issuer", Message: "does not answer as an OpenID Connect provider of this name at /.well-known/openid-configuration"}
		}
		return err
	}
	return s.Store.SaveSignOn(ctx, workspace, signOn)
}

// notInID reports whether a character is not allowed in client ids (RFC 6749, appendix A.1).
func notInID(r rune) bool { return r < ' ' || r > '~' }

// changing returns the workspace of an owner who may change its single sign-on now.
func (s *Service) changing(who tenants.Principal) (tenants.WorkspaceID, error) {
	return who.Workspace.ID, who.CheckSignOn(s.Now())
}

// sealSecret fills in the sealed client secret.
func (s *Service) sealSecret(ctx context.Context, workspace tenants.WorkspaceID, secret string, signOn *tenants.SignOn) (err error) {
	if secret != "" {
		signOn.Sealed, err = s.Sealer.SealAbout(tenants.AboutSignOn(workspace, signOn.Issuer, signOn.ClientID), secret)
		return err
	}
	before, err := s.Store.SignOn(ctx, workspace)
	if err != nil && !errors.Is(err, tenants.ErrNotFound) {
		return err
	}
	if err != nil || before.Issuer != signOn.Issuer || before.ClientID != signOn.ClientID {
		return tenants.Invalid{Field: "secret", Message: "is needed for this issuer and client"}
	}
	signOn.Sealed = before.Sealed
	return nil
}

// Remove ends the single sign-on of a workspace, or returns tenants.ErrNotFound.
func (s *Service) Remove(ctx context.Context, who tenants.Principal) error {
	workspace, err := s.changing(who)
	if err != nil {
		return err
	}
	return s.Store.RemoveSignOn(ctx, workspace)
}

// Claim stores a domain with a proof token. It returns a tenants.Invalid for domain.
func (s *Service) Claim(ctx context.Context, who tenants.Principal, domain string) error {
	workspace, err := s.changing(who)
	if err != nil {
		return err
	}
	domain = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(domain)), ".")
	name := regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$`)
	if len(domain) > 253 || !name.MatchString(domain) {
		return tenants.Invalid{Field: "domain", Message: "must be a domain such as example.com"}
	}
	domains, err := s.Store.Domains(ctx, workspace)
	if err != nil {
		return err
	}
	if len(domains) >= maxDomains {
		return tenants.Invalid{Field: "domain", Message: fmt.Sprintf("cannot be added: there are %d already", maxDomains)}
	}
	return s.Store.ClaimDomain(ctx, workspace, domain, strings.ToLower(rand.Text()))
}

// Prove activates a domain for a workspace if its TXT record is found. It returns tenants.ErrNotFound for an
// unclaimed domain, and a tenants.Invalid for domain.
func (s *Service) Prove(ctx context.Context, who tenants.Principal, domain string) error {
	workspace, err := s.changing(who)
	if err != nil {
		return err
	}
	domains, err := s.Store.Domains(ctx, workspace)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(domains, func(d tenants.Domain) bool { return d.Name == domain })
	if at < 0 {
		return tenants.ErrNotFound
	}
	if !domains[at].ProvenAt.IsZero() {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	records, err := s.LookupTXT(asking, domain+".")
	if err != nil || !slices.Contains(records, domains[at].Record()) {
		return tenants.Invalid{Field: "domain", Message: domain + " has no TXT record " + domains[at].Record() + " yet; it may take some minutes to be seen"}
	}
	err = s.Store.ProveDomain(ctx, workspace, domain)
	if errors.Is(err, tenants.ErrConflict) {
		return tenants.Invalid{Field: "domain", Message: domain + " belongs to another workspace, which must remove it first"}
	}
	return err
}

// RemoveDomain removes a domain from a workspace, or returns tenants.ErrNotFound.
func (s *Service) RemoveDomain(ctx context.Context, who tenants.Principal, domain string) error {
	workspace, err := s.changing(who)
	if err != nil {
		return err
	}
	return s.Store.RemoveDomain(ctx, workspace, domain)
}
