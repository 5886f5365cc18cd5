package tenants

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
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
	Name     string `gorm:"column:domain"` // lower case
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

// Names of the cookie that holds a login's token. A "__Host-" cookie is Secure and bound to its host (RFC
// 6265bis, section 4.1.3.2). Loopback has another name because browsers refuse such a cookie on plain http.
const (
	secureCookie   = "__Host-palimpsest"
	loopbackCookie = "palimpsest"
	linkSuffix     = "-link"    // of the cookie with the secret of a link
	signOnSuffix   = "-sign-on" // of the cookie with the pending single sign-on
	pendingSuffix  = "-code"    // of the cookie of a log-in that waits for its code
	passkeySuffix  = "-passkey" // of the cookie with the passkey challenge
)

// Cookies writes and reads the cookie of a login.
type Cookies struct{ secure bool }

// NewCookies returns Cookies for a product at publicURL. Only plain http on loopback gets a cookie without
// Secure.
func NewCookies(publicURL string) Cookies {
	parsed, err := url.Parse(publicURL)
	if err != nil || parsed.Scheme != "http" {
		return Cookies{secure: true}
	}
	host := parsed.Hostname()
	ip := net.ParseIP(host)
	return Cookies{secure: host != "localhost" && (ip == nil || !ip.IsLoopback())}
}

// Set stores a login's token in the browser.
func (c Cookies) Set(w http.ResponseWriter, token string) { c.put(w, "", token, LoginAge) }

// Clear removes the login's token.
func (c Cookies) Clear(w http.ResponseWriter) { c.remove(w, "") }

// Token returns the token of a request; "" if absent.
func (c Cookies) Token(request *http.Request) string { return c.value(request, "") }

// SetLink stores the secret of an opened link in the browser, so that it is not in the URL of the page that
// uses it.
func (c Cookies) SetLink(w http.ResponseWriter, secret string) {
	c.put(w, linkSuffix, secret, ResetAge)
}

// ClearLink removes the link's secret.
func (c Cookies) ClearLink(w http.ResponseWriter) { c.remove(w, linkSuffix) }

// Link returns the secret of the opened link; "" if absent.
func (c Cookies) Link(request *http.Request) string { return c.value(request, linkSuffix) }

// SetPending stores the token of a log-in that waits for its code in the browser.
func (c Cookies) SetPending(w http.ResponseWriter, pending string) {
	c.put(w, pendingSuffix, pending, PendingAge)
}

// ClearPending removes the pending token.
func (c Cookies) ClearPending(w http.ResponseWriter) { c.remove(w, pendingSuffix) }

// Pending returns the token of the login that waits for its code; "" if absent.
func (c Cookies) Pending(request *http.Request) string { return c.value(request, pendingSuffix) }

// SetSignOn stores the state of a pending single sign-on in the browser. The sign-on must return with it.
func (c Cookies) SetSignOn(w http.ResponseWriter, begun string) {
	c.put(w, signOnSuffix, begun, SignOnAge)
}

// TakeSignOn returns and removes it, because it works only once.
func (c Cookies) TakeSignOn(w http.ResponseWriter, request *http.Request) string {
	begun := c.value(request, signOnSuffix)
	if begun != "" {
		c.remove(w, signOnSuffix)
	}
	return begun
}

// SetPasskey stores a passkey challenge in the browser, because only that browser may answer it.
func (c Cookies) SetPasskey(w http.ResponseWriter, asked string) {
	c.put(w, passkeySuffix, asked, PasskeyAge)
}

// Passkey returns it; "" if absent.
func (c Cookies) Passkey(request *http.Request) string { return c.value(request, passkeySuffix) }

// TakePasskey returns and removes it, because it works only once.
func (c Cookies) TakePasskey(w http.ResponseWriter, request *http.Request) string {
	c.remove(w, passkeySuffix)
	return c.Passkey(request)
}

func (c Cookies) put(w http.ResponseWriter, suffix, value string, age time.Duration) {
	//nolint:gosec // not Secure on loopback http only
	http.SetCookie(w, &http.Cookie{
		Name: c.name() + suffix, Value: value, Path: "/", MaxAge: int(age.Seconds()),
		HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteLaxMode,
	})
}

// remove deletes a cookie in the browser by a negative age.
func (c Cookies) remove(w http.ResponseWriter, suffix string) { c.put(w, suffix, "", -time.Second) }

func (c Cookies) value(request *http.Request, suffix string) string {
	cookie, err := request.Cookie(c.name() + suffix)
	if err != nil {
		return ""
	}
	return cookie.Value
}

func (c Cookies) name() string {
	if c.secure {
		return secureCookie
	}
	return loopbackCookie
}
