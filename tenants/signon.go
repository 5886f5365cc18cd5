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

// ErrSignOn says that a single sign-on did not prove who someone is. What wraps it says
// why.
var ErrSignOn = errors.New("single sign-on is refused")

// ErrSignOnLink says that a single sign-on is for an account that reaches beyond the
// workspace, and that is to be proven by its own password or passkey first.
var ErrSignOnLink = errors.New("account is not connected with single sign-on")

// ErrLogInAgain says that something needs a login that was opened lately.
var ErrLogInAgain = errors.New("login was not opened lately")

// ErrSignOnOnly says that a login came through a workspace's single sign-on and opens that
// workspace only.
var ErrSignOnOnly = errors.New("login opens one workspace only")

// RecentLogin is the highest age of a login that may change single sign-on, or delete the
// account without its password.
const RecentLogin = 15 * time.Minute

// CheckSignOn returns why a principal may not change their workspace's single sign-on:
// ErrDenied for all but its owners, API keys included, or ErrLogInAgain.
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
	Account         uuid.UUID // who has proven the same to us lately, in the same browser; Nil if nobody
}

// SignOn is where the people of a workspace prove who they are (OpenID Connect).
type SignOn struct {
	Issuer   string // URL, as the provider names itself
	ClientID string
	Sealed   []byte // client secret, see AboutSignOn
	Role     Role   // of people whom it brings in: Regular or Viewer
	SavedAt  time.Time
}

// WantedSignOn is what someone sets single sign-on to.
type WantedSignOn struct {
	Issuer, ClientID string
	Secret           string // empty: as before, for the same issuer and client
	Role             Role
}

// Fields are the sign-on as the audit log shows it.
func (s SignOn) Fields() Fields {
	return Fields{"issuer": s.Issuer, "client_id": s.ClientID, "role": string(s.Role)}
}

// Domain is a domain of addresses that a workspace says is its own.
type Domain struct {
	Name     string // lower case
	Token    string
	ProvenAt time.Time // zero: not yet, and it counts for nothing
}

// Record returns the TXT record that proves the domain.
func (d Domain) Record() string { return "palimpsest-verification=" + d.Token }

// DomainOf returns the domain of an e-mail address, in lower case; empty: it has none.
func DomainOf(email string) string {
	at := strings.LastIndexByte(email, '@')
	if at < 1 {
		return ""
	}
	return strings.ToLower(strings.TrimSpace(email[at+1:]))
}

// AboutSignOn is what a client secret is sealed for: it is sent to no other issuer.
func AboutSignOn(workspace WorkspaceID, issuer, clientID string) string {
	return "sign-on of ws:" + workspace.String() + "|client:" + clientID + "|issuer:" + issuer
}

// SingleSignOn logs people in through their company's identity provider, and keeps where
// that is. What a person can mend of its settings is an Invalid. All that changes them
// returns ErrDenied for someone who is not an owner, and ErrLogInAgain.
type SingleSignOn interface {
	// Begin returns where the owner of an address proves who they are, and what the
	// browser holds until then, ErrNotFound for a domain without sign-on, ErrSignOn, or
	// a TooMany.
	Begin(ctx context.Context, email, next string) (address, held string, err error)

	// Finish returns the token of a login and where it leads, ErrSignOn, a TooMany, a
	// CodeNeeded, or ErrSignOnLink for an account that here, whom the browser's session
	// belongs to, has not proven.
	Finish(ctx context.Context, here Principal, held, state, code, userAgent string) (token, next string, err error)

	// Find returns the zero SignOn if sign-on is not set up.
	Find(ctx context.Context, workspace WorkspaceID) (SignOn, []Domain, error)
	// Save asks the provider before it keeps anything.
	Save(ctx context.Context, who Principal, wanted WantedSignOn) error
	// Remove returns ErrNotFound if sign-on is not set up.
	Remove(ctx context.Context, who Principal) error

	Claim(ctx context.Context, who Principal, domain string) error
	// Prove and RemoveDomain return ErrNotFound for a domain that was not claimed.
	Prove(ctx context.Context, who Principal, domain string) error
	RemoveDomain(ctx context.Context, who Principal, domain string) error
}
