package tuning

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"gopkg.in/yaml.v3"

	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// document returns the saved YAML with the changed settings in place. Defaults are left out. The rest of the
// YAML stays, comments included. The error is a pipeline.Invalid that a person can fix.
func (v values) document(yamlSaved string, saved, defaults values) (string, error) {
	edits := []pipeline.Edit{{Path: "modules"}} // modules have a column of their own
	for _, s := range settings() {
		typed := v.Set[s.path()]
		if v.mustHave(s) && typed == "" {
			return "", pipeline.Invalid{Field: s.path(), Message: "is empty"}
		}
		if s.parent() != "" || !v.isChanged(s, saved) {
			continue
		}
		edit := pipeline.Edit{Path: s.path()}
		switch {
		case !v.isChanged(s, defaults):
		case len(s.Members) > 0 && typed == "true":
			edit.Value = v.members(s.path())
		default:
			edit.Value = s.node(typed)
		}
		edits = append(edits, edit)
	}
	return pipeline.EditYAML(yamlSaved, edits...)
}

// mustHave reports whether a setting may not be left empty.
func (v values) mustHave(s setting) bool {
	if s.First != "" {
		return v.Set[s.parent()] == "true" // empty would turn it off
	}
	return s.Kind == pipeline.Number && !s.IsOptional
}

// isChanged reports whether a setting or one of its members differs from others.
func (v values) isChanged(s setting, others values) bool {
	if !s.isSame(v.Set[s.path()], others.Set[s.path()]) {
		return true
	}
	if len(s.Members) == 0 || v.Set[s.path()] != "true" {
		return false
	}
	return slices.ContainsFunc(settings(), func(member setting) bool {
		return member.parent() == s.path() && !member.isSame(v.Set[member.path()], others.Set[member.path()])
	})
}

// members returns the typed members of a setting.
func (v values) members(parent string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, s := range settings() {
		if s.parent() != parent || strings.TrimSpace(v.Set[s.path()]) == "" {
			continue
		}
		_, name, _ := strings.Cut(s.Name, ".")
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, s.node(v.Set[s.path()]))
	}
	return node
}

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
