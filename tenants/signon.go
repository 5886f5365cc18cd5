package tenants

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
)

// SignOnAge is how long a single sign-on may take.
const SignOnAge = 10 * time.Minute

// ErrSignOn says that a single sign-on did not prove a person's identity. Wrapping errors give the reason.
var ErrSignOn = errors.New("single sign-on is refused")

// ErrSignOnLink says that the account of a single sign-on has access beyond the workspace, and therefore must
// first be proven by its own password or passkey.
var ErrSignOnLink = errors.New("account is not connected with single sign-on")

// ErrLogInAgain says that an operation needs a more recent login.
var ErrLogInAgain = errors.New("login was not opened lately")

// ErrSignOnOnly says that a login came through a workspace's single sign-on and is limited to that workspace.
var ErrSignOnOnly = errors.New("login opens one workspace only")

// RecentLogin is the maximum age of a login that may change single sign-on, or delete the account without its
// password.
const RecentLogin = 15 * time.Minute

// CheckSignOn returns why a principal may not change their workspace's single sign-on: ErrDenied for all
// except its owners, including API keys, or ErrLogInAgain.
func (p Principal) CheckSignOn(now time.Time) error {
	if !p.Role.May(ManageSignOn) {
		return ErrDenied
	}
	if now.Sub(p.Login.CreatedAt) > RecentLogin {
		return ErrLogInAgain
	}
	return nil
}

// SignOnProof is the identity that a workspace's identity provider has proven.
type SignOnProof struct {
	Issuer, Subject string
	Email           string    // lower case
	Account         uuid.UUID // account whose owner was recently proven in the same browser; Nil if absent
}

// SignOn is a workspace's single sign-on (OpenID Connect).
type SignOn struct {
	Issuer   string // URL, as the provider states it
	ClientID string
	Sealed   []byte // client secret, see AboutSignOn
	Role     Role   // role of new members: Regular or Viewer
	SavedAt  time.Time
}

// WantedSignOn is the requested configuration of single sign-on.
type WantedSignOn struct {
	Issuer, ClientID string
	Secret           string // "" keeps the current one, for the same issuer and client
	Role             Role
}

// Fields returns the sign-on's fields for the audit log.
func (s SignOn) Fields() Fields {
	return Fields{"issuer": s.Issuer, "client_id": s.ClientID, "role": string(s.Role)}
}

// Domain is an e-mail domain that a workspace claims.
type Domain struct {
	Name     string // lower case
	Token    string
	ProvenAt time.Time // zero if not proven; the domain then has no effect
}

// Record returns the TXT record that proves the domain.
func (d Domain) Record() string { return "palimpsest-verification=" + d.Token }

// DomainOf returns the domain of an e-mail address, in lower case; "" if absent.
func DomainOf(email string) string {
	at := strings.LastIndexByte(email, '@')
	if at < 1 {
		return ""
	}
	return strings.ToLower(strings.TrimSpace(email[at+1:]))
}

// AboutSignOn returns the context to which a client secret is sealed, so that it is sent to no other issuer.
func AboutSignOn(workspace WorkspaceID, issuer, clientID string) string {
	return "sign-on of ws:" + workspace.String() + "|client:" + clientID + "|issuer:" + issuer
}

// SingleSignOn logs people in through their company's identity provider, and stores its configuration. Bad
// input is an Invalid. Methods that change the configuration return ErrDenied for a non-owner, and
// ErrLogInAgain.
type SingleSignOn interface {
	// Begin returns the provider's URL for the owner of an address, and the state that the browser holds
	// until they return. The errors are ErrNotFound for a domain without sign-on, ErrSignOn, and a TooMany.
	Begin(ctx context.Context, email, next string) (address, held string, err error)

	// Finish returns the token of a login and its target page. The errors are ErrSignOn, a TooMany, a
	// CodeNeeded, and ErrSignOnLink for an account that has not been proven by here, the principal of the
	// browser's session.
	Finish(ctx context.Context, here Principal, held, state, code, userAgent string) (token, next string, err error)

	// Find returns the zero SignOn if sign-on is not set up.
	Find(ctx context.Context, workspace WorkspaceID) (SignOn, []Domain, error)
	// Save checks the provider before storing.
	Save(ctx context.Context, who Principal, wanted WantedSignOn) error
	// Remove returns ErrNotFound if sign-on is not set up.
	Remove(ctx context.Context, who Principal) error

	Claim(ctx context.Context, who Principal, domain string) error
	// Prove and RemoveDomain return ErrNotFound for an unclaimed domain.
	Prove(ctx context.Context, who Principal, domain string) error
	RemoveDomain(ctx context.Context, who Principal, domain string) error
}
