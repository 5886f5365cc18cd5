package manage

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// notes makes changes and notes them in the audit log.
type notes struct {
	audit tenants.AuditLog
}

// auditHandler serves the audit log.
type auditHandler struct {
	audit tenants.AuditLog
	log   *slog.Logger
}

func (h auditHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/audit", a.as(tenants.ReadAudit, withQuery(h.listAudit, "actor", "action", "except", "from", "to", "cursor", "limit")))
	group.GET("/audit.csv", a.as(tenants.ReadAudit, withQuery(h.downloadAudit, "actor", "action", "except", "from", "to")))
}

// noted makes a change and notes it, in one transaction.
func (n notes) noted(c echo.Context, who caller, change tenants.Change, do func(ctx context.Context, tenant tenants.Tenant) error) error {
	return n.together(c, who, func(ctx context.Context, tenant tenants.Tenant) (tenants.Change, error) {
		return change, do(ctx, tenant)
	})
}

// together makes a change and notes it, in one transaction. It is for changes that are only known afterwards.
func (n notes) together(c echo.Context, who caller, do func(ctx context.Context, tenant tenants.Tenant) (tenants.Change, error)) error {
	ctx := c.Request().Context()
	return n.audit.Together(ctx, who.workspace, func(tenant tenants.Tenant) error {
		change, err := do(ctx, tenant)
		if err != nil {
			return err
		}
		return n.audit.Note(ctx, tenant, change)
	})
}

type auditJSON struct {
	ID      uuid.UUID      `json:"id"`
	At      time.Time      `json:"at"`
	Actor   actorJSON      `json:"actor"`
	Action  tenants.Action `json:"action"`
	Target  string         `json:"target"`
	Before  tenants.Fields `json:"before"` // null if it didn't exist before
	After   tenants.Fields `json:"after"`  // null if deleted
	Address string         `json:"address,omitempty"`
}

// actorJSON is the author of a change; without ids it is the product itself.
type actorJSON struct {
	User   *uuid.UUID `json:"user,omitempty"`
	APIKey *uuid.UUID `json:"api_key,omitempty"`
	Name   string     `json:"name"`
}

func auditOf(entry tenants.AuditEntry) auditJSON {
	return auditJSON{
		ID: entry.ID, At: entry.At, Action: entry.Action, Target: entry.Target, Before: entry.Before, After: entry.After,
		Actor:   actorJSON{User: nullable(entry.Actor.User), APIKey: nullable(entry.Actor.APIKey), Name: entry.Actor.Name},
		Address: entry.Actor.From,
	}
}

func (h auditHandler) listAudit(c echo.Context, who caller) error {
	if strings.Contains(c.Request().Header.Get(echo.HeaderAccept), "text/csv") {
		return h.downloadAudit(c, who)
	}
	filter, err := auditFilter(c)
	if err != nil {
		return err
	}
	limit, err := queryLimit(c)
	if err != nil {
		return err
	}
	filter.Limit = limit + 1
	found, err := h.audit.Audit(c.Request().Context(), who.workspace, filter)
	if err != nil {
		return err
	}
	found, next := firstOf(found, limit, func(e *tenants.AuditEntry) uuid.UUID { return e.ID })
	return answerPage(c, each(found, auditOf), next)
}

// auditFilter reads the filter in the query.
func auditFilter(c echo.Context) (tenants.AuditFilter, error) {
	filter := tenants.AuditFilter{Actor: c.QueryParam("actor"), Action: c.QueryParam("action"), Except: c.QueryParam("except")}
	var err error
	if filter.From, filter.To, err = queryRange(c); err != nil {
		return filter, err
	}
	if cursor := c.QueryParam("cursor"); cursor != "" {
		if filter.Before, err = uuid.Parse(cursor); err != nil {
			return filter, wrongCursor()
		}
	}
	return filter, nil
}

// downloadAudit answers with the whole filtered list as CSV, and notes the download.
func (h auditHandler) downloadAudit(c echo.Context, who caller) error {
	filter, err := auditFilter(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if err := h.audit.Note(ctx, who.workspace, tenants.Change{Action: tenants.AuditDownloaded}); err != nil {
		return err
	}
	startCSV(c, "palimpsest-audit.csv")
	if err := tenants.WriteAuditCSV(ctx, c.Response(), h.auditPages(who.workspace, filter)); err != nil {
		h.log.WarnContext(ctx, "audit download is cut off", "error", err)
		panic(http.ErrAbortHandler) // the status has already been sent
	}
	return nil
}

// auditPages returns a function that reads the filtered list page by page.
func (h auditHandler) auditPages(workspace tenants.WorkspaceID, filter tenants.AuditFilter) tenants.AuditPages {
	return func(ctx context.Context, before uuid.UUID) ([]tenants.AuditEntry, error) {
		filter := filter
		filter.Limit = tenants.AuditPage
		if before != uuid.Nil {
			filter.Before = before
		}
		return h.audit.Audit(ctx, workspace, filter)
	}
}
