// Package devmail is the page with the mails of an installation without a mail server, for the person who
// works on the machine itself.
package devmail

import (
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// Handler handles the page's requests.
type Handler struct {
	kept      func(context.Context) ([]tenants.WaitingMail, error)
	token     string
	publicURL string
	now       func() time.Time
}

// New returns a Handler. kept returns the unsent mails, newest first; it is nil if mails are sent. token is
// the last part of the page's address; "" disables the page.
func New(kept func(context.Context) ([]tenants.WaitingMail, error), token, publicURL string, now func() time.Time) *Handler {
	return &Handler{kept: kept, token: token, publicURL: publicURL, now: now}
}

// Show shows the mails. Their links open accounts, so the page exists only if no mail is sent, and only for a
// browser on this machine that has the token. Only the log has the token.
func (h *Handler) Show(c echo.Context) error {
	isKnown := h.token != "" && subtle.ConstantTimeCompare([]byte(c.Param("token")), []byte(h.token)) == 1
	if h.kept == nil || !isKnown || !isLocal(c.Request(), h.publicURL) {
		return tenants.ErrNotFound
	}
	mails, err := h.kept(c.Request().Context())
	if err != nil {
		return err
	}
	return layout.Plain(c, http.StatusOK, "Mails", view(newModel(mails, h.now())))
}

// forwarding are the headers in which proxies and tunnels name the original client, besides X-Forwarded-… and
// X-Original-….
var forwarding = []string{
	"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Client-Ip",
	"Cf-Connecting-Ip", "Cf-Ray", "Fastly-Client-Ip", "Fly-Client-Ip", "X-Envoy-External-Address", "Tailscale-User-Login",
}

// isLocal reports whether a request comes directly from this machine, to a name of this machine, and the
// product has no other address.
func isLocal(request *http.Request, publicURL string) bool {
	for name := range request.Header {
		if slices.Contains(forwarding, name) || strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Original-") {
			return false
		}
	}
	public, err := url.Parse(publicURL)
	return err == nil && isLoopback(public.Hostname()) && isLoopback(hostOf(request.Host)) && isLoopback(hostOf(request.RemoteAddr))
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
