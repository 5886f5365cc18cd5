package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/api/recall"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
)

// mcpPath is the path of the MCP server for the archive.
const mcpPath = "/mcp"

// errNoRecall says that an API key may not read the archive.
var errNoRecall = fmt.Errorf("%w recall", tenants.ErrScopeMissing)

// recall serves the MCP server to anyone with an API key of the workspace for the proxy or for recall. They
// find and read whatever the people behind the key may. The header X-Palimpsest-Session-Id limits it to a
// session, X-Palimpsest-User to the sessions of an end user.
func (s *Server) recall(c echo.Context) error {
	request := c.Request()
	event := s.begin(request, mcpPath)
	key, err := s.keyWith(request.Context(), request, event, errNoRecall, tenants.ScopeRecall, tenants.ScopeProxy)
	if err != nil {
		return s.refuseRecall(c, event, err)
	}
	asked, err := readControls(request.Header)
	if err != nil {
		return s.refuseRecall(c, event, err)
	}
	s.Recall.Serve(c.Response(), request, recall.Caller{
		Key: key, Session: asked.session, EndUser: session.EndUserID(key.Workspace, asked.endUser),
	})
	return nil
}

// refuseRecall answers with one of our errors and logs it.
func (s *Server) refuseRecall(c echo.Context, event *RequestLog, err error) error {
	if status := problem(err).Status; status == http.StatusUnauthorized {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, "Bearer")
	}
	refused := s.refuse(c, formats.Default(), event, err)
	caller := recall.Caller{Key: tenants.APIKey{Workspace: event.from.Workspace, ID: event.from.APIKey, Prefix: event.from.KeyPrefix}}
	s.Recalled(c.Request().Context(), recall.Call{Caller: caller, Outcome: "refused", Err: err})
	return refused
}

// Recalled counts a call of the archive's tools and writes it to the log, without its query and its results.
func (s *Server) Recalled(ctx context.Context, call recall.Call) {
	s.Metrics.recalls.WithLabelValues(call.Tool, call.Outcome).Inc()
	if call.Tool != "" {
		s.Metrics.recalling.WithLabelValues(call.Tool).Observe(call.Duration.Seconds())
	}
	level := slog.LevelInfo
	attributes := []slog.Attr{
		slog.String("tool", call.Tool), slog.String("outcome", call.Outcome),
		slog.String("workspace", call.Caller.Key.Workspace.String()), slog.String("key", call.Caller.Key.Prefix),
		slog.Int("hits", call.Hits), slog.Int("bytes", call.Bytes), slog.Duration("duration", call.Duration),
	}
	if call.Err != nil {
		attributes = append(attributes, slog.String("error", call.Err.Error()))
		if call.Outcome == "failed" {
			level = slog.LevelError
		}
	}
	s.Log.LogAttrs(ctx, level, "recall", attributes...)
}
