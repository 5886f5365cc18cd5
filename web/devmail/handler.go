// Package devmail is the page that shows the mails of an installation that has no mail
// server, to whoever works on the machine itself.
package devmail

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// Outbox keeps the mails that nobody was sent.
type Outbox interface {
	// Kept returns them, the newest first.
	Kept(ctx context.Context) ([]tenants.WaitingMail, error)
}

// Handler answers the requests to the page.
type Handler struct {
	outbox    Outbox
	publicURL string
	now       func() time.Time
}

// New returns a Handler. The outbox is nil where mails are sent.
func New(outbox Outbox, publicURL string, now func() time.Time) *Handler {
	return &Handler{outbox: outbox, publicURL: publicURL, now: now}
}

// Show shows the mails. Their links open accounts: the page is there only where no
// mail is sent, and only for a browser on this machine.
func (h *Handler) Show(c echo.Context) error {
	if h.outbox == nil || !isLocal(c.Request(), h.publicURL) {
		return tenants.ErrNotFound
	}
	mails, err := h.outbox.Kept(c.Request().Context())
	if err != nil {
		return err
	}
	return layout.Plain(c, http.StatusOK, "Mails", view(newModel(mails, h.now())))
}

// isLocal reports whether a request comes from this machine, by no proxy, to a name of
// this machine, and whether the product is reached nowhere else.
func isLocal(request *http.Request, publicURL string) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "X-Forwarded-Host"} {
		if request.Header.Get(name) != "" {
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
