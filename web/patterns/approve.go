package patterns

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/modules/patterns"
	"palimpsest/tenants"
	"palimpsest/web/components"
)

// maxApproved bounds how many rules are approved with one form.
const maxApproved = candidatePage

// ApproveSelected approves several rules, all or none, of those whose words the person may read.
func (h *Handler) ApproveSelected(c echo.Context, who tenants.Principal) error {
	form, err := c.FormParams()
	if err != nil {
		return fmt.Errorf("read form: %w", err)
	}
	if len(form["id"]) == 0 || len(form["id"]) > maxApproved {
		return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) {
			m.Refused = fmt.Sprintf("Nothing was approved: select 1 to %d rules.", maxApproved)
		})
	}
	ctx, approved := c.Request().Context(), patterns.Approved
	reader, err := h.readers.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil {
		return err
	}
	err = h.audit.Together(ctx, who.Workspace.ID, func(tenant tenants.Tenant) error {
		for _, text := range form["id"] {
			id, err := uuid.Parse(text)
			if err != nil {
				return tenants.ErrNotFound
			}
			before, err := h.store.Pattern(ctx, tenant, id)
			if errors.Is(err, patterns.ErrNotFound) {
				return tenants.ErrNotFound
			}
			if err == nil && !mayRead(&before, reader) {
				err = tenants.ErrTextDenied
			}
			if err != nil {
				return err
			}
			changed, err := h.store.Change(ctx, tenant, id, before.Version, patterns.Change{Status: &approved}, who.User.ID, h.now().UTC())
			if err != nil {
				return err
			}
			change := tenants.Change{Action: tenants.PatternChanged, Target: id.String(), Before: before.Facts(), After: changed.Facts()}
			if err := h.audit.Note(ctx, tenant, change); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, patterns.ErrChanged) {
		return h.page(c, who, http.StatusConflict, func(m *model) { m.Conflict = true })
	}
	if err != nil {
		return err
	}
	return h.back(c, patterns.Candidate, fmt.Sprintf("approved-%d", len(form["id"])))
}

// approvedWords says how many rules were approved at once.
func approvedWords(n int64) string {
	return components.Plural(n, "rule") + " approved. They go into prompts that they are relevant to."
}
