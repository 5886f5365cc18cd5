package manage

import (
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive"
	"palimpsest/tenants"
)

// Bounds of a search query, in bytes.
const (
	maxSearchText = 4096
	maxSearchPath = 1024
	maxSearchTool = 128
)

type hitJSON struct {
	Session uuid.UUID `json:"session"`
	Lane    uuid.UUID `json:"lane"`
	From    int       `json:"from"`
	To      int       `json:"to"` // excluded
	Score   float64   `json:"score"`
	At      time.Time `json:"at"`
	Tools   []string  `json:"tools"`
	Paths   []string  `json:"paths"`
	Matched []string  `json:"matched"`
	Named   []string  `json:"named"`
	Snippet string    `json:"snippet"`
}

// search answers with matches in the archive, best first.
func (h archiveHandler) search(c echo.Context, who caller) error {
	if err := allowQuery(c, "q", "session", "tool", "path", "from", "to", "limit"); err != nil {
		return err
	}
	reader, err := h.readers.textReader(c, who)
	if err != nil {
		return err
	}
	query, err := searchQuery(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if query.Session != uuid.Nil {
		detail, err := h.sessions.Session(ctx, who.workspace, query.Session)
		if err != nil {
			return err
		}
		if !reader.MayRead(detail.APIKey) {
			return tenants.ErrTextDenied
		}
		query.APIKey = detail.APIKey
	}
	hits, err := archive.SearchFor(ctx, h.searcher, who.workspace, reader, query)
	if err != nil {
		return err
	}
	data := make([]hitJSON, len(hits))
	for i, hit := range hits {
		data[i] = hitJSON{
			Session: hit.Session, Lane: hit.Lane, From: hit.From, To: hit.To, Score: hit.Score, At: hit.At,
			Tools: append([]string{}, hit.Tools...), Paths: append([]string{}, hit.Paths...), Matched: append([]string{}, hit.Matched...), Named: append([]string{}, hit.Named...), Snippet: hit.Snippet,
		}
	}
	return answerPage(c, data, "")
}

// searchQuery reads the query.
func searchQuery(c echo.Context) (archive.Query, error) {
	query := archive.Query{Text: c.QueryParam("q"), Tool: c.QueryParam("tool"), Path: c.QueryParam("path")}
	if query.Text == "" && query.Path == "" {
		return query, tenants.Invalid{Field: "q", Message: "is missing; say what to look for, or name a path"}
	}
	for _, bound := range []struct {
		field, value string
		most         int
	}{{"q", query.Text, maxSearchText}, {"path", query.Path, maxSearchPath}, {"tool", query.Tool, maxSearchTool}} {
		if len(bound.value) > bound.most {
			return query, tenants.Invalid{Field: bound.field, Message: fmt.Sprintf("must have at most %d bytes", bound.most)}
		}
	}
	var err error
	if text := c.QueryParam("session"); text != "" {
		if query.Session, err = uuid.Parse(text); err != nil {
			return query, tenants.Invalid{Field: "session", Message: "must be the id of a session, such as GET /sessions lists"}
		}
	}
	if query.Since, query.Until, err = queryRange(c); err != nil {
		return query, err
	}
	query.Limit = archive.DefaultHits
	if text := c.QueryParam("limit"); text != "" {
		query.Limit, err = strconv.Atoi(text)
		if err != nil || query.Limit < 1 || query.Limit > archive.MaxHits {
			return query, tenants.Invalid{Field: "limit", Message: fmt.Sprintf("must be a whole number from 1 to %d", archive.MaxHits)}
		}
	}
	return query, nil
}
