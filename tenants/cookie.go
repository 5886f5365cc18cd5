package tenants

import (
	"net"
	"net/http"
	"net/url"
)

// Names of the cookie that holds a login's token. A "__Host-" cookie is Secure
// and bound to its host (RFC 6265bis, section 4.1.3.2); browsers refuse it on
// plain http, so loopback has a name of its own.
const (
	secureCookie   = "__Host-palimpsest"
	loopbackCookie = "palimpsest"
	linkSuffix     = "-link"    // of the cookie with the secret of a link
	signOnSuffix   = "-sign-on" // of the cookie with a single sign-on that is under way
	pendingSuffix  = "-code"    // of the cookie with a log-in that waits for its code
	passkeySuffix  = "-passkey" // of the cookie with what a passkey is asked
)

// Cookies writes and reads the cookie of a login.
type Cookies struct{ secure bool }

// NewCookies returns Cookies for a product that people reach at publicURL. Only
// plain http on loopback gets a cookie without Secure.
func NewCookies(publicURL string) Cookies {
	parsed, err := url.Parse(publicURL)
	if err != nil || parsed.Scheme != "http" {
		return Cookies{secure: true}
	}
	host := parsed.Hostname()
	ip := net.ParseIP(host)
	return Cookies{secure: host != "localhost" && (ip == nil || !ip.IsLoopback())}
}

// Set puts a login's token into the browser.
func (c Cookies) Set(w http.ResponseWriter, token string) {
	cookie := c.cookie(token) //nolint:gosec // not Secure on loopback http only
	cookie.MaxAge = int(LoginAge.Seconds())
	http.SetCookie(w, cookie)
}

// Clear takes it out again.
func (c Cookies) Clear(w http.ResponseWriter) {
	cookie := c.cookie("") //nolint:gosec // not Secure on loopback http only
	cookie.MaxAge = -1
	http.SetCookie(w, cookie)
}

// Token returns the token that a request brings; empty if absent.
func (c Cookies) Token(request *http.Request) string {
	cookie, err := request.Cookie(c.name())
	if err != nil {
		return ""
	}
	return cookie.Value
}

// SetLink puts the secret of a link that was opened into the browser, so that it does
// not stand in the address of the page that uses it.
func (c Cookies) SetLink(w http.ResponseWriter, secret string) {
	cookie := c.link(secret) //nolint:gosec // not Secure on loopback http only
	cookie.MaxAge = int(ResetAge.Seconds())
	http.SetCookie(w, cookie)
}

// ClearLink takes it out again.
func (c Cookies) ClearLink(w http.ResponseWriter) {
	cookie := c.link("") //nolint:gosec // not Secure on loopback http only
	cookie.MaxAge = -1
	http.SetCookie(w, cookie)
}

// Link returns the secret of the link that was opened; empty if none was.
func (c Cookies) Link(request *http.Request) string {
	cookie, err := request.Cookie(c.name() + linkSuffix)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// SetPending puts the token of a log-in that waits for its code into the browser.
func (c Cookies) SetPending(w http.ResponseWriter, pending string) {
	cookie := c.cookie(pending) //nolint:gosec // not Secure on loopback http only
	cookie.Name, cookie.MaxAge = cookie.Name+pendingSuffix, int(PendingAge.Seconds())
	http.SetCookie(w, cookie)
}

// ClearPending takes it out again.
func (c Cookies) ClearPending(w http.ResponseWriter) {
	cookie := c.cookie("") //nolint:gosec // not Secure on loopback http only
	cookie.Name, cookie.MaxAge = cookie.Name+pendingSuffix, -1
	http.SetCookie(w, cookie)
}

// Pending returns the token of the log-in that waits for its code; empty if none does.
func (c Cookies) Pending(request *http.Request) string {
	cookie, err := request.Cookie(c.name() + pendingSuffix)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// SetSignOn puts what a single sign-on that is under way must come back with into the
// browser.
func (c Cookies) SetSignOn(w http.ResponseWriter, begun string) {
	cookie := c.cookie(begun) //nolint:gosec // not Secure on loopback http only
	cookie.Name, cookie.MaxAge = cookie.Name+signOnSuffix, int(SignOnAge.Seconds())
	http.SetCookie(w, cookie)
}

// TakeSignOn returns it and takes it out again: it is good once.
func (c Cookies) TakeSignOn(w http.ResponseWriter, request *http.Request) string {
	name := c.name() + signOnSuffix
	sent, err := request.Cookie(name)
	if err != nil {
		return ""
	}
	cookie := c.cookie("") //nolint:gosec // not Secure on loopback http only
	cookie.Name, cookie.MaxAge = name, -1
	http.SetCookie(w, cookie)
	return sent.Value
}

// SetPasskey puts what a passkey is asked into the browser, which alone may answer it.
func (c Cookies) SetPasskey(w http.ResponseWriter, asked string) {
	cookie := c.cookie(asked) //nolint:gosec // not Secure on loopback http only
	cookie.Name, cookie.MaxAge = cookie.Name+passkeySuffix, int(PasskeyAge.Seconds())
	http.SetCookie(w, cookie)
}

// Passkey returns it; empty if nothing is asked.
func (c Cookies) Passkey(request *http.Request) string {
	cookie, err := request.Cookie(c.name() + passkeySuffix)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// TakePasskey returns it and takes it out again: it is good once.
func (c Cookies) TakePasskey(w http.ResponseWriter, request *http.Request) string {
	asked := c.Passkey(request)
	cookie := c.cookie("") //nolint:gosec // not Secure on loopback http only
	cookie.Name, cookie.MaxAge = cookie.Name+passkeySuffix, -1
	http.SetCookie(w, cookie)
	return asked
}

func (c Cookies) link(secret string) *http.Cookie {
	cookie := c.cookie(secret) //nolint:gosec // not Secure on loopback http only
	cookie.Name += linkSuffix
	return cookie
}

func (c Cookies) name() string {
	if c.secure {
		return secureCookie
	}
	return loopbackCookie
}

func (c Cookies) cookie(value string) *http.Cookie {
	//nolint:gosec // not Secure on loopback http only
	return &http.Cookie{Name: c.name(), Value: value, Path: "/", HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteLaxMode}
}
