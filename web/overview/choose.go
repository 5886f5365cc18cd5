package overview

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// question is a choice on the set-up card.
type question struct {
	Name, Title string
	Note        string // below the options
	Setting     string // where the choice is changed later
	Options     []pipeline.Option

	paths  []string // of the settings that the choice changes
	holds  func(config pipeline.Config) string
	choose func(config *pipeline.Config, value string)
}

// questions returns the choices on the set-up card.
func questions() []question {
	return []question{
		{
			Name: "trigger", Title: "Compress old turns", Options: ipc.Triggers(),
			Note: "In a test with 20 recorded sessions and a window of a million tokens, “As soon as it saves money” cost 65.2 % less than no compression, and prompts still had 97.1 % of the names that later steps used. " +
				"“Only near the limit” saved no money and kept all of the names. Every original stays in the archive, and the model can recall it.", Setting: triggerSetting, paths: []string{triggerSetting},
			holds:  func(config pipeline.Config) string { return pipeline.SettingsOf[ipc.Config](config).Trigger },
			choose: func(config *pipeline.Config, value string) { pipeline.Change[ipc.Config](config).Trigger = value },
		},
		{
			Name: "memory", Title: "Bring back earlier messages", Setting: scopeSetting, paths: []string{scopeSetting, compactionbridge.Name + ".scope"},
			Note: "End users of an application never share messages either way.",
			Options: []pipeline.Option{
				{Value: pipeline.ScopeSession, Label: "In the same session", Meaning: "Sessions stay separate. Choose this for an application that serves many people with one API key."},
				{Value: pipeline.ScopePerson, Label: "In all sessions of the person", Meaning: "Messages from earlier sessions of the person come back too. Choose this for coding clients, where each person has an API key."},
			},
			holds: func(config pipeline.Config) string { return pipeline.SettingsOf[rehydrator.Config](config).Scope },
			choose: func(config *pipeline.Config, value string) {
				pipeline.Change[rehydrator.Config](config).Scope = value
				pipeline.Change[compactionbridge.Config](config).Scope = value
			},
		},
	}
}

// Choose saves a choice made on the set-up card.
func (h *Handler) Choose(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	for _, asked := range questions() {
		value := c.FormValue(asked.Name)
		if slices.ContainsFunc(asked.Options, func(known pipeline.Option) bool { return known.Value == value }) {
			if err := h.set(ctx, who, asked, value); err != nil {
				return err
			}
			return layout.Redirect(c, paths.Overview) // after a conflict it shows the settings saved meanwhile
		}
	}
	return echo.NewHTTPError(http.StatusBadRequest)
}

// set saves a choice, unless it is already set.
func (h *Handler) set(ctx context.Context, who tenants.Principal, asked question, value string) error {
	saved, config, err := h.pipeline(ctx, who.Workspace.ID)
	if err != nil || asked.holds(config) == value {
		return err
	}
	base, _, err := modules.Catalog().Resolve(h.deps.Defaults)
	if err != nil {
		return fmt.Errorf("defaults of the pipeline: %w", err)
	}
	asked.choose(&config, value)
	next := tenants.PipelineConfig{Modules: saved.Modules, SavedBy: who.User.ID}
	if next.YAML, err = modules.Catalog().Edit(pipeline.Layer{YAML: saved.YAML}, config, base, asked.paths); err != nil {
		return fmt.Errorf("set %s: %w", asked.Name, err)
	}
	_, err = h.deps.Pipelines.SavePipeline(ctx, who.Workspace.ID, saved.Version, next)
	if errors.Is(err, tenants.ErrConflict) {
		return nil
	}
	return err
}

// choice is a question with its current answer.
type choice struct {
	question

	Holds     string
	MayChoose bool
}

// choices returns the set-up card's questions, and "" or the log's reference if the settings could not be
// read.
func (h *Handler) choices(ctx context.Context, who tenants.Principal) (choices []choice, failed string) {
	_, config, err := h.pipeline(ctx, who.Workspace.ID)
	for _, asked := range questions() {
		choices = append(choices, choice{question: asked, Holds: asked.holds(config), MayChoose: who.Role.May(tenants.ManagePipeline)})
	}
	return choices, h.failed(ctx, "settings", err)
}
