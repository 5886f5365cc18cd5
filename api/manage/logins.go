package manage

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// loginJSON is a login of a person.
type loginJSON struct {
	ID         uuid.UUID `json:"id"`
	UserAgent  string    `json:"user_agent"`
	CreatedAt  time.Time `json:"created_at"`
	LastSeenAt time.Time `json:"last_seen_at"` // accurate to some minutes
	ExpiresAt  time.Time `json:"expires_at"`
	Current    bool      `json:"current"` // this request's login
}

// person wraps a handler for people, since an API key doesn't have an account.
func person(handle func(c echo.Context, who tenants.Principal) error) func(c echo.Context, who caller) error {
	return func(c echo.Context, who caller) error {
		if who.key.ID != uuid.Nil {
			return errNoAccount
		}
		return handle(c, who.principal)
	}
}

func (h accountHandler) listLogins(c echo.Context, who tenants.Principal) error {
	logins, err := h.identity.Logins(c.Request().Context(), who.User.ID)
	if err != nil {
		return err
	}
	data := make([]loginJSON, len(logins))
	for i, login := range logins {
		data[i] = loginJSON{
			ID: login.ID, UserAgent: login.UserAgent, CreatedAt: login.CreatedAt, LastSeenAt: login.SeenAt, ExpiresAt: login.ExpiresAt,
			Current: login.ID == who.Login.ID,
		}
	}
	return answerPage(c, data, "")
}

func (h accountHandler) endLogin(c echo.Context, who tenants.Principal) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	return done(c, h.identity.EndLogin(c.Request().Context(), who.User.ID, id))
}

// endLogins ends all logins, including the request's.
func (h accountHandler) endLogins(c echo.Context, who tenants.Principal) error {
	if err := h.identity.EndLogins(c.Request().Context(), who.User.ID); err != nil {
		return err
	}
	h.cookies.Clear(c.Response())
	return c.NoContent(http.StatusNoContent)
}

func (h accountHandler) putPassword(c echo.Context, who tenants.Principal) error {
	asked, err := readJSON[struct {
		Current  string `json:"current_password"`
		Password string `json:"password"`
	}](c)
	if err != nil {
		return err
	}
	return done(c, h.identity.ChangePassword(c.Request().Context(), who, asked.Current, asked.Password))
}

// putEmail sends a link; the address changes when it is opened.
func (h accountHandler) putEmail(c echo.Context, who tenants.Principal) error {
	asked, err := readJSON[struct {
		Email    string `json:"email"`
		Password string `json:"password"`
	}](c)
	if err != nil {
		return err
	}
	if err := h.identity.AskEmail(c.Request().Context(), who, asked.Password, asked.Email); err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, mailSent())
}

// ask sends a link to an address if it belongs to an account.
func (h accountHandler) ask(send func(ctx context.Context, email, from string) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		asked, err := readJSON[struct {
			Email string `json:"email"`
		}](c)
		if err != nil {
			return err
		}
		if err := send(c.Request().Context(), asked.Email, c.RealIP()); err != nil {
			return err
		}
		return c.JSON(http.StatusAccepted, mailSent())
	}
}

// confirmReset sets a password with the secret in a link.
func (h accountHandler) confirmReset(c echo.Context) error {
	asked, err := readJSON[struct {
		Token    string `json:"token"`
		Password string `json:"password"`
	}](c)
	if err != nil {
		return err
	}
	return done(c, h.identity.ResetPassword(fromPlace(c), asked.Token, asked.Password))
}

// confirmEmail verifies an address with the secret in a link.
func (h accountHandler) confirmEmail(c echo.Context) error {
	asked, err := readJSON[struct {
		Token string `json:"token"`
	}](c)
	if err != nil {
		return err
	}
	if _, err := h.identity.ConfirmEmail(fromPlace(c), asked.Token); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// mailSentJSON says that the address gets a mail if it belongs to an account.
type mailSentJSON struct {
	Status string `json:"status"`
}

// mailSent is the answer to every request for a mail, so that it doesn't reveal who has an account.
func mailSent() mailSentJSON { return mailSentJSON{Status: "mail_sent"} }

// fromPlace returns a request's context with the place of its sender, who is not known yet.
func fromPlace(c echo.Context) context.Context {
	return tenants.WithActor(c.Request().Context(), tenants.Actor{From: c.RealIP()})
}
