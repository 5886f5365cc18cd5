// Package sessions is the list of a workspace's sessions.
package sessions

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/sums"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
)

const (
	pageSize  = 25
	sparkSize = 60 // requests in a session's spark
)

// Deps are the page's stores.
type Deps struct {
	Sessions  session.Records
	Exchanges tenants.Exchanges
	Readers   tenants.Data
	APIKeys   tenants.APIKeys
	Searcher  archive.Searcher
	Changes   tenants.AuditLog
	Stars     tenants.Stars
	Comments  tenants.Comments

	Log *slog.Logger
	Now func() time.Time
}

// Handler handles the page's requests.
type Handler struct{ deps Deps }

// New returns a Handler.
func New(deps Deps) *Handler { return &Handler{deps: deps} }

// Show shows a page of the matching sessions.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	model, err := h.model(c, who)
	if err != nil {
		return err
	}
	if model.Asked.Own.IsWrong() || model.Wrong != "" {
		return h.page(c, who, http.StatusUnprocessableEntity, model)
	}
	return h.page(c, who, http.StatusOK, model)
}

func (h *Handler) page(c echo.Context, who tenants.Principal, status int, model model) error {
	return layout.Page(c, status, layout.Frame{Title: "Sessions", Section: layout.Sessions, Who: who}, view(model))
}

// model reads the page's data.
func (h *Handler) model(c echo.Context, who tenants.Principal) (model, error) {
	ctx, asked, now := c.Request().Context(), askOf(c, who, h.deps.Now()).begin(who.Role), h.deps.Now()
	reader, err := h.deps.Readers.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil {
		return model{}, err
	}
	shown := model{
		Asked: asked, Reader: reader, Now: now, Total: unknown,
		NoneBeside: c.QueryParam("compare") != "", Deleted: deletedOf(c.QueryParam("deleted")), Erased: deletedOf(c.QueryParam("erased")), MayDelete: who.Role.May(tenants.DeleteSessions),
		MayExport: who.Role.May(tenants.ReadArchive) && !reader.None(),
	}
	if shown.Starred, err = h.deps.Stars.Starred(ctx, who.Workspace.ID, who.User.ID); err != nil {
		return model{}, err
	}
	filter, err := asked.filter(now)
	filter.Masked, filter.Shown = !reader.All, reader.Keys
	besideErr := h.beside(ctx, who, &shown)
	if invalid, is := errors.AsType[session.Invalid](err); is {
		shown.Wrong = components.Capitalize(invalid.Field) + " " + invalid.Message + "."
		shown.BesideFailed = h.failed(ctx, "beside", besideErr)
		return shown, nil
	}
	countErr := h.count(ctx, who, filter, &shown)
	shown.BesideFailed = h.failed(ctx, "beside", errors.Join(besideErr, countErr))
	asked.only(shown.Starred, shown.Keys, who.User.ID, &filter)
	page, err := h.deps.Sessions.Sessions(ctx, who.Workspace.ID, filter)
	if errors.Is(err, session.ErrCursor) {
		return model{}, err
	}
	if shown.Failed = h.failed(ctx, "list", err); shown.Failed != "" {
		return shown, nil
	}
	shown.Next, shown.Cut = page.Next, page.Cut
	shown.Rows = h.rows(ctx, who.Workspace.ID, page.Sessions)
	h.remark(ctx, who.Workspace.ID, &shown)
	shown.Found = h.search(ctx, who.Workspace.ID, &shown, filter)
	return shown, nil
}

// count counts the matching and the active sessions.
func (h *Handler) count(ctx context.Context, who tenants.Principal, filter session.Filter, shown *model) error {
	workspace := who.Workspace.ID
	counts, err := h.deps.Sessions.Counts(ctx, workspace, filter)
	if err != nil {
		return err
	}
	shown.Counts, shown.Total = counts, counts.Workspace
	if shown.Asked.Show == starred || shown.Asked.isMine() {
		shown.Asked.only(shown.Starred, shown.Keys, who.User.ID, &filter)
		found, err := h.deps.Sessions.Counts(ctx, workspace, filter)
		if err != nil {
			return err
		}
		shown.MatchOwn = found.Of[shown.Asked.shown()]
	}
	shown.Active, err = h.deps.Sessions.Active(ctx, workspace, shown.Now.Add(-activeSpan))
	return err
}

// beside reads the data beside the list.
func (h *Handler) beside(ctx context.Context, who tenants.Principal, shown *model) error {
	var keysErr error
	shown.Keys, keysErr = h.deps.APIKeys.APIKeys(ctx, who.Workspace.ID)
	settings, err := h.deps.Readers.DataSettings(ctx, who.Workspace.ID)
	shown.Unkept = components.Unkept(settings, shown.Keys)
	return errors.Join(keysErr, err)
}

// rows returns sessions with their newest requests for the sparks. A failed read is only logged and leaves
// the sparks out.
func (h *Handler) rows(ctx context.Context, workspace tenants.WorkspaceID, found []session.Overview) []row {
	ids := make([]uuid.UUID, len(found))
	for i := range found {
		ids[i] = found[i].ID
	}
	newest, err := h.deps.Exchanges.NewestOf(ctx, workspace, ids, sparkSize)
	if err != nil {
		h.deps.Log.WarnContext(ctx, "requests of sessions", "error", err)
	}
	rows := make([]row, len(found))
	for i := range found {
		rows[i] = newRow(found[i], newest[found[i].ID])
	}
	return rows
}

// remark fills in the person's stars and the number of comments. A failed count leaves the comments out.
func (h *Handler) remark(ctx context.Context, workspace tenants.WorkspaceID, shown *model) {
	ids := make([]uuid.UUID, len(shown.Rows))
	for i := range shown.Rows {
		ids[i] = shown.Rows[i].ID
		shown.Rows[i].Starred = slices.Contains(shown.Starred, ids[i])
	}
	counts, err := h.deps.Comments.CommentCounts(ctx, workspace, ids)
	if err != nil {
		h.deps.Log.WarnContext(ctx, "comments on sessions", "error", err)
	}
	readable := slices.DeleteFunc(slices.Clone(ids), func(id uuid.UUID) bool {
		at := slices.Index(ids, id)
		return !shown.Reader.MayRead(shown.Rows[at].APIKey)
	})
	judged, err := h.deps.Comments.Judgments(ctx, workspace, readable)
	if err != nil {
		h.deps.Log.WarnContext(ctx, "scores of sessions", "error", err)
	}
	for i := range shown.Rows {
		shown.Rows[i].Comments, shown.Rows[i].Judged = counts[ids[i]], judged[ids[i]]
	}
}

// failed logs an error and returns its reference in the log; "" without an error.
func (h *Handler) failed(ctx context.Context, card string, err error) string {
	return layout.Reference(ctx, h.deps.Log, "sessions", card, err)
}

const (
	csvPage = 200    // sessions in memory while the file is written
	csvMost = 50_000 // sessions in a file
)

// CSV answers with the matching sessions, at most csvMost, as a file (RFC 4180) with a heading. It leaves out
// titles that the person may not read.
func (h *Handler) CSV(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	reader, err := h.deps.Readers.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil {
		return err
	}
	asked := askOf(c, who, h.deps.Now())
	filter, err := asked.filter(h.deps.Now())
	if err != nil {
		return wrong(err)
	}
	if err := h.only(ctx, who, asked, &filter); err != nil {
		return err
	}
	filter.Masked, filter.Shown, filter.Limit, filter.Cursor = !reader.All, reader.Keys, csvPage, ""
	return layout.CSVPages(c, h.deps.Log, "palimpsest-sessions.csv", record(nil), csvMost, func() ([][]string, bool, error) {
		page, err := h.deps.Sessions.Sessions(ctx, who.Workspace.ID, filter)
		if err != nil {
			return nil, false, err
		}
		rows := make([][]string, len(page.Sessions))
		for i := range page.Sessions {
			rows[i] = record(&page.Sessions[i])
		}
		filter.Cursor = page.Next
		return rows, page.Next != "", nil
	})
}

// heldFigures are the sums whose columns come before those of the session's events.
const heldFigures = 5

// record returns a row of the file, or its heading for nil.
func record(of *session.Overview) []string {
	all := sums.Of[session.Sums]()
	if of == nil {
		names, _ := sums.CSV(all, &session.Sums{})
		return slices.Concat([]string{"id", "title", "client", "model", "api_key", "started_at", "last_at"}, names[:heldFigures],
			[]string{"bridged", "rehydrated"}, names[heldFigures:], []string{"tokens_saved", "end_user", "end_user_name"})
	}
	_, values := sums.CSV(all, &of.Sums)
	return slices.Concat([]string{
		of.ID.String(), tenants.CSVCell(of.Title), tenants.CSVCell(of.Client), tenants.CSVCell(of.Model), of.APIKey.String(),
		tenants.CSVTime(of.StartedAt), tenants.CSVTime(of.LastAt),
	}, values[:heldFigures], []string{strconv.FormatBool(of.Bridged), strconv.FormatBool(of.Rehydrated)}, values[heldFigures:],
		[]string{strconv.FormatInt(of.Sums.Saved(), 10), of.EndUser, tenants.CSVCell(of.EndUserName)})
}
