package manage

import (
	"context"
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

// accountHandler serves people, their accounts and their logins.
type accountHandler struct {
	identity tenants.Identity
	cookies  tenants.Cookies
	version  string
}

func (h accountHandler) register(group *echo.Group, a *authorizer) {
	group.POST("/signup", h.signUp, a.sameOrigin)
	group.POST("/login", h.logIn, a.sameOrigin)
	group.POST("/logout", h.logOut, a.sameOrigin)

	group.GET("/me", a.known(h.me))

	group.POST("/account/reset", h.ask(h.identity.AskReset), a.sameOrigin)
	group.POST("/account/reset/confirm", h.confirmReset, a.sameOrigin)
	group.POST("/account/verification", h.ask(h.identity.AskVerification), a.sameOrigin)
	group.POST("/account/verification/confirm", h.confirmEmail, a.sameOrigin)
	group.PUT("/account/password", a.as(tenants.Enter, person(h.putPassword)))
	group.PUT("/account/email", a.as(tenants.Enter, person(h.putEmail)))
	group.GET("/account/logins", a.as(tenants.Enter, person(h.listLogins)))
	group.DELETE("/account/logins", a.as(tenants.Enter, person(h.endLogins)))
	group.DELETE("/account/logins/:id", a.as(tenants.Enter, person(h.endLogin)))
}

type userJSON struct {
	ID        uuid.UUID `json:"id"`
	Email     string    `json:"email"`
	CreatedAt time.Time `json:"created_at"`

	VerifiedAt *time.Time `json:"verified_at"` // null if the address is not verified
}

type workspaceJSON struct {
	ID   tenants.WorkspaceID `json:"id"`
	Name string              `json:"name,omitempty"` // "" for an API key
}

// meJSON describes the sender of a request.
type meJSON struct {
	User       *userJSON        `json:"user"`      // null for an API key
	Workspace  *workspaceJSON   `json:"workspace"` // null without a workspace
	Role       tenants.Role     `json:"role,omitempty"`
	Workspaces []membershipJSON `json:"workspaces,omitempty"` // all that the user belongs to
	APIKey     *uuid.UUID       `json:"api_key,omitempty"`
	Key        *keyJSON         `json:"key,omitempty"`     // the API key's current rights
	Version    string           `json:"version,omitempty"` // of the server; for an API key
}

func meOf(principal tenants.Principal) meJSON {
	me := meJSON{
		User: &userJSON{ID: principal.User.ID, Email: principal.User.Email, CreatedAt: principal.User.CreatedAt, VerifiedAt: principal.User.VerifiedAt},
		Role: principal.Role, Workspaces: membershipsOf(principal),
	}
	if !principal.Workspace.ID.IsZero() {
		me.Workspace = &workspaceJSON{ID: principal.Workspace.ID, Name: principal.Workspace.Name}
	}
	return me
}

func (h accountHandler) signUp(c echo.Context) error {
	asked, err := readJSON[struct {
		Email     string `json:"email"`
		Password  string `json:"password"`
		Workspace string `json:"workspace"`
	}](c)
	if err != nil {
		return err
	}
	request := c.Request()
	principal, token, err := h.identity.SignUp(fromPlace(c), asked.Email, asked.Password, asked.Workspace, request.UserAgent())
	if errors.Is(err, tenants.ErrMailSent) {
		return c.JSON(http.StatusAccepted, mailSent())
	}
	if err != nil {
		return err
	}
	h.cookies.Set(c.Response(), token)
	return c.JSON(http.StatusCreated, meOf(principal))
}

func (h accountHandler) logIn(c echo.Context) error {
	asked, err := readJSON[struct {
		Email    string `json:"email"`
		Password string `json:"password"`
		Code     string `json:"code"`
	}](c)
	if err != nil {
		return err
	}
	request := c.Request()
	principal, token, err := h.identity.LogIn(fromPlace(c), asked.Email, asked.Password, c.RealIP(), request.UserAgent())
	if needed, is := errors.AsType[tenants.CodeNeeded](err); is && asked.Code != "" {
		principal, token, err = h.identity.LogInWithCode(fromPlace(c), needed.Pending, asked.Code, request.UserAgent())
		if errors.Is(err, tenants.ErrWrongLogin) {
			return errors.Join(errWrongCode, err)
		}
	}
	if err != nil {
		return err
	}
	h.cookies.Set(c.Response(), token)
	return c.JSON(http.StatusOK, meOf(principal))
}

// logOut ends the cookie's login and deletes the cookie, valid or not.
func (h accountHandler) logOut(c echo.Context) error {
	ctx := c.Request().Context()
	if token := h.cookies.Token(c.Request()); token != "" {
		principal, err := h.identity.Authenticate(ctx, token)
		if err == nil {
			err = h.identity.LogOut(ctx, principal.Login)
		}
		if err != nil && !errors.Is(err, tenants.ErrLoginEnded) {
			return err
		}
	}
	h.cookies.Clear(c.Response())
	return c.NoContent(http.StatusNoContent)
}

func (h accountHandler) me(c echo.Context, who caller) error {
	if who.isKey() {
		if !who.may(tenants.Enter) {
			return who.denied()
		}
		key := keyOf(who.key)
		return c.JSON(http.StatusOK, meJSON{Workspace: &workspaceJSON{ID: who.workspace}, APIKey: &who.key.ID, Key: &key, Version: h.version})
	}
	return c.JSON(http.StatusOK, meOf(who.principal))
}

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
	form, err := url.ParseQuery(body)
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
