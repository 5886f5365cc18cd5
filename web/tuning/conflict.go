package tuning

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// conflictModel describes the version saved in the meantime.
type conflictModel struct {
	At     time.Time
	IsMine bool // the same person saved it on another page
}

// conflict shows the form again over the version saved in the meantime. It keeps the values that the person
// changed since a version and takes all others from the newest version.
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
				mine = mine.taking(s.parent(), typed) // a member needs its parent
			}
			mine = mine.taking(own.Name, typed)
		}
	}
	page := newModel(who, st, mine)
	page.Module = moduleNamed(c.FormValue(moduleName))
	page.Conflict = &conflictModel{At: st.saved.SavedAt, IsMine: st.saved.SavedBy == who.User.ID}
	return h.answer(c, http.StatusConflict, who, page)
}

// version returns the values that the page showed of a version; known is false if it is no longer stored.
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
