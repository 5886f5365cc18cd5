package manage

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/cost"
	"palimpsest/tenants"
)

// usageHandler serves totals of exchanges.
type usageHandler struct {
	usage tenants.UsageReader
	now   func() time.Time
}

func (h usageHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/usage", a.as(tenants.ReadMetrics, withQuery(h.getUsage, "by", "from", "to", "client", "model", "key", "member")))
}

const (
	day = 24 * time.Hour
	// usageDays is the default period of usage.
	usageDays = 30
)

// usageJSON is the usage of one value of a dimension: see tenants.UsageRow.
type usageJSON struct {
	Label string `json:"label"`
	Name  string `json:"name"`

	tenants.Usage

	TokensSaved     int64 `json:"tokens_saved"`       // of requests short enough to be sent unchanged
	NotSentMicroUSD int64 `json:"not_sent_micro_usd"` // unsent input
}

func usageOf(row *tenants.UsageRow) usageJSON {
	return usageJSON{Label: row.Label, Name: row.Name, Usage: row.Usage, TokensSaved: row.Saved(), NotSentMicroUSD: row.NotSentMicroUSD()}
}

// missesJSON are the cache misses of one cause.
type missesJSON struct {
	Cause    string `json:"cause"`
	Requests int64  `json:"requests"`
	Tokens   int64  `json:"tokens"`
}

// adviceJSON says that compression has cost more than it saved.
type adviceJSON struct {
	From            time.Time `json:"from"`
	To              time.Time `json:"to"`
	Requests        int64     `json:"requests"` // with a projection
	LostMicroUSD    int64     `json:"lost_micro_usd"`
	WithoutMicroUSD int64     `json:"without_micro_usd"` // cost of all requests without compression
}

// usageAnswer is a list with totals of the workspace's money.
type usageAnswer struct {
	page[usageJSON]

	// The range of the totals: the requested one, widened to half hours.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`

	Misses []missesJSON `json:"misses"`
	Advice *adviceJSON  `json:"advice"` // null if compression has paid, or too little was compressed to judge
}

// money adds the missed savings in a span of time to an answer, and advice based on the last days.
func (h usageHandler) money(ctx context.Context, who caller, filter tenants.UsageFilter, answer *usageAnswer) error {
	asked, err := h.usage.Balance(ctx, who.workspace, filter)
	if err != nil {
		return err
	}
	answer.Misses = make([]missesJSON, len(asked.Misses))
	for i, misses := range asked.Misses {
		answer.Misses[i] = missesJSON{Cause: misses.Cause, Requests: misses.Count, Tokens: misses.Tokens}
	}
	now := h.now()
	lately := tenants.UsageFilter{From: now.Add(-cost.AdviceSpan), To: now}.SeenBy(who.person(), who.may).Aligned()
	recent, err := h.usage.Balance(ctx, who.workspace, lately)
	if err != nil {
		return err
	}
	if advice, ok := cost.Advise(recent.Edited, recent.CostMicroUSD, recent.NetMicroUSD); ok {
		answer.Advice = &adviceJSON{
			From: lately.From, To: lately.To, Requests: advice.Exchanges, LostMicroUSD: advice.Lost, WithoutMicroUSD: advice.Without,
		}
	}
	return nil
}

func (h usageHandler) getUsage(c echo.Context, who caller) error {
	by, err := tenants.ParseDimension(cmp.Or(c.QueryParam("by"), string(tenants.ByDay)))
	if err != nil {
		return err
	}
	from, to, err := queryRange(c)
	if err != nil {
		return err
	}
	if to.IsZero() {
		to = h.now()
	}
	if from.IsZero() {
		from = to.Add(-usageDays * day)
	}
	filter, err := usageFilter(c, from, to)
	if err != nil {
		return err
	}
	filter = filter.SeenBy(who.person(), who.may)
	ctx := c.Request().Context()
	rows, err := h.usage.Usage(ctx, who.workspace, by, filter)
	if err != nil {
		return err
	}
	answer := usageAnswer{page: page[usageJSON]{Data: make([]usageJSON, len(rows))}, From: filter.From, To: filter.To}
	for i := range rows {
		answer.Data[i] = usageOf(&rows[i])
	}
	if err := h.money(ctx, who, filter, &answer); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}

// usageFilter returns the filter in a query.
func usageFilter(c echo.Context, from, to time.Time) (tenants.UsageFilter, error) {
	filter := tenants.UsageFilter{From: from, To: to, Client: c.QueryParam("client"), Model: c.QueryParam("model")}
	if key := c.QueryParam("key"); key != "" {
		id, err := uuid.Parse(key)
		if err != nil {
			return tenants.UsageFilter{}, tenants.Invalid{Field: "key", Message: "is no id of an API key"}
		}
		filter.APIKey = id
	}
	if member := c.QueryParam("member"); member != "" {
		id, err := uuid.Parse(member)
		if err != nil {
			return tenants.UsageFilter{}, tenants.Invalid{Field: "member", Message: "must be the id of a person, as GET /members has it"}
		}
		filter.Member = id
	}
	return filter.Aligned(), nil
}

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
