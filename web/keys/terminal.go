package keys

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
)

// Terminal is the page on which a person lets a terminal log in (RFC 8628): they type its code, check which
// terminal asks, and create an API key for it.
type Terminal struct {
	devices *tenants.DeviceLogins
	now     func() time.Time
}

// NewTerminal returns a Terminal.
func NewTerminal(devices *tenants.DeviceLogins, now func() time.Time) *Terminal {
	return &Terminal{devices: devices, now: now}
}

const terminalTitle = "Log in a terminal"

// terminalModel is the page: the form for the code, or the question for a decision.
type terminalModel struct {
	Code      components.FieldModel
	Email     string // the reader's
	Login     tenants.DeviceLogin
	Asked     string // how long ago the terminal asked
	Elsewhere string // the reader's own address, if the terminal has another one; "" otherwise

	Workspace  components.FieldModel
	Workspaces []components.Option
	Expiry     components.FieldModel
}

// Ask shows the form for the code. It ignores a code in the address, because a person who opens someone
// else's link must not find it filled in.
func (h *Terminal) Ask(c echo.Context, who tenants.Principal) error {
	return layout.Plain(c, http.StatusOK, terminalTitle, terminalAsk(newTerminal(who, "", nil)))
}

// Check shows the terminal that a code belongs to.
func (h *Terminal) Check(c echo.Context, who tenants.Principal) error {
	login, err := h.devices.Find(c.Request().Context(), c.FormValue("code"))
	if err != nil {
		return h.wrong(c, who, err)
	}
	return layout.Plain(c, http.StatusOK, terminalTitle, terminalDecide(h.decision(c, who, login, nil)))
}

// Decide allows or denies a terminal's login.
func (h *Terminal) Decide(c echo.Context, who tenants.Principal) error {
	decision := tenants.DeviceDecision{Denied: c.FormValue("decision") != "allow"}
	if !decision.Denied {
		var err error
		if decision, err = h.allowed(c, who); err != nil {
			return h.undecided(c, who, err)
		}
	}
	login, err := h.devices.Decide(c.Request().Context(), c.FormValue("code"), decision)
	if err != nil {
		return h.wrong(c, who, err)
	}
	return layout.Plain(c, http.StatusOK, terminalTitle, terminalDone(login))
}

// allowed returns the person's choices for the key. The error is a tenants.Invalid.
func (h *Terminal) allowed(c echo.Context, who tenants.Principal) (tenants.DeviceDecision, error) {
	chosen, memberships := c.FormValue("workspace"), who.MayCreateKeys()
	at := slices.IndexFunc(memberships, func(membership tenants.Membership) bool { return membership.Workspace.ID.String() == chosen })
	if at < 0 {
		return tenants.DeviceDecision{}, tenants.Invalid{Field: "workspace", Message: "must be one of the choices"}
	}
	life, err := days(c.FormValue("expiry"))
	if err != nil {
		return tenants.DeviceDecision{}, err
	}
	in := memberships[at].Workspace
	decision := tenants.DeviceDecision{User: who.User.ID, Email: who.User.Email, Workspace: in.ID, Name: in.Name}
	if life > 0 {
		end := h.now().UTC().AddDate(0, 0, life)
		decision.KeyExpires = &end
	}
	return decision, nil
}

// undecided shows the question again with the answer's error.
func (h *Terminal) undecided(c echo.Context, who tenants.Principal, wrong error) error {
	if _, is := errors.AsType[tenants.Invalid](wrong); !is {
		return wrong
	}
	login, err := h.devices.Find(c.Request().Context(), c.FormValue("code"))
	if err != nil {
		return h.wrong(c, who, err)
	}
	return layout.Plain(c, http.StatusUnprocessableEntity, terminalTitle, terminalDecide(h.decision(c, who, login, wrong)))
}

// wrong shows the form for the code with its error.
func (h *Terminal) wrong(c echo.Context, who tenants.Principal, err error) error {
	if _, is := errors.AsType[tenants.Invalid](err); !is {
		return err
	}
	return layout.Plain(c, http.StatusUnprocessableEntity, terminalTitle, terminalAsk(newTerminal(who, c.FormValue("code"), err)))
}

func newTerminal(who tenants.Principal, typed string, err error) terminalModel {
	model := terminalModel{
		Email: who.User.Email,
		Code:  components.FieldModel{Label: "Code", Name: "code", Value: typed, Hint: "Eight letters, as your terminal shows them: WDJB-MJHT."},
	}
	components.FieldErrors(err, &model.Code)
	return model
}

func (h *Terminal) decision(c echo.Context, who tenants.Principal, login tenants.DeviceLogin, err error) terminalModel {
	model := newTerminal(who, c.FormValue("code"), nil)
	model.Login, model.Asked = login, components.Ago(login.AskedAt, h.now())
	if own := c.RealIP(); tenants.PlaceText(own) != tenants.PlaceText(login.From) {
		model.Elsewhere = own
	}
	model.Workspace = components.FieldModel{Label: "Workspace", Name: "workspace", Value: c.FormValue("workspace"), Hint: "The terminal can use its models and read its sessions, with your rights."}
	if model.Workspace.Value == "" {
		model.Workspace.Value = who.Workspace.ID.String()
	}
	for _, membership := range who.MayCreateKeys() {
		model.Workspaces = append(model.Workspaces, components.Option{Value: membership.Workspace.ID.String(), Label: membership.Workspace.Name})
	}
	model.Expiry = components.FieldModel{Label: "Expires", Name: "expiry", Value: c.FormValue("expiry")}
	components.FieldErrors(err, &model.Workspace, &model.Expiry)
	return model
}
