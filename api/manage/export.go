package manage

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive/export"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// exportBuffer is how many bytes of an export go out at once.
const exportBuffer = 64 << 10

// exportFormat is a form in which a session is exported.
type exportFormat struct {
	media, extension string
	write            func(ctx context.Context, w io.Writer, session export.Session) error
}

// exportFormats are the forms by their names; without one it is ndjson.
func (s *server) exportFormats() map[string]exportFormat {
	return map[string]exportFormat{
		"ndjson":   {"application/x-ndjson", "ndjson", s.exportLines},
		"markdown": {"text/markdown; charset=utf-8", "md", s.exportMarkdown},
		"tar":      {"application/x-tar", "tar", s.exportTar},
	}
}

// exportSession answers a whole session as lines of JSON or a tar that verify by
// themselves, or as a transcript. What fails once it goes out cuts it off, which whoever
// verifies it sees.
func (s *server) exportSession(c echo.Context, who caller) error {
	if err := allowQuery(c, "format"); err != nil {
		return err
	}
	name := cmp.Or(c.QueryParam("format"), "ndjson")
	format, known := s.exportFormats()[name]
	if !known {
		return tenants.Invalid{Field: "format", Message: "must be ndjson, markdown or tar"}
	}
	id, err := pathID(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	reader, err := s.textReader(c, who)
	if err != nil {
		return err
	}
	detail, err := s.Sessions.Session(ctx, who.workspace, id)
	if err != nil {
		return err
	}
	if !reader.MayRead(detail.APIKey) {
		return tenants.ErrTextDenied
	}
	change := tenants.Change{Action: tenants.SessionExported, Target: id.String(), After: tenants.Fields{"format": name}}
	if err := s.Audit.Note(ctx, who.workspace, change); err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, format.media)
	header.Set(echo.HeaderContentDisposition, fmt.Sprintf("attachment; filename=%q", "palimpsest-session-"+id.String()+"."+format.extension))
	header.Set(echo.HeaderCacheControl, "private, no-store")
	header.Set(echo.HeaderXContentTypeOptions, "nosniff")
	c.Response().WriteHeader(http.StatusOK)

	buffered := bufio.NewWriterSize(c.Response(), exportBuffer)
	err = format.write(ctx, buffered, s.exported(who.workspace, detail))
	if err = errors.Join(err, buffered.Flush()); err != nil {
		if ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "export is cut off", "session_id", id, "format", name, "error", err)
		}
		// The status has gone out: only a broken connection tells that something is missing.
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (s *server) exportLines(ctx context.Context, w io.Writer, session export.Session) error {
	writer := export.NewWriter(w)
	if err := writer.Session(ctx, s.Archive, session); err != nil {
		return err
	}
	return writer.Close()
}

func (s *server) exportMarkdown(ctx context.Context, w io.Writer, session export.Session) error {
	codec, known := s.Codecs[session.Format]
	if !known {
		return fmt.Errorf("session %s has the unknown format %q", session.ID, session.Format)
	}
	return export.Markdown(ctx, w, s.Archive, session, func(raw []byte) (conversation.Message, error) { return codec.Parse(raw) })
}

// exportTar writes the originals as files and the lines, which say where each belongs.
func (s *server) exportTar(ctx context.Context, w io.Writer, session export.Session) error {
	bundle := export.NewBundle(w, session.Workspace, session.ExportedAt)
	if err := bundle.Originals(ctx, s.Archive, session); err != nil {
		return err
	}
	err := bundle.SessionFile(session.ID, func(w io.Writer) error { return s.exportLines(ctx, w, session) })
	if err != nil {
		return err
	}
	return bundle.Close()
}

// exported returns a session as it is exported.
func (s *server) exported(workspace uuid.UUID, detail session.Detail) export.Session {
	out := export.Session{
		Workspace: workspace, ID: detail.ID, Name: detail.Name, Title: detail.Title, Client: detail.Client, Model: detail.Model,
		Format: detail.Format, StartedAt: detail.StartedAt, LastAt: detail.LastAt, ExportedAt: s.Now(),
		Projection: func(ctx context.Context, lane uuid.UUID) (*export.Projection, error) {
			projection, err := s.Sessions.Projection(ctx, workspace, lane)
			if errors.Is(err, session.ErrNotFound) {
				return nil, nil //nolint:nilnil // the lane has none
			}
			return projectionOf(projection), err
		},
	}
	for _, lane := range detail.Lanes {
		out.Lanes = append(out.Lanes, export.Lane{
			ID: lane.ID, Kind: string(lane.Kind), Parent: lane.Parent, ForkAt: lane.ForkAt, Messages: lane.Archived,
		})
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
