// Package workspaces is the pages of a person's workspaces: to switch, create, rename and leave them.
package workspaces

import (
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/modules/ipc"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Handler handles the pages' requests.
type Handler struct {
	people    tenants.Workspaces
	pipelines tenants.Pipelines
}

// New returns a Handler.
func New(people tenants.Workspaces, pipelines tenants.Pipelines) *Handler {
	return &Handler{people: people, pipelines: pipelines}
}

// List shows a person's workspaces.
func (h *Handler) List(c echo.Context, who tenants.Principal) error {
	return page(c, who, http.StatusOK, model{Who: who, Left: c.QueryParam("left") != ""})
}

// New shows the form for a new workspace. A person without a workspace also reads how to accept an
// invitation.
func (h *Handler) New(c echo.Context, who tenants.Principal) error {
	return newPage(c, who, http.StatusOK, newForm{Name: nameField("", nil), Trigger: triggerField(ipc.TriggerWindow)})
}

// Create creates a workspace and redirects to its overview.
func (h *Handler) Create(c echo.Context, who tenants.Principal) error {
	ctx, name, trigger := c.Request().Context(), c.FormValue("workspace"), c.FormValue(triggerName)
	created, err := h.people.CreateWorkspace(ctx, who.Login, name)
	if _, mendable := errors.AsType[tenants.Invalid](err); mendable {
		return newPage(c, who, http.StatusUnprocessableEntity, newForm{Name: nameField(name, err), Trigger: triggerField(trigger)})
	}
	if err == nil && trigger == ipc.TriggerBreakEven {
		_, err = h.pipelines.SavePipeline(ctx, created.ID, 0, tenants.PipelineConfig{YAML: "ipc:\n  trigger: " + ipc.TriggerBreakEven + "\n", SavedBy: who.User.ID})
	}
	if err != nil {
		return err
	}
	return layout.Redirect(c, paths.Overview)
}

// Enter switches the login to another workspace and redirects to its overview, or to the page of a shared
// link.
func (h *Handler) Enter(c echo.Context, who tenants.Principal) error {
	id, err := tenants.ParseWorkspaceID(c.Param("id"))
	if err != nil {
		return tenants.ErrNotFound
	}
	if err := h.people.Enter(c.Request().Context(), who.Login, id); err != nil {
		return err
	}
	return layout.Redirect(c, paths.Local(c.FormValue("next")))
}

// AskName shows the form to rename the workspace.
func (h *Handler) AskName(c echo.Context, who tenants.Principal) error {
	field := nameField(who.Workspace.Name, nil)
	return page(c, who, http.StatusOK, model{Who: who, Rename: &field})
}

// Rename renames the workspace.
func (h *Handler) Rename(c echo.Context, who tenants.Principal) error {
	name := c.FormValue("workspace")
	err := h.people.RenameWorkspace(c.Request().Context(), who.Workspace.ID, name)
	if _, mendable := errors.AsType[tenants.Invalid](err); mendable {
		field := nameField(name, err)
		return page(c, who, http.StatusUnprocessableEntity, model{Who: who, Rename: &field})
	}
	if err != nil {
		return err
	}
	return layout.Redirect(c, paths.Workspaces)
}

// ConfirmLeave asks whether to leave the workspace.
func (h *Handler) ConfirmLeave(c echo.Context, who tenants.Principal) error {
	return page(c, who, http.StatusOK, model{Who: who, Leave: newLeave(who, "", "")})
}

// Leave ends a person's membership after they typed the workspace's name. Their login continues in their most
// recently used other workspace.
func (h *Handler) Leave(c echo.Context, who tenants.Principal) error {
	typed := strings.TrimSpace(c.FormValue("confirm"))
	if typed != strings.TrimSpace(who.Workspace.Name) {
		leave := newLeave(who, typed, "That is not the name of the workspace. Type "+who.Workspace.Name+".")
		return page(c, who, http.StatusUnprocessableEntity, model{Who: who, Leave: leave})
	}
	err := h.people.Leave(c.Request().Context(), who, c.FormValue("keys") != components.KeepKeys)
	if errors.Is(err, tenants.ErrLastOwner) {
		leave := newLeave(who, typed, "You are its only owner. Make someone else an owner first.")
		return page(c, who, http.StatusConflict, model{Who: who, Leave: leave})
	}
	if err != nil {
		return err
	}
	return layout.Redirect(c, paths.With(paths.Workspaces, "left", "1"))
}

// model is the page's data.
type model struct {
	Who    tenants.Principal
	Left   bool                   // another workspace was just left
	Rename *components.FieldModel // the form to rename the workspace, or nil
	Leave  *leaveModel            // the question whether to leave it, or nil
}

// leaveModel is the question whether to leave a workspace.
type leaveModel struct{ Confirm, Keys components.FieldModel }

func newLeave(who tenants.Principal, typed, wrong string) *leaveModel {
	return &leaveModel{
		Confirm: components.FieldModel{Label: "Type " + who.Workspace.Name + " to confirm", Name: "confirm", Value: typed, Error: wrong},
		Keys:    components.FieldModel{Label: "API keys that you created here", Name: "keys"},
	}
}

func nameField(name string, err error) components.FieldModel {
	field := components.FieldModel{Label: "Name", Name: "workspace", Value: name, Hint: "The name of your team. Keys, sessions and settings belong to it."}
	if invalid, is := errors.AsType[tenants.Invalid](err); is {
		field.Error = components.FieldError(field.Label, invalid.Message)
	}
	return field
}

// newForm is the form for a new workspace.
type newForm struct{ Name, Trigger components.FieldModel }

// triggerName is the field with the trigger of compression.
const triggerName = "trigger"

func triggerField(chosen string) components.FieldModel {
	var meanings []string
	for _, trigger := range ipc.Triggers() {
		meanings = append(meanings, trigger.Label+": "+trigger.Meaning)
	}
	return components.FieldModel{
		Label: "Compress old turns", Name: triggerName, Value: chosen,
		Hint: strings.Join(meanings, " ") + " You can change this at any time on the Compression page.",
	}
}

func page(c echo.Context, who tenants.Principal, status int, model model) error {
	return layout.Page(c, status, layout.Frame{Title: "Workspaces", Section: layout.Workspaces, Who: who}, view(model))
}

// newPage renders without the frame if the person has no workspace.
func newPage(c echo.Context, who tenants.Principal, status int, form newForm) error {
	const title = "New workspace"
	if who.Workspace.ID.IsZero() {
		return layout.Plain(c, status, title, firstView(form, who.User.Email))
	}
	return layout.Page(c, status, layout.Frame{
		Title: title, Section: layout.Workspaces, Who: who, Breadcrumbs: []layout.Breadcrumb{{Title: "Workspaces", Path: paths.Workspaces}, {Title: title}},
	}, newView(form))
}
