package manage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive/export"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// exportBuffer is how many bytes of an export go out at once.
const exportBuffer = 64 << 10

// maxExported is how many sessions one file holds.
const maxExported = 100

// exportSession answers a whole session as lines of JSON that verify by themselves.
func (s *server) exportSession(c echo.Context, who caller) error {
	if err := allowQuery(c); err != nil {
		return err
	}
	id, err := pathID(c)
	if err != nil {
		return err
	}
	reader, err := s.textReader(c, who)
	if err != nil {
		return err
	}
	return s.export(c, who, reader, []uuid.UUID{id}, "palimpsest-session-"+id.String()+".ndjson")
}

// exportSessions answers the sessions that the query names as one such file.
func (s *server) exportSessions(c echo.Context, who caller) error {
	if err := allowQuery(c, "id"); err != nil {
		return err
	}
	reader, err := s.textReader(c, who)
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
	return s.export(c, who, reader, ids, "palimpsest-sessions.ndjson")
}

// export answers sessions, all of which the reader may read, as a file with a name. What
// fails once it goes out cuts it off, which whoever verifies it sees.
func (s *server) export(c echo.Context, who caller, reader tenants.Reader, ids []uuid.UUID, name string) error {
	ctx := c.Request().Context()
	details := make([]session.Detail, len(ids))
	for i, id := range ids {
		var err error
		if details[i], err = s.Sessions.Session(ctx, who.workspace, id); err != nil {
			return err
		}
		if !reader.MayRead(details[i].APIKey) {
			return tenants.ErrTextDenied
		}
	}
	err := s.Audit.Together(ctx, who.workspace, func(ctx context.Context) error {
		for _, id := range ids {
			if err := s.Audit.Note(ctx, who.workspace, tenants.Change{Action: tenants.SessionExported, Target: id.String()}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "application/x-ndjson")
	header.Set(echo.HeaderContentDisposition, fmt.Sprintf("attachment; filename=%q", name))
	header.Set(echo.HeaderCacheControl, "private, no-store")
	header.Set(echo.HeaderXContentTypeOptions, "nosniff")
	c.Response().WriteHeader(http.StatusOK)

	buffered := bufio.NewWriterSize(c.Response(), exportBuffer)
	writer := export.NewWriter(buffered)
	for i := range details {
		if err = writer.Session(ctx, s.Archive, s.exported(who.workspace, details[i])); err != nil {
			break
		}
	}
	if err == nil {
		err = writer.Close()
	}
	if err = errors.Join(err, buffered.Flush()); err != nil {
		if ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "export is cut off", "sessions", len(ids), "first", ids[0], "error", err)
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
