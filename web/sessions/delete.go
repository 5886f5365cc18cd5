package sessions

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// deleteModel is the question whether to delete sessions.
type deleteModel struct {
	IDs     []uuid.UUID
	Titles  []string
	Confirm components.FieldModel
}

// wanted returns the text that confirms the deletion.
func (m *deleteModel) wanted() string { return "delete " + strconv.Itoa(len(m.IDs)) }

// ConfirmDelete asks whether to delete the chosen sessions.
func (h *Handler) ConfirmDelete(c echo.Context, who tenants.Principal) error {
	return h.ask(c, who, http.StatusOK, c.QueryParams()["id"], "", false)
}

// Delete deletes sessions after the confirmation was typed. Each deletion is a change of its own.
func (h *Handler) Delete(c echo.Context, who tenants.Principal) error {
	form, err := c.FormParams()
	if err != nil {
		return err
	}
	typed, chosen := strings.TrimSpace(c.FormValue("confirm")), form["id"]
	ids := idsOf(chosen)
	if len(ids) == 0 || typed != (&deleteModel{IDs: ids}).wanted() {
		return h.ask(c, who, http.StatusUnprocessableEntity, chosen, typed, true)
	}
	ctx, workspace, deleted := c.Request().Context(), who.Workspace.ID, 0
	for _, id := range ids {
		err := h.deps.Changes.Together(ctx, workspace, func(tenant tenants.Tenant) error {
			if err := h.deps.Sessions.Delete(ctx, tenant, id); err != nil {
				return err
			}
			return h.deps.Changes.Note(ctx, tenant, tenants.Change{Action: tenants.SessionDeleted, Target: id.String()})
		})
		switch {
		case errors.Is(err, session.ErrNotFound): // someone else deleted it first
		case err != nil:
			return fmt.Errorf("%d of %d sessions are deleted: %w", deleted, len(ids), err)
		default:
			deleted++
		}
	}
	return layout.Redirect(c, paths.With(paths.Sessions, "deleted", strconv.Itoa(deleted)))
}

// ask shows the question above the list.
func (h *Handler) ask(c echo.Context, who tenants.Principal, status int, chosen []string, typed string, refused bool) error {
	shown, err := h.model(c, who)
	if err != nil {
		return err
	}
	found, err := h.chosen(c.Request().Context(), who, shown.Reader, idsOf(chosen))
	if err != nil {
		return err
	}
	question := deleteModel{}
	for i := range found {
		question.IDs, question.Titles = append(question.IDs, found[i].ID), append(question.Titles, row{Overview: found[i]}.title())
	}
	if len(question.IDs) == 0 {
		shown.NoneChosen = true
		return h.page(c, who, http.StatusUnprocessableEntity, shown)
	}
	question.Confirm = components.FieldModel{Label: "Type “" + question.wanted() + "”", Name: "confirm", Value: typed}
	if refused {
		question.Confirm.Error = "Nothing is deleted yet. Type “" + question.wanted() + "”, without the quotes."
	}
	shown.Delete = &question
	return h.page(c, who, status, shown)
}

// deletedOf returns how many sessions an address reports as deleted. Anyone can write an address, so a value
// that is not a number is ignored.
func deletedOf(text string) string {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return ""
	}
	return components.Plural(int64(n), "session")
}

// idsOf returns the distinct ids among the chosen values, at most as many as a page lists.
func idsOf(chosen []string) []uuid.UUID {
	var ids []uuid.UUID
	seen := map[uuid.UUID]bool{}
	for _, text := range chosen {
		if id, err := uuid.Parse(text); err == nil && !seen[id] && len(ids) < pageSize {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

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
