package manage

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// archiveHandler serves archived messages.
type archiveHandler struct {
	lanes

	archive  archive.Reader
	searcher archive.Searcher
	codecs   map[conversation.Format]wire.Codec
}

func (h archiveHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/sessions/:id/turns", a.as(tenants.ReadArchive, h.listTurns))
	group.GET("/sessions/:id/archive/:index", a.as(tenants.ReadArchive, h.getOriginal))
	group.GET("/search", a.as(tenants.ReadArchive, h.search))
}

// getOriginal answers with one archived message: the client's exact bytes.
func (h archiveHandler) getOriginal(c echo.Context, who caller) error {
	if err := allowQuery(c, "lane"); err != nil {
		return err
	}
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
