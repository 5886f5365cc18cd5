package manage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive/export"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// exportBuffer is how many bytes of an export go out at once.
const exportBuffer = 64 << 10

// exportSession answers a whole session as lines of JSON that verify by themselves.
// What fails once they go out cuts them off, which whoever verifies them sees.
func (s *server) exportSession(c echo.Context, who caller) error {
	if err := allowQuery(c); err != nil {
		return err
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
	if err := s.Audit.Note(ctx, who.workspace, tenants.Change{Action: tenants.SessionExported, Target: id.String()}); err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "application/x-ndjson")
	header.Set(echo.HeaderContentDisposition, fmt.Sprintf("attachment; filename=%q", "palimpsest-session-"+id.String()+".ndjson"))
	header.Set(echo.HeaderCacheControl, "private, no-store")
	header.Set(echo.HeaderXContentTypeOptions, "nosniff")
	c.Response().WriteHeader(http.StatusOK)

	buffered := bufio.NewWriterSize(c.Response(), exportBuffer)
	writer := export.NewWriter(buffered)
	err = writer.Session(ctx, s.Archive, s.exported(who.workspace, detail))
	if err == nil {
		err = writer.Close()
	}
	if err = errors.Join(err, buffered.Flush()); err != nil {
		if ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "export is cut off", "session_id", id, "error", err)
		}
		// The status has gone out: only a broken connection tells that something is missing.
		panic(http.ErrAbortHandler)
	}
	return nil
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
