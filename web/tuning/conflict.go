package tuning

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// pickName is in front of a difference's name in the form: whose value is saved.
const pickName = "pick."

// The choices of one difference.
const (
	pickTheirs = "theirs"
	pickMine   = "mine"
)

// conflictModel is what someone saved in the meantime beside what was typed.
type conflictModel struct {
	At     time.Time
	IsMine bool // the same person saved it, on another page
	Rows   []conflictRow
}

// conflictRow is a setting in which the two differ.
type conflictRow struct {
	difference

	Pick string // what is chosen before anybody chooses
}

// conflict shows what was saved after a version beside what was typed over it.
func (h *Handler) conflict(c echo.Context, who tenants.Principal, st state, version int, typed values) error {
	before, known, err := h.version(c.Request().Context(), who.Workspace.ID, version)
	if err != nil {
		return err
	}
	page := newModel(who, st, typed)
	page.Module = moduleNamed(c.FormValue(moduleName))
	page.Conflict = &conflictModel{At: st.saved.SavedAt, IsMine: st.saved.SavedBy == who.User.ID}
	changed := map[string]bool{}
	for _, own := range differences(before, typed) {
		changed[own.Name] = true
		if s, is := settingOf(own.Name); is {
			changed[s.parent()] = true // a member is nothing without what it is of
		}
	}
	for _, difference := range differences(st.now, typed) {
		row := conflictRow{difference: difference, Pick: pickMine}
		if known && !changed[difference.Name] {
			row.Pick = pickTheirs // who typed did not touch it
		}
		if s, is := settingOf(difference.Name); is {
			row.Saved, row.Typed = s.said(st.now.Set[difference.Name], ample), s.said(typed.Set[difference.Name], ample)
		}
		page.Conflict.Rows = append(page.Conflict.Rows, row)
	}
	return h.answer(c, http.StatusConflict, who, page)
}

// version returns what the page showed of a version; known is false if it is not kept.
func (h *Handler) version(ctx context.Context, workspace tenants.WorkspaceID, version int) (shown values, known bool, err error) {
	if version == 0 {
		_, shown, err = h.resolved(tenants.PipelineConfig{})
		return shown, true, err
	}
	history, err := h.deps.Pipelines.PipelineHistory(ctx, workspace)
	if err != nil {
		return values{}, false, err
	}
	for _, saved := range history {
		if saved.Version == version {
			_, shown, err = h.resolved(saved)
			return shown, true, err
		}
	}
	return values{}, false, nil
}

// picked returns what was typed with the saved values that were chosen in a conflict.
func picked(typed, saved values, form url.Values) values {
	next := typed
	for _, difference := range differences(saved, typed) {
		if form.Get(pickName+difference.Name) == pickTheirs {
			next = next.taking(difference.Name, saved)
		}
	}
	return next
}
