package manage

import (
	"context"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
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
	group.GET("/sessions/:id/events", a.as(tenants.ReadSessions, withQuery(withID(h.listEvents), "cursor", "limit")))
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
	if json.Valid(exchange.Prompt.Report) {
		answer.Report = exchange.Prompt.Report
	}
	for name, value := range exchange.Answer.Signed {
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
	if exchange.Answer.ErrorText == nil || h.sealed == nil || !reader.MayRead(exchange.Request.APIKey) {
		return "", nil
	}
	key, err := h.sealed.Key(c.Request().Context(), who.workspace)
	if err != nil {
		return "", err
	}
	text, err := key.OpenError(exchange.ID, exchange.Answer.ErrorText)
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
func (h exchangeHandler) listEvents(c echo.Context, who caller, id uuid.UUID) error {
	ctx := c.Request().Context()
	if _, err := h.sessions.Session(ctx, who.workspace, id); err != nil {
		return err
	}
	limit, err := queryLimit(c)
	if err != nil {
		return err
	}
	filter := tenants.ExchangeFilter{Session: id, Cursor: c.QueryParam("cursor"), Limit: limit}
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
	if json.Unmarshal(exchange.Prompt.Report, &report) != nil {
		return nil // exchanges without a pipeline have no report
	}
	events := make([]eventJSON, len(report.Events))
	for i, event := range report.Events {
		events[i] = eventJSON{
			At: exchange.At, Request: exchange.ID, Lane: exchange.Request.Lane,
			Module: event.Module, Type: event.Type, Reason: event.Reason, Counts: event.Counts,
		}
	}
	return events
}

// maxRequestsCSV bounds the requests in a download; it has the newest.
const maxRequestsCSV = 100_000

// downloadRequests answers with the filtered requests as CSV, the newest first. It reads and sends them page
// by page.
func (h exchangeHandler) downloadRequests(c echo.Context, who caller) error {
	filter, err := exchangeFilter(c, who)
	if err != nil {
		return err
	}
	reader, err := h.readers.reader(c, who)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	filter.Limit = tenants.MaxExchanges
	first, next, err := h.page(ctx, who.workspace, reader, filter)
	if err != nil {
		return err
	}
	startCSV(c, "palimpsest-requests.csv")
	pages := h.requestPages(ctx, who.workspace, reader, filter, first, next)
	if err := writeRequestsCSV(c.Response(), pages); err != nil {
		h.log.WarnContext(ctx, "download of requests is cut off", "error", err)
		panic(http.ErrAbortHandler) // the status has already been sent
	}
	return nil
}

// startCSV begins an answer with a CSV file.
func startCSV(c echo.Context, name string) {
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "text/csv; charset=utf-8")
	header.Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`"`)
	header.Set(echo.HeaderCacheControl, "private, no-store")
	header.Set(echo.HeaderXContentTypeOptions, "nosniff")
	c.Response().WriteHeader(http.StatusOK)
}

// requestPages returns the pages of a list, given the first.
func (h exchangeHandler) requestPages(ctx context.Context, workspace tenants.WorkspaceID, reader tenants.Reader, filter tenants.ExchangeFilter, first []tenants.Exchange, next string) iter.Seq2[[]tenants.Exchange, error] {
	return func(yield func([]tenants.Exchange, error) bool) {
		page, err := first, error(nil)
		for yield(page, err) && err == nil && next != "" {
			filter.Cursor = next
			page, next, err = h.page(ctx, workspace, reader, filter)
		}
	}
}

// writeRequestsCSV writes pages as CSV (RFC 4180) with a heading, at most maxRequestsCSV
// rows. A cell that a spreadsheet would take for a formula begins with an apostrophe.
func writeRequestsCSV(w io.Writer, pages iter.Seq2[[]tenants.Exchange, error]) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	columns := requestColumns()
	row := make([]string, len(columns))
	for i, column := range columns {
		row[i] = column.name
	}
	if err := out.Write(row); err != nil {
		return fmt.Errorf("write requests: %w", err)
	}
	rows := 0
	for page, err := range pages {
		for i := 0; err == nil && i < len(page) && rows < maxRequestsCSV; i++ {
			for j, column := range columns {
				row[j] = column.cell(&page[i])
			}
			err = out.Write(row)
			rows++
		}
		out.Flush()
		if err = errors.Join(err, out.Error()); err != nil {
			return fmt.Errorf("write requests: %w", err)
		}
		if rows == maxRequestsCSV {
			break
		}
	}
	return nil
}

// requestJSON is one exchange, in lists and on its own. The description of the API has the figures and flags
// from here.
//
//nolint:tagalign // the longest text would move all tags far to the right
type requestJSON struct {
	ID           uuid.UUID        `json:"id"`
	At           time.Time        `json:"at"`
	Session      *uuid.UUID       `json:"session"`
	Lane         *uuid.UUID       `json:"lane"`
	APIKey       uuid.UUID        `json:"api_key"`
	Provider     tenants.Provider `json:"provider"`
	ProviderKey  *uuid.UUID       `json:"provider_key"`
	Endpoint     string           `json:"endpoint"`
	Model        string           `json:"model"`
	Client       string           `json:"client"`
	Class        string           `json:"class,omitempty"`
	Stream       bool             `json:"stream" doc:"The client asked for a stream"`
	Status       int              `json:"status" doc:"HTTP status that the client got; 499 if it left before"`
	ErrorFrom    string           `json:"error_from,omitempty"`
	ErrorType    string           `json:"error_type,omitempty"`
	ServiceTier  string           `json:"service_tier,omitempty"`
	Speed        string           `json:"speed,omitempty"`
	Region       string           `json:"region,omitempty"`
	AnsweredBy   string           `json:"answered_by,omitempty"`
	Messages     int              `json:"messages" doc:"Messages in the request"`
	Compression  string           `json:"compression"`
	TokensBefore int              `json:"tokens_before" doc:"Tokens of the prompt as the client sent it, estimated"`
	TokensAfter  int              `json:"tokens_after" doc:"Tokens of the prompt as it was sent, estimated"`
	Window       int              `json:"context_window" doc:"Tokens that the settings of that time allowed"`
	Takes        int              `json:"provider_window" doc:"Tokens that the provider takes; 0 if not recorded"`
	Target       int              `json:"target_tokens" doc:"Tokens above which the prompt was to be compressed by the settings of that time; 0 if never, or not recorded"`
	Levels       [4]int           `json:"levels"`
	Reported     reportedJSON     `json:"reported"`
	CostMicroUSD int64            `json:"cost_micro_usd" doc:"At list prices, in millionths of a US dollar; 0 if the model is unknown"`
	NetMicroUSD  int64            `json:"net_micro_usd" doc:"Money saved against the cheaper of the prompt as sent and a client that compacts itself, net of cache rewrites; can be negative; 0 for a prompt that could not have been sent"`
	Reach        bool             `json:"reach" doc:"The provider would have refused the client's prompt for its length, and answered the shortened one. No money is claimed"`
	MissCause    string           `json:"miss_cause,omitempty"`
	MissedTokens int              `json:"missed_tokens" doc:"Tokens that the provider's cache should have had"`
	Projection   int              `json:"projection" doc:"Number of the projection in the prompt; 0 for none"`
	OverheadMS   float64          `json:"overhead_ms" doc:"Our own work before the request went to the provider"`
	TTFBMS       float64          `json:"ttfb_ms" doc:"From there to the first byte of the answer"`
	DurationMS   float64          `json:"duration_ms" doc:"From the request's arrival to the last byte of the answer"`
	Attempts     int              `json:"attempts" doc:"How often it was sent to a provider"`
	Answer       string           `json:"answer_sha256,omitempty"`
	Modules      []moduleJSON     `json:"modules"`
	Tags         tenants.Tags     `json:"tags"`
	EndUser      string           `json:"end_user,omitempty"`
	EndUserName  string           `json:"end_user_name,omitempty"` // only with the right to read the session

	// Only for a single request.
	Report    json.RawMessage   `json:"report,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`    // our own, unless another member has the value
	ErrorText string            `json:"error_text,omitempty"` // only with the right to read messages of the session
}

// moduleJSON is the result of a module.
type moduleJSON struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
}

// reportedJSON are the tokens reported by the provider.
type reportedJSON struct {
	Input      int `json:"input"`
	CacheRead  int `json:"cache_read"`
	CacheWrite int `json:"cache_write"`
	Output     int `json:"output"`
}

func requestOf(exchange tenants.Exchange) requestJSON {
	answer := requestJSON{
		ID: exchange.ID, At: exchange.At, APIKey: exchange.Request.APIKey, ProviderKey: nullable(exchange.Answer.ProviderKey), Provider: exchange.Answer.Provider, Endpoint: exchange.Request.Endpoint,
		Model: exchange.Request.Model, Client: exchange.Request.Client, Stream: exchange.Request.Stream, Status: exchange.Answer.Status,
		ErrorFrom: exchange.Answer.ErrorFrom, ErrorType: exchange.Answer.ErrorType, Messages: exchange.Request.Position, Compression: exchange.Prompt.Compression,
		TokensBefore: exchange.Prompt.TokensBefore, TokensAfter: exchange.Prompt.TokensAfter, Window: exchange.Prompt.Window, Takes: exchange.Prompt.Takes, Target: exchange.Prompt.Target, Levels: exchange.Prompt.Levels,
		Reported:     reportedJSON{Input: exchange.Tokens.Input, CacheRead: exchange.Tokens.CacheRead, CacheWrite: exchange.Tokens.CacheWrite, Output: exchange.Tokens.Output},
		CostMicroUSD: exchange.Cost.CostMicroUSD, NetMicroUSD: exchange.Cost.NetMicroUSD, Reach: exchange.Prompt.Reach,
		MissCause: exchange.Tokens.MissCause, MissedTokens: exchange.Tokens.MissedTokens, Projection: exchange.Prompt.Projection,
		OverheadMS: milliseconds(exchange.Times.Overhead), TTFBMS: milliseconds(exchange.Times.TTFB), DurationMS: milliseconds(exchange.Times.Duration),
		Attempts: exchange.Answer.Attempts, Answer: hex.EncodeToString(exchange.Answer.Answer),
		Class: exchange.Request.Class, Modules: modulesOf(exchange.Prompt.Report), Tags: exchange.Request.Tags,
		ServiceTier: exchange.Answer.ServiceTier, Speed: exchange.Answer.Speed, Region: exchange.Answer.Region, AnsweredBy: exchange.Answer.AnsweredBy,
		EndUser: exchange.Request.EndUser, EndUserName: exchange.Request.EndUserName,
	}
	if answer.Tags == nil {
		answer.Tags = tenants.Tags{}
	}
	if exchange.Request.Session != uuid.Nil {
		answer.Session, answer.Lane = &exchange.Request.Session, &exchange.Request.Lane
	}
	return answer
}

// modulesOf returns the results of a report's modules, in their order.
func modulesOf(encoded []byte) []moduleJSON {
	modules := []moduleJSON{}
	var report pipeline.Report
	if json.Unmarshal(encoded, &report) != nil {
		return modules // exchanges without a pipeline have no report
	}
	for _, module := range report.Modules {
		modules = append(modules, moduleJSON{Name: module.Name, Outcome: module.Outcome})
	}
	return modules
}

// requestColumn is a column of a download.
type requestColumn struct {
	name string
	cell func(*tenants.Exchange) string
}

// requestColumns are the columns of a download.
func requestColumns() []requestColumn {
	type exchange = tenants.Exchange
	return []requestColumn{
		{"at", func(e *exchange) string { return e.At.UTC().Format(time.RFC3339Nano) }},
		{"id", func(e *exchange) string { return e.ID.String() }},
		{"session", func(e *exchange) string { return tenants.CSVID(e.Request.Session) }},
		{"lane", func(e *exchange) string { return tenants.CSVID(e.Request.Lane) }},
		{"client", func(e *exchange) string { return tenants.CSVCell(e.Request.Client) }},
		{"model", func(e *exchange) string { return tenants.CSVCell(e.Request.Model) }},
		{"key", func(e *exchange) string { return e.Request.APIKey.String() }},
		{"provider", func(e *exchange) string { return tenants.CSVCell(string(e.Answer.Provider)) }},
		{"provider_key", func(e *exchange) string { return tenants.CSVID(e.Answer.ProviderKey) }},
		{"endpoint", func(e *exchange) string { return tenants.CSVCell(e.Request.Endpoint) }},
		{"class", func(e *exchange) string { return tenants.CSVCell(e.Request.Class) }},
		{"stream", func(e *exchange) string { return strconv.FormatBool(e.Request.Stream) }},
		{"status", func(e *exchange) string { return strconv.Itoa(e.Answer.Status) }},
		{"error_from", func(e *exchange) string { return tenants.CSVCell(e.Answer.ErrorFrom) }},
		{"error_type", func(e *exchange) string { return tenants.CSVCell(e.Answer.ErrorType) }},
		{"compression", func(e *exchange) string { return tenants.CSVCell(e.Prompt.Compression) }},
		{"tokens_received", func(e *exchange) string { return strconv.Itoa(e.Prompt.TokensBefore) }},
		{"tokens_sent", func(e *exchange) string { return strconv.Itoa(e.Prompt.TokensAfter) }},
		{"input", func(e *exchange) string { return strconv.Itoa(e.Tokens.Input) }},
		{"cache_read", func(e *exchange) string { return strconv.Itoa(e.Tokens.CacheRead) }},
		{"cache_write", func(e *exchange) string { return strconv.Itoa(e.Tokens.CacheWrite) }},
		{"output", func(e *exchange) string { return strconv.Itoa(e.Tokens.Output) }},
		{"overhead_ms", func(e *exchange) string { return millisCell(e.Times.Overhead) }},
		{"ttfb_ms", func(e *exchange) string { return millisCell(e.Times.TTFB) }},
		{"duration_ms", func(e *exchange) string { return millisCell(e.Times.Duration) }},
		{"attempts", func(e *exchange) string { return strconv.Itoa(e.Answer.Attempts) }},
		{"cost_usd", func(e *exchange) string { return dollars(e.Cost.CostMicroUSD) }},
		{"net_usd", func(e *exchange) string { return dollars(e.Cost.NetMicroUSD) }},
		{"miss_cause", func(e *exchange) string { return tenants.CSVCell(e.Tokens.MissCause) }},
		{"missed_tokens", func(e *exchange) string { return strconv.Itoa(e.Tokens.MissedTokens) }},
		{"modules", modulesCell},
		{"tags", tagsCell},
		{"end_user", func(e *exchange) string { return e.Request.EndUser }},
		{"end_user_name", func(e *exchange) string { return tenants.CSVCell(e.Request.EndUserName) }},
		{"reach", func(e *exchange) string { return strconv.FormatBool(e.Prompt.Reach) }},
		{"service_tier", func(e *exchange) string { return tenants.CSVCell(e.Answer.ServiceTier) }},
		{"speed", func(e *exchange) string { return tenants.CSVCell(e.Answer.Speed) }},
		{"region", func(e *exchange) string { return tenants.CSVCell(e.Answer.Region) }},
		{"answered_by", func(e *exchange) string { return tenants.CSVCell(e.Answer.AnsweredBy) }},
	}
}

func modulesCell(e *tenants.Exchange) string {
	var modules []string
	for _, module := range modulesOf(e.Prompt.Report) {
		modules = append(modules, module.Name+":"+module.Outcome)
	}
	return tenants.CSVCell(strings.Join(modules, " "))
}

func tagsCell(e *tenants.Exchange) string {
	var tags []string
	for _, tag := range e.Request.Tags.List() {
		tags = append(tags, tag.String())
	}
	return tenants.CSVCell(strings.Join(tags, " "))
}

func milliseconds(duration time.Duration) float64 {
	return float64(duration.Microseconds()) / 1000
}

func millisCell(d time.Duration) string { return strconv.FormatFloat(milliseconds(d), 'f', -1, 64) }

// dollars writes millionths of a US dollar as a number.
func dollars(micro int64) string { return strconv.FormatFloat(float64(micro)/1e6, 'f', 6, 64) }
