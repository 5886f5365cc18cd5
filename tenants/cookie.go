package tenants

import (
	"net"
	"net/http"
	"net/url"
	"time"
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
func (c Cookies) Set(w http.ResponseWriter, token string) { c.put(w, "", token, LoginAge) }

// Clear takes it out again.
func (c Cookies) Clear(w http.ResponseWriter) { c.remove(w, "") }

// Token returns the token that a request brings; empty if absent.
func (c Cookies) Token(request *http.Request) string { return c.value(request, "") }

// SetLink puts the secret of a link that was opened into the browser, so that it does
// not stand in the address of the page that uses it.
func (c Cookies) SetLink(w http.ResponseWriter, secret string) {
	c.put(w, linkSuffix, secret, ResetAge)
}

// ClearLink takes it out again.
func (c Cookies) ClearLink(w http.ResponseWriter) { c.remove(w, linkSuffix) }

// Link returns the secret of the link that was opened; empty if none was.
func (c Cookies) Link(request *http.Request) string { return c.value(request, linkSuffix) }

// SetPending puts the token of a log-in that waits for its code into the browser.
func (c Cookies) SetPending(w http.ResponseWriter, pending string) {
	c.put(w, pendingSuffix, pending, PendingAge)
}

// ClearPending takes it out again.
func (c Cookies) ClearPending(w http.ResponseWriter) { c.remove(w, pendingSuffix) }

// Pending returns the token of the log-in that waits for its code; empty if none does.
func (c Cookies) Pending(request *http.Request) string { return c.value(request, pendingSuffix) }

// SetSignOn puts what a single sign-on that is under way must come back with into the
// browser.
func (c Cookies) SetSignOn(w http.ResponseWriter, begun string) {
	c.put(w, signOnSuffix, begun, SignOnAge)
}

// TakeSignOn returns it and takes it out again: it is good once.
func (c Cookies) TakeSignOn(w http.ResponseWriter, request *http.Request) string {
	begun := c.value(request, signOnSuffix)
	if begun != "" {
		c.remove(w, signOnSuffix)
	}
	return begun
}

// SetPasskey puts what a passkey is asked into the browser, which alone may answer it.
func (c Cookies) SetPasskey(w http.ResponseWriter, asked string) {
	c.put(w, passkeySuffix, asked, PasskeyAge)
}

// Passkey returns it; empty if nothing is asked.
func (c Cookies) Passkey(request *http.Request) string { return c.value(request, passkeySuffix) }

// TakePasskey returns it and takes it out again: it is good once.
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

// remove has the browser forget a cookie: its age is less than 0.
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
