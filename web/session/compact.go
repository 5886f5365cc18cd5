package session

import (
	"context"
	"errors"
	"fmt"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
)

// settings returns the share of the window above which a prompt with an API key is compressed under the
// current settings of workspace and key, 0 if compression is off; and the number of compactions after which a
// thread is highlighted.
func (h *Handler) settings(ctx context.Context, workspace tenants.WorkspaceID, key tenants.APIKey) (target float64, warnAfter int, err error) {
	saved, err := h.deps.Pipelines.Pipeline(ctx, workspace)
	if err != nil {
		return 0, 0, err
	}
	config, _, err := modules.Catalog().Resolve(h.deps.Defaults, pipeline.WorkspaceLayer(saved.Modules, saved.YAML),
		pipeline.Layer{Source: pipeline.FromAPIKey, YAML: key.Pipeline})
	if err != nil {
		return 0, 0, fmt.Errorf("saved pipeline, version %d: %w", saved.Version, err)
	}
	for _, name := range config.Modules {
		if name == ipc.Name && pipeline.SettingsOf[ipc.Config](config).DeepestLevel > 0 {
			return pipeline.SettingsOf[ipc.Config](config).TargetUtilization, pipeline.SettingsOf[ipc.Config](config).WarnsAfter(), nil
		}
	}
	return 0, pipeline.SettingsOf[ipc.Config](config).WarnsAfter(), nil
}

// grounds are the inputs that decide whether a requested compaction would have an effect.
type grounds struct {
	of     subject
	key    tenants.APIKey
	unkept string  // why the session's new messages are not kept; "" if they are
	target float64 // as settings returns it
	newest session.TimelineEntry
}

// whyNot explains why a compaction would have no effect; "" if it would, as far as this is known before the
// next request.
func (g grounds) whyNot() string {
	turns := g.newest.Levels[0] + g.newest.Levels[1] + g.newest.Levels[2] + g.newest.Levels[3]
	switch {
	case g.of.lane.Order != nil:
		return "It is already planned for the next request."
	case g.unkept != "":
		return g.unkept
	case g.key.ID != g.of.detail.APIKey || g.key.RevokedAt != nil:
		return "The API key of this session is revoked, so no further request can belong to it."
	case g.target == 0:
		return "Compression is off in the pipeline of this session’s API key."
	case g.of.lane.Kind == session.Side:
		return "Side calls are never compressed."
	case g.of.detail.Single:
		return "Its requests carry no history, so there is nothing to shorten."
	case g.newest.At.IsZero():
		return "None of its requests went through the pipeline yet."
	case g.newest.Window == 0:
		return "The context window of its model is not known, so nothing is compressed."
	case turns <= 1:
		return "It has one turn, and the newest turn always stays as it is."
	}
	return ""
}

// grounds reads them for a form.
func (h *Handler) grounds(ctx context.Context, who tenants.Principal, of subject) (grounds, error) {
	g := grounds{of: of}
	var err error
	if g.key, err = h.key(ctx, who.Workspace.ID, of.detail.APIKey); err != nil {
		return g, err
	}
	data, err := h.deps.Readers.DataSettings(ctx, who.Workspace.ID)
	if err != nil {
		return g, err
	}
	g.unkept = components.Unkept(data, []tenants.APIKey{g.key})
	if g.target, _, err = h.settings(ctx, who.Workspace.ID, g.key); err != nil {
		return g, err
	}
	g.newest, err = h.deps.Sessions.Newest(ctx, who.Workspace.ID, of.detail.ID, of.lane.ID, of.lane.Position)
	if errors.Is(err, session.ErrNotFound) {
		err = nil
	}
	return g, err
}

// newest returns the newest request of the lane, or the zero TimelineEntry.
func (m *model) newest() session.TimelineEntry {
	if len(m.Timeline.Points) == 0 {
		return session.TimelineEntry{}
	}
	return m.Timeline.Points[len(m.Timeline.Points)-1]
}
