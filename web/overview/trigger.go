package overview

import (
	"context"
	"errors"
	"fmt"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/preview"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// DismissAdvice hides the advice about the trigger from now on.
func (h *Handler) DismissAdvice(c echo.Context, who tenants.Principal) error {
	if err := h.deps.TriggerAdvice.DismissAdvice(c.Request().Context(), who.Workspace.ID); err != nil {
		return err
	}
	return layout.Redirect(c, paths.Overview)
}

// advised reads the advice about the trigger, for people who may see the settings and what all sessions cost.
func (h *Handler) advised(ctx context.Context, who tenants.Principal, m *model) error {
	if !who.Role.May(tenants.ReadConfig) || m.Mine {
		return nil
	}
	advice, err := h.deps.TriggerAdvice.Advice(ctx, who.Workspace.ID)
	if errors.Is(err, preview.ErrNoAdvice) {
		return nil
	}
	if err != nil {
		return err
	}
	_, config, err := h.pipeline(ctx, who.Workspace.ID)
	if err == nil && config.Runs(ipc.Name) && advice.IsWorthSaying(pipeline.SettingsOf[ipc.Config](config).Trigger) {
		m.Trigger = &triggerAdvice{Advice: advice, MayDismiss: who.Role.May(tenants.ManagePipeline)}
	}
	return err
}

// pipeline returns the newest version of a workspace's pipeline and its effective configuration.
func (h *Handler) pipeline(ctx context.Context, workspace tenants.WorkspaceID) (tenants.PipelineConfig, pipeline.Config, error) {
	saved, err := h.deps.Pipelines.Pipeline(ctx, workspace)
	if err != nil {
		return tenants.PipelineConfig{}, pipeline.Config{}, err
	}
	config, _, err := modules.Catalog().Resolve(h.deps.Defaults, pipeline.WorkspaceLayer(saved.Modules, saved.YAML))
	if err != nil {
		return tenants.PipelineConfig{}, pipeline.Config{}, fmt.Errorf("saved pipeline, version %d: %w", saved.Version, err)
	}
	return saved, config, nil
}

// triggerAdvice is the advice about the trigger in words.
type triggerAdvice struct {
	preview.Advice

	MayDismiss bool
}

// other is the name of the trigger that is not in use.
func (a *triggerAdvice) other() string {
	return components.TriggerLabel(ipc.OtherTrigger(a.Trigger))
}

// set is the name of the current trigger, which the advice compares with the other one.
func (a *triggerAdvice) set() string { return components.TriggerLabel(a.Trigger) }

// than tells whether the other trigger would have been cheaper.
func (a *triggerAdvice) than() string {
	if a.Saves() < 0 {
		return "more"
	}
	return "less"
}

// amount is the money saved or lost, without its sign.
func (a *triggerAdvice) amount() int64 { return max(a.Saves(), -a.Saves()) }

func (a *triggerAdvice) share() string { return components.Share(a.amount(), a.Cost) }

// basis names the sessions behind the figure.
func (a *triggerAdvice) basis() string {
	if a.HasMore {
		return fmt.Sprintf("replayed from your newest %s of that time", components.Plural(int64(a.Sessions), "session"))
	}
	return fmt.Sprintf("replayed from your %s of that time", components.Plural(int64(a.Sessions), "session"))
}

// fidelity tells how much the model would have read word for word instead.
func (a *triggerAdvice) fidelity() string {
	return fmt.Sprintf("The model would have read %s of the prompts word for word instead of %s.",
		components.Share(a.OtherVerbatim, a.Received), components.Share(a.Verbatim, a.Received))
}
