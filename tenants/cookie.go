package tenants

import (
	"net"
	"net/http"
	"net/url"
	"time"
)

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
