package manage

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/export"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// exportHandler exports sessions as files.
type exportHandler struct {
	sessions session.Records
	readers  readers
	archive  archive.Reader
	audit    tenants.AuditLog
	comments tenants.Comments
	codecs   map[conversation.Format]wire.Codec
	log      *slog.Logger
	now      func() time.Time
}

func (h exportHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/sessions/export", a.as(tenants.ReadArchive, withQuery(h.exportSessions, "id", "format")))
	group.GET("/sessions/:id/export", a.as(tenants.ReadArchive, withQuery(withID(h.exportSession), "format", "at")))
}

// exportBuffer is the size of an export's writes in bytes.
const exportBuffer = 64 << 10

// maxExported bounds the sessions in one file.
const maxExported = 100

// exportFormat is a file format of sessions.
type exportFormat struct {
	name, media, extension string
	write                  func(ctx context.Context, w io.Writer, sessions []export.Session) error
}

// exportFormat returns the requested format; lines of JSON by default.
func (h exportHandler) exportFormat(c echo.Context) (exportFormat, error) {
	switch name := cmp.Or(c.QueryParam("format"), "ndjson"); name {
	case "ndjson":
		return exportFormat{name, "application/x-ndjson", "ndjson", h.exportLines}, nil
	case "jsonl":
		last, err := lastMessage(c)
		return exportFormat{name, "application/jsonl", "jsonl", func(ctx context.Context, w io.Writer, sessions []export.Session) error {
			return h.exportExamples(ctx, w, sessions, last)
		}}, err
	case "markdown":
		return exportFormat{name, "text/markdown; charset=utf-8", "md", h.exportMarkdown}, nil
	case "tar":
		return exportFormat{name, "application/x-tar", "tar", h.exportTar}, nil
	}
	return exportFormat{}, tenants.Invalid{Field: "format", Message: "must be ndjson, jsonl, markdown or tar"}
}

// lastMessage returns the last message in the query, or -1 for all.
func lastMessage(c echo.Context) (int, error) {
	text := c.QueryParam("at")
	if text == "" {
		return -1, nil
	}
	at, err := strconv.ParseInt(text, 10, 32)
	if err != nil || at < 0 {
		return 0, tenants.Invalid{Field: "at", Message: "must be the number of a message, from 0 on"}
	}
	return int(at), nil
}

// exportSession answers with a whole session as lines of JSON or a tar, which can be verified on their own,
// or as a transcript.
func (h exportHandler) exportSession(c echo.Context, who caller, id uuid.UUID) error {
	if c.QueryParam("at") != "" && c.QueryParam("format") != "jsonl" {
		return tenants.Invalid{Field: "at", Message: "needs format=jsonl"}
	}
	reader, err := h.readers.textReader(c, who)
	if err != nil {
		return err
	}
	return h.export(c, who, reader, []uuid.UUID{id}, "palimpsest-session-"+id.String())
}

// exportSessions answers with the sessions in the query as one such file.
func (h exportHandler) exportSessions(c echo.Context, who caller) error {
	reader, err := h.readers.textReader(c, who)
	if err != nil {
		return err
	}
	var ids []uuid.UUID
	for _, text := range c.QueryParams()["id"] {
		id, err := uuid.Parse(text)
		if err != nil {
			return tenants.Invalid{Field: "id", Message: "is no session id"}
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || len(ids) > maxExported {
		return tenants.Invalid{Field: "id", Message: fmt.Sprintf("must be there 1 to %d times: a file holds %d sessions", maxExported, maxExported)}
	}
	return h.export(c, who, reader, ids, "palimpsest-sessions")
}

// export sends sessions as a file with a name; the reader must be allowed to read all of them. A failure
// after the first bytes cuts the file off, which its verification reveals.
func (h exportHandler) export(c echo.Context, who caller, reader tenants.Reader, ids []uuid.UUID, name string) error {
	format, err := h.exportFormat(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	sessions := make([]export.Session, len(ids))
	for i, id := range ids {
		detail, err := h.sessions.Session(ctx, who.workspace, id)
		if err != nil {
			return err
		}
		if !reader.MayRead(detail.APIKey) {
			return tenants.ErrTextDenied
		}
		sessions[i] = h.exported(who.workspace, detail)
	}
	err = h.audit.Together(ctx, who.workspace, func(tenant tenants.Tenant) error {
		for _, id := range ids {
			change := tenants.Change{Action: tenants.SessionExported, Target: id.String(), After: tenants.Fields{"format": format.name}}
			if err := h.audit.Note(ctx, tenant, change); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, format.media)
	header.Set(echo.HeaderContentDisposition, fmt.Sprintf("attachment; filename=%q", name+"."+format.extension))
	header.Set(echo.HeaderCacheControl, "private, no-store")
	header.Set(echo.HeaderXContentTypeOptions, "nosniff")
	err = sendFile(c, func(w io.Writer) error { return format.write(ctx, w, sessions) })
	if err != nil && c.Response().Committed {
		if ctx.Err() == nil {
			h.log.ErrorContext(ctx, "export is cut off", "sessions", len(ids), "first", ids[0], "format", format.name, "error", err)
		}
		// The status has already been sent, so only a broken connection shows that something is missing.
		panic(http.ErrAbortHandler)
	}
	return err
}

// sendFile sends the output of write. The status is sent with the first bytes, so earlier failures are
// answered as any other error.
func sendFile(c echo.Context, write func(w io.Writer) error) error {
	buffered := bufio.NewWriterSize(c.Response(), exportBuffer)
	err := write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil && !c.Response().Committed {
		c.Response().Header().Del(echo.HeaderContentDisposition)
	}
	return err
}

func (h exportHandler) exportLines(ctx context.Context, w io.Writer, sessions []export.Session) error {
	writer := export.NewWriter(w)
	for _, session := range sessions {
		if err := writer.Session(ctx, h.archive, session); err != nil {
			return err
		}
	}
	return writer.Close()
}

func (h exportHandler) exportMarkdown(ctx context.Context, w io.Writer, sessions []export.Session) error {
	for _, session := range sessions {
		codec, known := h.codecs[session.Format]
		if !known {
			return fmt.Errorf("session %s has the unknown format %q", session.ID, session.Format)
		}
		parse := func(raw []byte) (conversation.Message, error) { return codec.Parse(raw) }
		if err := export.Markdown(ctx, w, h.archive, session, parse); err != nil {
			return err
		}
	}
	return nil
}

// exportExamples writes sessions as lines of a data set.
func (h exportHandler) exportExamples(ctx context.Context, w io.Writer, sessions []export.Session, last int) error {
	for _, session := range sessions {
		judged, err := h.judged(ctx, session)
		if err != nil {
			return err
		}
		if err := export.Example(ctx, w, h.archive, session, judged, last); err != nil {
			return err
		}
	}
	return nil
}

// judged returns what people say about a session.
func (h exportHandler) judged(ctx context.Context, session export.Session) (export.Judged, error) {
	judged := export.Judged{Labels: []string{}, Scores: []export.Score{}, Comments: []export.Remark{}}
	found, err := h.comments.Judgments(ctx, session.Workspace, []uuid.UUID{session.ID})
	if err != nil {
		return judged, err
	}
	of := found[session.ID]
	judged.Labels = append(judged.Labels, of.Labels...)
	for _, score := range of.Scores {
		judged.Scores = append(judged.Scores, export.Score{By: score.Name, Score: score.Score, Note: score.Note, At: score.At})
	}
	comments, err := h.comments.Comments(ctx, session.Workspace, session.ID)
	for i := range comments {
		remark := export.Remark{By: comments[i].Name, Text: comments[i].Text, At: comments[i].At}
		if comments[i].HasMessage() {
			remark.Message = &comments[i].Message
		}
		judged.Comments = append(judged.Comments, remark)
	}
	return judged, err
}

// exportTar writes the originals as files and the lines, which say where each belongs.
func (h exportHandler) exportTar(ctx context.Context, w io.Writer, sessions []export.Session) error {
	bundle := export.NewBundle(w, sessions[0].Workspace, sessions[0].ExportedAt)
	for _, session := range sessions {
		if err := bundle.Originals(ctx, h.archive, session); err != nil {
			return err
		}
		err := bundle.SessionFile(session.ID, func(w io.Writer) error { return h.exportLines(ctx, w, []export.Session{session}) })
		if err != nil {
			return err
		}
	}
	return bundle.Close()
}

// exported returns a session for export.
func (h exportHandler) exported(workspace tenants.WorkspaceID, detail session.Detail) export.Session {
	out := export.Session{
		Workspace: workspace, ID: detail.ID, Name: detail.Name, Title: detail.Title, Client: detail.Client, Model: detail.Model,
		EndUser: detail.EndUser, EndUserName: detail.EndUserName, Format: detail.Format, StartedAt: detail.StartedAt, LastAt: detail.LastAt, ExportedAt: h.now(),
		Projection: func(ctx context.Context, lane uuid.UUID) (*export.Projection, error) {
			projection, err := h.sessions.Projection(ctx, workspace, lane)
			if errors.Is(err, session.ErrNotFound) {
				return nil, nil //nolint:nilnil // the lane has none
			}
			return projectionOf(projection), err
		},
		Pins: func(ctx context.Context, lane uuid.UUID) ([]export.Pin, error) {
			pins, err := h.sessions.Pins(ctx, workspace, lane)
			out := make([]export.Pin, len(pins))
			for i, pin := range pins {
				out[i] = export.Pin{Message: pin.Message, By: pin.By, At: pin.At}
			}
			return out, err
		},
	}
	for _, lane := range detail.Lanes {
		exported := export.Lane{ID: lane.ID, Kind: string(lane.Kind), Parent: lane.Parent, ForkAt: lane.ForkAt, Messages: lane.Archived}
		if order := lane.Order; order != nil {
			exported.Order = &export.Order{By: order.By, At: order.At, Instructions: order.Instructions}
		}
		out.Lanes = append(out.Lanes, exported)
	}
	return out
}

func projectionOf(projection session.Projection) *export.Projection {
	out := &export.Projection{
		Number: projection.Number, Covers: projection.Covers, Reason: projection.Reason,
		Before: projection.Before, After: projection.After, At: projection.At, Parts: make([]export.Part, len(projection.Parts)),
	}
	for i, part := range projection.Parts {
		out.Parts[i] = export.Part{From: part.From, To: part.To, Level: part.Level, Raw: part.Raw}
	}
	return out
}

// archiveHandler serves archived messages.
type archiveHandler struct {
	lanes

	archive  archive.Reader
	searcher archive.Searcher
	codecs   map[conversation.Format]wire.Codec
}

func (h archiveHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/sessions/:id/turns", a.as(tenants.ReadArchive, withQuery(h.listTurns, "lane", "cursor", "limit")))
	group.GET("/sessions/:id/archive/:index", a.as(tenants.ReadArchive, withQuery(h.getOriginal, "lane")))
	group.GET("/search", a.as(tenants.ReadArchive, withQuery(h.search, "q", "session", "tool", "path", "from", "to", "limit")))
}

// getOriginal answers with one archived message: the client's exact bytes.
func (h archiveHandler) getOriginal(c echo.Context, who caller) error {
	_, lane, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	index, err := strconv.ParseInt(c.Param("index"), 10, 32)
	if err != nil || index < 0 {
		return archive.ErrNotFound
	}
	entry, err := h.archive.Original(c.Request().Context(), who.workspace, lane.ID, int(index))
	if err != nil {
		return err
	}
	etag := fmt.Sprintf(`"sha256:%x"`, entry.Hash)
	header := c.Response().Header()
	header.Set("ETag", etag)
	header.Set(echo.HeaderCacheControl, "private, no-store")
	header.Set(echo.HeaderXContentTypeOptions, "nosniff")
	if c.Request().Header.Get("If-None-Match") == etag {
		return c.NoContent(http.StatusNotModified)
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, entry.Raw)
}
