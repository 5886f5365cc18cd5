package manage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// maxBody is the size of the largest accepted request body, in bytes.
const maxBody = 1 << 20

// Page sizes of lists.
const (
	defaultLimit = 50
	maxLimit     = 200
)

// page is the answer of a list.
type page[T any] struct {
	Data []T     `json:"data"`
	Next *string `json:"next_cursor"` // null on the last page
}

// answerPage answers with a page of a list; next is "" on the last one.
func answerPage[T any](c echo.Context, data []T, next string) error {
	if data == nil {
		data = []T{}
	}
	answer := page[T]{Data: data}
	if next != "" {
		answer.Next = &next
	}
	return c.JSON(http.StatusOK, answer)
}

// each applies of to each element of a list.
func each[T, R any](list []T, of func(T) R) []R {
	made := make([]R, len(list))
	for i, element := range list {
		made[i] = of(element)
	}
	return made
}

// nullable returns an id for JSON: null if zero.
func nullable(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// done confirms a change, unless err is set.
func done(c echo.Context, err error) error {
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// readJSON reads a request's body strictly: one JSON object without unknown or duplicate members.
func readJSON[T any](c echo.Context) (T, error) {
	var into T
	if mediaType(c.Request()) != echo.MIMEApplicationJSON {
		return into, errNotJSON
	}
	body, err := readBody(c)
	if err != nil {
		return into, err
	}
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&into); err != nil {
		return into, explain(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return into, malformed{"The body goes on after its JSON object."}
	}
	if name := repeated(body); name != "" {
		return into, tenants.Invalid{Field: name, Message: "is there twice; send it once"}
	}
	return into, nil
}

// withBody wraps a handler that takes the request's body.
func withBody[T any](handle func(c echo.Context, who caller, asked T) error) func(c echo.Context, who caller) error {
	return func(c echo.Context, who caller) error {
		asked, err := readJSON[T](c)
		if err != nil {
			return err
		}
		return handle(c, who, asked)
	}
}

func readBody(c echo.Context) (string, error) {
	request := c.Request()
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), request.Body, maxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return "", errTooLarge
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", errSlow
	}
	if err != nil {
		return "", malformed{"The body ended early."}
	}
	return string(body), nil
}

// mediaType returns the declared media type of a body, in lower case, without parameters.
func mediaType(request *http.Request) string {
	media, _, err := mime.ParseMediaType(request.Header.Get(echo.HeaderContentType))
	if err != nil {
		return ""
	}
	return media
}

// explain describes an error in a body in words that help its sender.
func explain(err error) error {
	if kind, wrong := errors.AsType[*json.UnmarshalTypeError](err); wrong {
		// Go names the struct of an embedded member, but JSON doesn't have one.
		field := strings.NewReplacer("limitsChange.", "", "QuotaChange.", "").Replace(kind.Field)
		return tenants.Invalid{Field: field, Message: fmt.Sprintf("must be a %s, not a %s", kindName(kind.Type.String()), kind.Value)}
	}
	if quoted, found := strings.CutPrefix(err.Error(), "json: unknown field "); found {
		if name, unquoted := strconv.Unquote(quoted); unquoted == nil {
			return tenants.Invalid{Field: name, Message: "is unknown; openapi.yaml lists the known members"}
		}
	}
	if badTime, wrong := errors.AsType[*time.ParseError](err); wrong {
		return malformed{"The body holds " + strconv.Quote(badTime.Value) + " where a time such as 2026-01-31T12:00:00Z belongs."}
	}
	if errors.Is(err, io.EOF) {
		return malformed{"The body is empty; send a JSON object."}
	}
	return malformed{"The body is not valid JSON: " + strings.TrimPrefix(err.Error(), "json: ") + "."}
}

// kindName returns the JSON name of a Go type.
func kindName(of string) string {
	switch {
	case of == "string" || strings.HasSuffix(of, "tenants.Scope") || strings.HasSuffix(of, "tenants.Provider"):
		return "string"
	case strings.HasPrefix(of, "["):
		return "list"
	case of == "bool":
		return "boolean"
	case strings.HasPrefix(of, "int") || strings.HasPrefix(of, "float"):
		return "number"
	default:
		return "object"
	}
}

// pathID returns the id in the path, or tenants.ErrNotFound for a malformed one.
func pathID(c echo.Context) (uuid.UUID, error) {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return uuid.Nil, tenants.ErrNotFound
	}
	return id, nil
}

// withID wraps a handler that takes the id in the path.
func withID(handle func(c echo.Context, who caller, id uuid.UUID) error) func(c echo.Context, who caller) error {
	return func(c echo.Context, who caller) error {
		id, err := pathID(c)
		if err != nil {
			return err
		}
		return handle(c, who, id)
	}
}

// pathWorkspace is pathID for a workspace.
func pathWorkspace(c echo.Context) (tenants.WorkspaceID, error) {
	id, err := pathID(c)
	return tenants.WorkspaceID(id), err
}

// queryLimit returns the requested number of rows.
func queryLimit(c echo.Context) (int, error) {
	text := c.QueryParam("limit")
	if text == "" {
		return defaultLimit, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxLimit {
		return 0, tenants.Invalid{Field: "limit", Message: fmt.Sprintf("must be a whole number from 1 to %d", maxLimit)}
	}
	return limit, nil
}

// firstOf returns a page of a list with one more element than the limit, and the cursor of the next page; ""
// if absent.
func firstOf[T any](found []T, limit int, id func(*T) uuid.UUID) (shown []T, next string) {
	if len(found) <= limit {
		return found, ""
	}
	return found[:limit], id(&found[limit-1]).String()
}

// wrongCursor refuses an invalid cursor.
func wrongCursor() tenants.Invalid {
	return tenants.Invalid{Field: "cursor", Message: "is not a next_cursor of this list; leave it out for the first page"}
}

// queryTime returns a time of the query; the zero time if absent.
func queryTime(c echo.Context, name string) (time.Time, error) {
	text := c.QueryParam(name)
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, tenants.Invalid{Field: name, Message: "must be a time such as 2026-01-31T12:00:00Z or a date such as 2026-01-31"}
}

// queryRange returns the times from and to of the query.
func queryRange(c echo.Context) (from, to time.Time, err error) {
	if from, err = queryTime(c, "from"); err != nil {
		return from, to, err
	}
	if to, err = queryTime(c, "to"); err != nil {
		return from, to, err
	}
	if !to.IsZero() && to.Before(from) {
		return from, to, tenants.Invalid{Field: "to", Message: "lies before from"}
	}
	return from, to, nil
}

// withQuery wraps a handler that takes the named parameters of the query. Unknown ones are refused.
func withQuery(handle func(c echo.Context, who caller) error, names ...string) func(c echo.Context, who caller) error {
	return func(c echo.Context, who caller) error {
		if err := allowQuery(c, names...); err != nil {
			return err
		}
		return handle(c, who)
	}
}

// allowQuery refuses unknown parameters of the query.
func allowQuery(c echo.Context, names ...string) error {
	for name := range c.QueryParams() {
		if !slices.Contains(names, name) {
			return tenants.Invalid{Field: name, Message: "is unknown; known are " + strings.Join(names, ", ")}
		}
	}
	return nil
}
