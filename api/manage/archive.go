package manage

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/export"
	"palimpsest/tenants"
)

// Archive reads originals.
type Archive interface {
	archive.Reader
	export.Source

	// Originals returns the messages of a lane from index from to to (excluded)
	// with their bytes, proven by their hashes.
	Originals(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, from, to int) ([]archive.Entry, error)
}

// getOriginal answers one archived message: the bytes as the client sent them.
func (s *server) getOriginal(c echo.Context, who caller) error {
	if err := allowQuery(c, "lane"); err != nil {
		return err
	}
	_, lane, err := s.laneText(c, who)
	if err != nil {
		return err
	}
	index, err := strconv.ParseInt(c.Param("index"), 10, 32)
	if err != nil || index < 0 {
		return archive.ErrNotFound
	}
	entry, err := s.Archive.Original(c.Request().Context(), who.workspace, lane.ID, int(index))
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
