package manage

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// exchangeHandler serves the record of exchanges.
type exchangeHandler struct {
	exchanges tenants.Exchanges
	sessions  session.Records
	readers   readers
	sealed    *archive.Keys // optional: without them, sealed data beside messages is not shown
	log       *slog.Logger
}

func (h exchangeHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/sessions/:id/events", a.as(tenants.ReadSessions, h.listEvents))
	group.GET("/requests", a.as(tenants.ReadMetrics, h.listRequests))
	group.GET("/requests.csv", a.as(tenants.ReadMetrics, h.downloadRequests))
	group.GET("/requests/:id", a.as(tenants.ReadMetrics, withID(h.getRequest)))
}

func (h exchangeHandler) listRequests(c echo.Context, who caller) error {
	filter, err := exchangeFilter(c, who, "cursor", "limit")
	if err != nil {
		return err
	}
	filter.Cursor = c.QueryParam("cursor")
	if filter.Limit, err = queryLimit(c); err != nil {
		return err
	}
	reader, err := h.readers.reader(c, who)
	if err != nil {
		return err
	}
	exchanges, next, err := h.page(c.Request().Context(), who.workspace, reader, filter)
	if err != nil {
		return err
	}
	return answerPage(c, each(exchanges, requestOf), next)
}

// page returns a page of exchanges, with the ids of end users that the reader may see.
func (h exchangeHandler) page(ctx context.Context, workspace tenants.WorkspaceID, reader tenants.Reader, filter tenants.ExchangeFilter) ([]tenants.Exchange, string, error) {
	exchanges, next, err := h.exchanges.Exchanges(ctx, workspace, filter)
	if err != nil {
		return nil, "", err
	}
	return exchanges, next, nameUsers(ctx, h.sessions, workspace, reader, exchanges)
}

// nameUsers adds the applications' own ids of end users, if they are stored and the reader may see them.
func nameUsers(ctx context.Context, sessions session.Records, workspace tenants.WorkspaceID, reader tenants.Reader, exchanges []tenants.Exchange) error {
	return tenants.NameEndUsers(exchanges, reader, func(users []string) (map[string]string, error) {
		return sessions.EndUserNames(ctx, workspace, users)
	})
}

// exchangeFilter reads the filter in the query. more are further allowed parameters.
func exchangeFilter(c echo.Context, who caller, more ...string) (tenants.ExchangeFilter, error) {
	names := append(append(tenants.ExchangeFilterNames(), "from", "to"), more...)
	if err := allowQuery(c, names...); err != nil {
		return tenants.ExchangeFilter{}, err
	}
	filter, err := tenants.ParseExchangeFilter(c.QueryParams())
	if err != nil {
		return filter, err
	}
	if user := c.QueryParam("end_user"); user != "" {
		filter.EndUser = session.EndUserIDs(who.workspace, user)
	}
	filter.From, filter.To, err = queryRange(c)
	return filter, err
}

func (h exchangeHandler) getRequest(c echo.Context, who caller, id uuid.UUID) error {
	exchange, err := h.exchanges.Exchange(c.Request().Context(), who.workspace, id)
	if err != nil {
		return err
	}
	reader, err := h.readers.reader(c, who)
	if err != nil {
		return err
	}
	named := []tenants.Exchange{exchange}
	if err := nameUsers(c.Request().Context(), h.sessions, who.workspace, reader, named); err != nil {
		return err
	}
	answer := requestOf(named[0])
	if json.Valid(exchange.Report) {
		answer.Report = exchange.Report
	}
	for name, value := range exchange.Signed {
		if answer.Headers == nil {
			answer.Headers = map[string]string{}
		}
		answer.Headers[tenants.HeaderName(name)] = value
	}
	if answer.ErrorText, err = h.errorText(c, who, reader, exchange); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}

// errorText returns the provider's text for a refused exchange. It is "" if the text isn't stored or the
// caller may not read it, since it may repeat the request's messages.
func (h exchangeHandler) errorText(c echo.Context, who caller, reader tenants.Reader, exchange tenants.Exchange) (string, error) {
	if exchange.ErrorText == nil || h.sealed == nil || !reader.MayRead(exchange.APIKey) {
		return "", nil
	}
	key, err := h.sealed.Key(c.Request().Context(), who.workspace)
	if err != nil {
		return "", err
	}
	text, err := key.OpenError(exchange.ID, exchange.ErrorText)
	if err != nil {
		return "", fmt.Errorf("error of exchange %s: %w", exchange.ID, err)
	}
	return string(text), nil
}

// eventJSON is something a module did, or failed to do, in one exchange.
type eventJSON struct {
	At      time.Time      `json:"at"`
	Request uuid.UUID      `json:"request"`
	Lane    uuid.UUID      `json:"lane"`
	Module  string         `json:"module"`
	Type    string         `json:"type"`
	Reason  string         `json:"reason,omitempty"`
	Counts  map[string]int `json:"counts,omitempty"`
}

// listEvents answers with the events of a session's exchanges, newest exchange first. A page holds the events
// of up to limit exchanges.
func (h exchangeHandler) listEvents(c echo.Context, who caller) error {
	if err := allowQuery(c, "cursor", "limit"); err != nil {
		return err
	}
	id, err := pathID(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if _, err := h.sessions.Session(ctx, who.workspace, id); err != nil {
		return err
	}
	filter := tenants.ExchangeFilter{Session: id, Cursor: c.QueryParam("cursor")}
	if filter.Limit, err = queryLimit(c); err != nil {
		return err
	}
	exchanges, next, err := h.exchanges.Exchanges(ctx, who.workspace, filter)
	if err != nil {
		return err
	}
	var data []eventJSON
	for _, listed := range exchanges {
		exchange, err := h.exchanges.Exchange(ctx, who.workspace, listed.ID) // with its report
		if err != nil {
			return err
		}
		data = append(data, eventsOf(exchange)...)
	}
	return answerPage(c, data, next)
}

func eventsOf(exchange tenants.Exchange) []eventJSON {
	var report pipeline.Report
	if json.Unmarshal(exchange.Report, &report) != nil {
		return nil // exchanges without a pipeline have no report
	}
	events := make([]eventJSON, len(report.Events))
	for i, event := range report.Events {
		events[i] = eventJSON{
			At: exchange.At, Request: exchange.ID, Lane: exchange.Lane,
			Module: event.Module, Type: event.Type, Reason: event.Reason, Counts: event.Counts,
		}
	}
	return events
}
