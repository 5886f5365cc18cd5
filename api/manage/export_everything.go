package manage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive/export"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// exportPage bounds the items of one kind in memory during an export.
const exportPage = 200

// workspaceExportHandler exports all data of a workspace. It therefore reads nearly every store.
type workspaceExportHandler struct {
	exportHandler

	config Config
}

func (h workspaceExportHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/export", a.as(tenants.ExportWorkspace, withQuery(h.exportWorkspace)))
}

// exportWorkspace sends all data of the workspace as one tar, which can be verified on its own. It requires
// the right to read all messages.
func (h workspaceExportHandler) exportWorkspace(c echo.Context, who caller) error {
	reader, err := h.readers.reader(c, who)
	if err == nil && !reader.All {
		err = tenants.ErrTextDenied
	}
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if err := h.audit.Note(ctx, who.workspace, tenants.Change{Action: tenants.WorkspaceExported, Target: who.workspace.String()}); err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "application/x-tar")
	header.Set(echo.HeaderContentDisposition, fmt.Sprintf("attachment; filename=%q", "palimpsest-"+who.workspace.String()+".tar"))
	header.Set(echo.HeaderCacheControl, "private, no-store")
	header.Set(echo.HeaderXContentTypeOptions, "nosniff")
	err = sendFile(c, func(w io.Writer) error {
		return everything{workspaceExportHandler: h, workspace: who.workspace, bundle: export.NewBundle(w, who.workspace, h.now())}.write(ctx)
	})
	if err != nil && c.Response().Committed {
		if ctx.Err() == nil {
			h.log.ErrorContext(ctx, "export of a workspace is cut off", "workspace", who.workspace, "error", err)
		}
		// The status has already been sent, so only a broken connection shows that something is missing.
		panic(http.ErrAbortHandler)
	}
	return err
}

// everything is a workspace export.
type everything struct {
	workspaceExportHandler

	workspace tenants.WorkspaceID
	bundle    *export.Bundle
}

// write writes the bundle, with sessions last because they are the largest part.
func (e everything) write(ctx context.Context) error {
	for _, part := range []func(context.Context) error{e.about, e.keys, e.pipeline, e.patterns, e.views, e.stars, e.comments, e.scores, e.labels, e.audit, e.usage, e.sessions} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return e.bundle.Close()
}

// about writes the workspace's members, invitations and data settings.
func (e everything) about(ctx context.Context) error {
	name, err := e.config.Administration.Workspaces.WorkspaceName(ctx, e.workspace)
	if err != nil {
		return err
	}
	settings, err := e.config.Administration.Data.DataSettings(ctx, e.workspace)
	if err != nil {
		return err
	}
	retention, err := e.config.Administration.Data.Retention(ctx, e.workspace)
	if err != nil {
		return err
	}
	people, err := e.people(ctx)
	if err != nil {
		return err
	}
	pending, err := e.config.People.Invitations.Pending(ctx, e.workspace)
	if err != nil {
		return err
	}
	signOn, err := signOnHandler{e.config.People.SignOn}.signOnOf(ctx, e.workspace)
	if err != nil {
		return err
	}
	alerts, err := alertHandler{e.config.Traffic.Alerts}.alertsOf(ctx, e.workspace)
	if err != nil {
		return err
	}
	return e.bundle.JSON("workspace.json", struct {
		ID          tenants.WorkspaceID `json:"id"`
		Name        string              `json:"name"`
		Settings    settingsJSON        `json:"settings"`
		Retention   retentionJSON       `json:"retention"`
		Members     []exportedMember    `json:"members"`
		Invitations []invitationJSON    `json:"invitations"`
		SignOn      signOnJSON          `json:"sign_on"`
		Alerts      alertsJSON          `json:"alerts"`
	}{e.workspace, name, settingsOf(settings), retentionJSON{Days: retention.Days}, people, each(pending, pendingOf), signOn, alerts})
}

// exportedMember is a member in an export.
type exportedMember struct {
	userJSON

	Role     tenants.Role `json:"role"`
	JoinedAt time.Time    `json:"joined_at"`
}

func (e everything) people(ctx context.Context) ([]exportedMember, error) {
	members, err := e.config.People.Members.Members(ctx, e.workspace)
	if err != nil {
		return nil, err
	}
	people := make([]exportedMember, len(members))
	for i, member := range members {
		user := member.User
		people[i] = exportedMember{
			userJSON: userJSON{ID: user.ID, Email: user.Email, CreatedAt: user.CreatedAt, VerifiedAt: user.VerifiedAt},
			Role:     member.Role, JoinedAt: member.JoinedAt,
		}
	}
	return people, nil
}

// keys writes the keys, without their secrets.
func (e everything) keys(ctx context.Context) error {
	keys, err := e.config.Gateway.APIKeys.APIKeys(ctx, e.workspace)
	if err != nil {
		return err
	}
	if err := e.bundle.JSON("api_keys.json", each(keys, keyOf)); err != nil {
		return err
	}
	stored, err := e.config.Gateway.ProviderKeys.ProviderKeys(ctx, e.workspace)
	if err != nil {
		return err
	}
	return e.bundle.JSON("provider_keys.json", each(stored, providerKeyOf))
}

// pipeline writes every saved version of the pipeline, the newest first.
func (e everything) pipeline(ctx context.Context) error {
	versions, err := e.config.Gateway.Pipelines.PipelineHistory(ctx, e.workspace)
	if err != nil {
		return err
	}
	type versionJSON struct {
		Version int       `json:"version"`
		Modules string    `json:"modules"`
		YAML    string    `json:"yaml"`
		SavedBy uuid.UUID `json:"saved_by"`
		SavedAt time.Time `json:"saved_at"`
	}
	saved := make([]versionJSON, len(versions))
	for i, version := range versions {
		saved[i] = versionJSON{Version: version.Version, Modules: version.Modules, YAML: version.YAML, SavedBy: version.SavedBy, SavedAt: version.SavedAt}
	}
	if err := e.bundle.JSON("pipeline.json", saved); err != nil {
		return err
	}
	windows, err := e.config.Gateway.ModelWindows.ModelWindows(ctx, e.workspace)
	if err != nil {
		return err
	}
	if err := e.bundle.JSON("model_windows.json", each(windows, modelWindowOf)); err != nil {
		return err
	}
	prices, err := e.config.Administration.Data.ModelPrices(ctx, e.workspace)
	if err != nil {
		return err
	}
	if err := e.bundle.JSON("model_prices.json", append([]tenants.ModelPrice{}, prices...)); err != nil {
		return err
	}
	limits, err := e.config.Administration.Data.ModelLimits(ctx, e.workspace)
	if err != nil {
		return err
	}
	if err := e.bundle.JSON("model_limits.json", append([]tenants.ModelLimit{}, limits...)); err != nil {
		return err
	}
	budgets, err := e.config.Administration.Data.Budgets(ctx, e.workspace)
	if err != nil {
		return err
	}
	return e.bundle.JSON("budgets.json", each(budgets, func(budget tenants.Budget) configBudgetJSON { return budgetInFile(budget, nil) }))
}

func (e everything) patterns(ctx context.Context) error {
	line := func(pattern patterns.Pattern) patternJSON { return patternOf(&pattern) }
	return listed(e, "patterns.ndjson", line, func(last patterns.Pattern) ([]patterns.Pattern, error) {
		return e.config.Gateway.Patterns.List(ctx, e.workspace, patterns.Filter{After: last.ID, Limit: exportPage})
	})
}

// exportedView is a view stored by an earlier version, in an export.
type exportedView struct {
	ID      uuid.UUID `json:"id"`
	User    uuid.UUID `json:"user"`
	List    string    `json:"list"`
	Name    string    `json:"name"`
	Query   string    `json:"query"`
	SavedAt time.Time `json:"saved_at"`
}

// views writes everyone's saved views.
func (e everything) views(ctx context.Context) error {
	line := func(view tenants.View) exportedView { return exportedView(view) }
	return listed(e, "views.ndjson", line, func(last tenants.View) ([]tenants.View, error) {
		return e.config.Traffic.Views.EveryView(ctx, e.workspace, last.ID, exportPage)
	})
}

func (e everything) audit(ctx context.Context) error {
	return e.lines("audit.ndjson", func(write func(line any) error) error {
		return auditHandler{audit: e.config.Administration.Audit}.auditPages(e.workspace, tenants.AuditFilter{}).Each(ctx, func(entry *tenants.AuditEntry) error {
			return write(auditOf(*entry))
		})
	})
}

// usage writes the record of each request.
func (e everything) usage(ctx context.Context) error {
	return e.lines("usage.ndjson", func(write func(line any) error) error {
		filter := tenants.ExchangeFilter{Limit: exportPage}
		for {
			found, next, err := e.config.Traffic.Exchanges.Exchanges(ctx, e.workspace, filter)
			if err != nil {
				return err
			}
			if err := nameUsers(ctx, e.config.Conversations.Sessions, e.workspace, tenants.Reader{All: true}, found); err != nil {
				return err
			}
			for i := range found {
				if err := write(requestOf(found[i])); err != nil {
					return err
				}
			}
			if next == "" {
				return nil
			}
			filter.Cursor = next
		}
	})
}

// sessions writes every session, ordered by id, so that use in the meantime doesn't change a session's place.
func (e everything) sessions(ctx context.Context) error {
	after := uuid.Nil
	for {
		ids, err := e.config.Conversations.Sessions.IDs(ctx, e.workspace, after, exportPage)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := e.session(ctx, id); err != nil {
				return err
			}
		}
		if len(ids) < exportPage {
			return nil
		}
		after = ids[len(ids)-1]
	}
}

func (e everything) session(ctx context.Context, id uuid.UUID) error {
	detail, err := e.config.Conversations.Sessions.Session(ctx, e.workspace, id)
	if errors.Is(err, session.ErrNotFound) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return err
	}
	return e.bundle.SessionFile(id, func(w io.Writer) error {
		return e.exportLines(ctx, w, []export.Session{e.exported(e.workspace, detail)})
	})
}

// listed adds a file with a line for each element of a list. next returns the page after an
// element; the zero value is before the first.
func listed[T, L any](e everything, name string, line func(T) L, next func(last T) ([]T, error)) error {
	return e.lines(name, func(write func(line any) error) error {
		var last T
		for {
			found, err := next(last)
			if err != nil {
				return err
			}
			for _, last = range found {
				if err := write(line(last)); err != nil {
					return err
				}
			}
			if len(found) < exportPage {
				return nil
			}
		}
	})
}

// lines adds a file with one JSON value a line.
func (e everything) lines(name string, each func(write func(line any) error) error) error {
	return e.bundle.File(name, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		return each(func(line any) error { return encoder.Encode(line) })
	})
}
