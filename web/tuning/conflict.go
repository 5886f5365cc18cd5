package tuning

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// conflictModel says what was saved in the meantime.
type conflictModel struct {
	At     time.Time
	IsMine bool // the same person saved it, on another page
}

// conflict shows the form again over what was saved in the meantime: with the values that the
// person changed since a version, and with the newest ones in place of all others.
func (h *Handler) conflict(c echo.Context, who tenants.Principal, st state, version int, typed values) error {
	before, known, err := h.version(c.Request().Context(), who.Workspace.ID, version)
	if err != nil {
		return err
	}
	mine := typed
	if known {
		mine = st.now
		for _, own := range differences(before, typed) {
			if s, is := settingOf(own.Name); is && s.parent() != "" {
				mine = mine.taking(s.parent(), typed) // a member is nothing without what it is of
			}
			mine = mine.taking(own.Name, typed)
		}
	}
	page := newModel(who, st, mine)
	page.Module = moduleNamed(c.FormValue(moduleName))
	page.Conflict = &conflictModel{At: st.saved.SavedAt, IsMine: st.saved.SavedBy == who.User.ID}
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
