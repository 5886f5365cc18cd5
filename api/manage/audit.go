package manage

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// Audit keeps who changed what.
type Audit interface {
	// Audit returns the entries that pass a filter, the newest first.
	Audit(ctx context.Context, workspace tenants.WorkspaceID, filter tenants.AuditFilter) ([]tenants.AuditEntry, error)

	// Note notes a change on behalf of the context's actor.
	Note(ctx context.Context, workspace tenants.WorkspaceID, change tenants.Change) error

	// Together makes everything that is done with fn's context one transaction.
	Together(ctx context.Context, workspace tenants.WorkspaceID, fn func(ctx context.Context) error) error
}

// noted makes a change and notes it, both or neither.
func (s *server) noted(c echo.Context, who caller, change tenants.Change, do func(ctx context.Context) error) error {
	return s.together(c, who, func(ctx context.Context) (tenants.Change, error) { return change, do(ctx) })
}

// together is noted for a change that is known only once it is made.
func (s *server) together(c echo.Context, who caller, do func(ctx context.Context) (tenants.Change, error)) error {
	return s.Audit.Together(c.Request().Context(), who.workspace, func(ctx context.Context) error {
		change, err := do(ctx)
		if err != nil {
			return err
		}
		return s.Audit.Note(ctx, who.workspace, change)
	})
}

type auditJSON struct {
	ID      uuid.UUID      `json:"id"`
	At      time.Time      `json:"at"`
	Actor   actorJSON      `json:"actor"`
	Action  tenants.Action `json:"action"`
	Target  string         `json:"target"`
	Before  tenants.Fields `json:"before"` // null: there was nothing
	After   tenants.Fields `json:"after"`  // null: nothing is left
	Address string         `json:"address,omitempty"`
}

// actorJSON is who made a change; without ids the product itself.
type actorJSON struct {
	User   *uuid.UUID `json:"user,omitempty"`
	APIKey *uuid.UUID `json:"api_key,omitempty"`
	Name   string     `json:"name"`
}

func auditOf(entry *tenants.AuditEntry) auditJSON {
	out := auditJSON{
		ID: entry.ID, At: entry.At, Action: entry.Action, Target: entry.Target, Before: entry.Before, After: entry.After,
		Actor: actorJSON{Name: entry.Actor.Name}, Address: entry.Actor.From,
	}
	if entry.Actor.User != uuid.Nil {
		out.Actor.User = &entry.Actor.User
	}
	if entry.Actor.APIKey != uuid.Nil {
		out.Actor.APIKey = &entry.Actor.APIKey
	}
	return out
}

func (s *server) listAudit(c echo.Context, who caller) error {
	if strings.Contains(c.Request().Header.Get(echo.HeaderAccept), "text/csv") {
		return s.downloadAudit(c, who)
	}
	if err := allowQuery(c, "actor", "action", "except", "from", "to", "cursor", "limit"); err != nil {
		return err
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
	found, err := s.Audit.Audit(c.Request().Context(), who.workspace, filter)
	if err != nil {
		return err
	}
	found, next := firstOf(found, limit, func(e *tenants.AuditEntry) uuid.UUID { return e.ID })
	data := make([]auditJSON, len(found))
	for i := range found {
		data[i] = auditOf(&found[i])
	}
	return answerPage(c, data, next)
}

// auditFilter reads which entries the query asks for.
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

// downloadAudit answers the whole filtered list as CSV. Taking it away is noted.
func (s *server) downloadAudit(c echo.Context, who caller) error {
	if err := allowQuery(c, "actor", "action", "except", "from", "to"); err != nil {
		return err
	}
	filter, err := auditFilter(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if err := s.Audit.Note(ctx, who.workspace, tenants.Change{Action: tenants.AuditDownloaded}); err != nil {
		return err
	}
	startCSV(c, "palimpsest-audit.csv")
	if err := tenants.WriteAuditCSV(ctx, c.Response(), s.auditPages(who.workspace, filter)); err != nil {
		s.Log.WarnContext(ctx, "audit download is cut off", "error", err)
		panic(http.ErrAbortHandler) // the status has gone out
	}
	return nil
}

// auditPages returns what reads the filtered list page by page.
func (s *server) auditPages(workspace tenants.WorkspaceID, filter tenants.AuditFilter) tenants.AuditPages {
	return func(ctx context.Context, before uuid.UUID) ([]tenants.AuditEntry, error) {
		filter := filter
		filter.Limit = tenants.AuditPage
		if before != uuid.Nil {
			filter.Before = before
		}
		return s.Audit.Audit(ctx, workspace, filter)
	}
}
