package manage

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// Billing sells plans. Where it is off, each of its methods returns
// tenants.ErrBillingOff.
type Billing interface {
	// Checkout returns where a plan is paid for. It returns tenants.Invalid for one that
	// is not sold and tenants.ErrConflict where a subscription runs already.
	Checkout(ctx context.Context, workspace tenants.Workspace, email, plan string) (string, error)

	// Portal returns where a subscription is changed, or tenants.ErrNotFound where there
	// was never one.
	Portal(ctx context.Context, workspace tenants.WorkspaceID) (string, error)

	// Receive takes a notice of Stripe. It returns tenants.ErrDenied for one that Stripe
	// has not signed just now.
	Receive(ctx context.Context, payload []byte, signature string) error
}

// elsewhereJSON says where a person goes on.
type elsewhereJSON struct {
	URL string `json:"url"`
}

func (s *server) openCheckout(c echo.Context, who caller) error {
	asked, err := readJSON[struct {
		Plan string `json:"plan"`
	}](c)
	if err != nil {
		return err
	}
	url, err := s.Billing.Checkout(c.Request().Context(), who.principal.Workspace, who.principal.User.Email, asked.Plan)
	if errors.Is(err, tenants.ErrConflict) {
		return errSubscribed
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, elsewhereJSON{URL: url})
}

func (s *server) openPortal(c echo.Context, who caller) error {
	url, err := s.Billing.Portal(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, elsewhereJSON{URL: url})
}

// takeNotice answers Stripe, which sends a notice again until it is taken.
func (s *server) takeNotice(c echo.Context) error {
	payload, err := readBody(c)
	if err != nil {
		return err
	}
	signatures := c.Request().Header.Values("Stripe-Signature")
	if len(signatures) > 1 {
		return malformed{"The header Stripe-Signature is repeated. Send it once."}
	}
	err = s.Billing.Receive(c.Request().Context(), []byte(payload), strings.Join(signatures, ""))
	if errors.Is(err, tenants.ErrDenied) {
		s.Log.WarnContext(c.Request().Context(), "notice refused", "error", err)
		return malformed{"The header Stripe-Signature does not fit the body and the time."}
	}
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusOK)
}
