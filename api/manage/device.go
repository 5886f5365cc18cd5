package manage

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// grantDevice is the grant type of RFC 8628.
const grantDevice = "urn:ietf:params:oauth:grant-type:device_code"

// deviceHandler lets terminals log in with OAuth's device authorization grant.
type deviceHandler struct {
	devices *tenants.DeviceLogins
}

func (h deviceHandler) register(group *echo.Group, a *authorizer) {
	group.POST("/login/device", h.authorize, a.sameOrigin)
	group.POST("/login/token", h.token, a.sameOrigin)
}

type deviceJSON struct {
	DeviceCode      string `json:"device_code"`
	UserCode        string `json:"user_code"`
	VerificationURI string `json:"verification_uri"`
	ExpiresIn       int    `json:"expires_in"` // seconds
	Interval        int    `json:"interval"`   // seconds
}

// tokenJSON is a terminal's API key in OAuth's terms, with our own additions.
type tokenJSON struct {
	AccessToken string        `json:"access_token"`
	TokenType   string        `json:"token_type"`
	Scope       string        `json:"scope"`
	ExpiresIn   int           `json:"expires_in,omitempty"` // seconds; 0 means never
	KeyID       uuid.UUID     `json:"key_id"`
	Workspace   workspaceJSON `json:"workspace"`
}

// oauthJSON is an error of RFC 6749, section 5.2.
type oauthJSON struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// authorize gives a terminal its two codes. It omits an address with the code in it
// (verification_uri_complete), because a person who receives one might allow a login that they did not begin.
func (h deviceHandler) authorize(c echo.Context) error {
	values, err := oauthForm(c)
	if err != nil {
		return err
	}
	if values("client_id") == "" {
		return answerOAuth(c, "invalid_request", "client_id is missing")
	}
	codes, err := h.devices.Begin(fromPlace(c), values("machine"))
	if invalid, is := errors.AsType[tenants.Invalid](err); is {
		return answerOAuth(c, "invalid_request", invalid.Field+" "+invalid.Message)
	}
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, deviceJSON{
		DeviceCode: codes.Device, UserCode: codes.User, VerificationURI: h.devices.Page,
		ExpiresIn: int(tenants.DeviceLoginAge.Seconds()), Interval: int(codes.Pause.Seconds()),
	})
}

// token gives a terminal its API key after a person has allowed it.
func (h deviceHandler) token(c echo.Context) error {
	values, err := oauthForm(c)
	if err != nil {
		return err
	}
	if values("grant_type") != grantDevice {
		return answerOAuth(c, "unsupported_grant_type", "grant_type must be "+grantDevice)
	}
	if values("client_id") == "" || values("device_code") == "" {
		return answerOAuth(c, "invalid_request", "client_id or device_code is missing")
	}
	key, err := h.devices.Redeem(fromPlace(c), values("device_code"))
	if refusal, is := deviceRefusal(err); is {
		return answerOAuth(c, refusal, err.Error())
	}
	if err != nil {
		return err
	}
	answer := tokenJSON{
		AccessToken: key.Secret, TokenType: "Bearer", Scope: tenants.JoinScopes(key.Scopes, " "), KeyID: key.ID,
		Workspace: workspaceJSON{ID: key.Workspace, Name: key.WorkspaceName},
	}
	if key.ExpiresAt != nil {
		answer.ExpiresIn = int(math.Ceil(time.Until(*key.ExpiresAt).Seconds()))
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, answer)
}

// deviceRefusal returns RFC 8628's code for the reason why a terminal does not get a key.
func deviceRefusal(err error) (string, bool) {
	for kind, word := range map[error]string{
		tenants.ErrDevicePending: "authorization_pending", tenants.ErrDeviceSlow: "slow_down",
		tenants.ErrDeviceDenied: "access_denied", tenants.ErrDeviceEnded: "expired_token",
	} {
		if errors.Is(err, kind) {
			return word, true
		}
	}
	return "", false
}

// oauthForm returns a function that reads the values of a form. It refuses a value that is given twice.
func oauthForm(c echo.Context) (func(name string) string, error) {
	if mediaType(c.Request()) != echo.MIMEApplicationForm {
		return nil, errNotForm
	}
	body, err := readBody(c)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, malformed{message: "The body is not a form."}
	}
	for name, values := range form {
		if len(values) > 1 {
			return nil, malformed{message: "The form has " + strconv.Quote(name) + " twice."}
		}
	}
	return func(name string) string { return strings.TrimSpace(form.Get(name)) }, nil
}

func answerOAuth(c echo.Context, word, description string) error {
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusBadRequest, oauthJSON{Error: word, Description: description})
}

// endUserHandler deletes data of the end users of applications.
type endUserHandler struct {
	sessions session.Records
	audit    tenants.AuditLog
	now      func() time.Time
}

func (h endUserHandler) register(group *echo.Group, a *authorizer) {
	group.DELETE("/users/:id", a.as(tenants.DeleteSessions, h.eraseUser))
}

// erasedJSON lists the deleted data of an end user.
type erasedJSON struct {
	EndUser  string `json:"end_user"`
	Sessions int64  `json:"sessions"`
	Requests int64  `json:"requests"`
	Answers  int64  `json:"answers"`
	Patterns int64  `json:"patterns"`
}

// eraseUser deletes the data of an end user. A repeated call deletes data that arrived since.
func (h endUserHandler) eraseUser(c echo.Context, who caller) error {
	id, err := url.PathUnescape(c.Param("id"))
	if err != nil || id == "" {
		return tenants.Invalid{Field: "id", Message: "must be the id of an end user, as the application sends it or as end_user has it, with %2F for a slash"}
	}
	users := session.EndUserIDs(who.workspace, id)
	erased, err := session.EraseAll(c.Request().Context(), h.sessions, who.workspace, users, h.now(), h.audit.Together, func(tenant tenants.Tenant, user string, part session.Erased) error {
		return h.audit.Note(c.Request().Context(), tenant, tenants.Change{Action: tenants.EndUserErased, Target: user, After: part.Counts()})
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, erasedJSON{
		EndUser: users[0], Sessions: erased.Sessions, Requests: erased.Requests, Answers: erased.Answers, Patterns: erased.Patterns,
	})
}
