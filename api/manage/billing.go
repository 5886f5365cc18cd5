package manage

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// billingHandler leads people to Stripe, and takes Stripe's notices.
type billingHandler struct {
	billing Billing
	log     *slog.Logger
}

func (h billingHandler) register(group *echo.Group, a *authorizer) {
	group.POST("/billing/checkout", a.as(tenants.ManageBilling, withBody(h.openCheckout)))
	group.POST("/billing/portal", a.as(tenants.ManageBilling, h.openPortal))
	group.POST("/billing/webhook", h.takeNotice)
}

// Billing sells plans. If it is off, each of its methods returns tenants.ErrBillingOff.
type Billing interface {
	// Checkout returns the URL for paying a plan. It returns tenants.Invalid for a plan that is not sold and
	// tenants.ErrConflict if there is already a subscription.
	Checkout(ctx context.Context, workspace tenants.Workspace, email, plan string) (string, error)

	// Portal returns the URL for changing a subscription, or tenants.ErrNotFound if there was never one.
	Portal(ctx context.Context, workspace tenants.WorkspaceID) (string, error)

	// Receive handles a notice of Stripe. It returns tenants.ErrDenied without a recent signature of Stripe.
	Receive(ctx context.Context, payload []byte, signature string) error
}

// elsewhereJSON is the URL where a person continues.
type elsewhereJSON struct {
	URL string `json:"url"`
}

func (h billingHandler) openCheckout(c echo.Context, who caller, asked struct {
	Plan string `json:"plan"`
}) error {
	url, err := h.billing.Checkout(c.Request().Context(), who.principal.Workspace, who.principal.User.Email, asked.Plan)
	if errors.Is(err, tenants.ErrConflict) {
		return errSubscribed
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, elsewhereJSON{URL: url})
}

func (h billingHandler) openPortal(c echo.Context, who caller) error {
	url, err := h.billing.Portal(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, elsewhereJSON{URL: url})
}

// takeNotice answers Stripe, which repeats a notice until it is accepted.
func (h billingHandler) takeNotice(c echo.Context) error {
	payload, err := readBody(c)
	if err != nil {
		return err
	}
	signatures := c.Request().Header.Values("Stripe-Signature")
	if len(signatures) > 1 {
		return malformed{"The header Stripe-Signature is repeated. Send it once."}
	}
	err = h.billing.Receive(c.Request().Context(), []byte(payload), strings.Join(signatures, ""))
	if errors.Is(err, tenants.ErrDenied) {
		h.log.WarnContext(c.Request().Context(), "notice refused", "error", err)
		return malformed{"The header Stripe-Signature does not fit the body and the time."}
	}
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusOK)
}
