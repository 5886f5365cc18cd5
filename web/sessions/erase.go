package sessions

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// eraseModel is the question whether to erase an end user.
type eraseModel struct {
	User, Name, Back string
	Confirm          components.FieldModel
}

// shownOfUser is how many characters of an end user's hash confirm the erasure.
const shownOfUser = 8

// wanted returns the text that confirms the erasure.
func (m *eraseModel) wanted() string { return "erase " + m.User[:shownOfUser] }

// ConfirmErase asks whether to erase an end user.
func (h *Handler) ConfirmErase(c echo.Context, who tenants.Principal) error {
	return h.askErase(c, who, http.StatusOK, c.QueryParam("end_user"), "", false)
}

// Erase erases an end user after the confirmation was typed.
func (h *Handler) Erase(c echo.Context, who tenants.Principal) error {
	user, typed := c.FormValue("end_user"), strings.TrimSpace(c.FormValue("confirm"))
	if !session.IsEndUserID(user) || typed != (&eraseModel{User: user}).wanted() {
		return h.askErase(c, who, http.StatusUnprocessableEntity, user, typed, true)
	}
	ctx := c.Request().Context()
	erased, err := session.EraseAll(ctx, h.deps.Sessions, who.Workspace.ID, []string{user}, h.deps.Now(), h.deps.Changes.Together, func(tenant tenants.Tenant, user string, part session.Erased) error {
		return h.deps.Changes.Note(ctx, tenant, tenants.Change{Action: tenants.EndUserErased, Target: user, After: part.Counts()})
	})
	if err != nil {
		return err
	}
	return layout.Redirect(c, paths.With(paths.Sessions, "erased", strconv.FormatInt(erased.Sessions, 10)))
}

// askErase shows the question above the list of the end user's sessions.
func (h *Handler) askErase(c echo.Context, who tenants.Principal, status int, user, typed string, refused bool) error {
	if !session.IsEndUserID(user) {
		return tenants.ErrNotFound
	}
	c.QueryParams().Set("end_user", user)
	shown, err := h.model(c, who)
	if err != nil {
		return err
	}
	question := &eraseModel{User: user, Name: shown.userName(), Back: shown.Asked.path()}
	question.Confirm = components.FieldModel{Label: "Type “" + question.wanted() + "”", Name: "confirm", Value: typed}
	if refused {
		question.Confirm.Error = "Nothing is erased yet. Type “" + question.wanted() + "”, without the quotes."
	}
	shown.Erase = question
	return h.page(c, who, status, shown)
}
