package manage

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/cost"
	"palimpsest/tenants"
)

const (
	day = 24 * time.Hour
	// usageDays is how far back usage is added up unless the query says otherwise.
	usageDays = 30
)

// usageJSON is the usage of one day, API key, model or client.
type usageJSON struct {
	Label        string `json:"label"` // 2026-01-31, the API key's id, the model or the client
	Name         string `json:"name"`  // of the API key; label in other dimensions
	Requests     int64  `json:"requests"`
	Failures     int64  `json:"failures"`
	Epochs       int64  `json:"epochs"`
	TokensBefore int64  `json:"tokens_before"`
	TokensAfter  int64  `json:"tokens_after"`
	Input        int64  `json:"input"`
	CacheRead    int64  `json:"cache_read"`
	CacheWrite   int64  `json:"cache_write"`
	Output       int64  `json:"output"`
	CostMicroUSD int64  `json:"cost_micro_usd"`
	NetMicroUSD  int64  `json:"net_micro_usd"`
}

func usageOf(row tenants.UsageRow) usageJSON {
	return usageJSON{
		Label: row.Label, Name: row.Name, Requests: row.Exchanges, Failures: row.Failures, Epochs: row.Epochs,
		TokensBefore: row.TokensBefore, TokensAfter: row.TokensAfter,
		Input: row.Input, CacheRead: row.CacheRead, CacheWrite: row.CacheWrite, Output: row.Output,
		CostMicroUSD: row.CostMicroUSD, NetMicroUSD: row.NetMicroUSD,
	}
}

// missesJSON are the cache misses of one cause.
type missesJSON struct {
	Cause    string `json:"cause"`
	Requests int64  `json:"requests"`
	Tokens   int64  `json:"tokens"`
}

// adviceJSON tells that compression has cost more than it saved.
type adviceJSON struct {
	From            time.Time `json:"from"`
	To              time.Time `json:"to"`
	Requests        int64     `json:"requests"` // with a projection
	LostMicroUSD    int64     `json:"lost_micro_usd"`
	WithoutMicroUSD int64     `json:"without_micro_usd"` // what all requests would have cost without compression
}

// usageAnswer is a list with what the workspace's money came to.
type usageAnswer struct {
	page[usageJSON]

	Misses []missesJSON `json:"misses"`
	Advice *adviceJSON  `json:"advice"` // null: compression has paid, or too little was compressed to say
}

// money adds what was missed in a span of time to an answer, and advice that goes by
// the last days.
func (s *server) money(ctx context.Context, workspace tenants.WorkspaceID, from, to time.Time, answer *usageAnswer) error {
	asked, err := s.Usage.Balance(ctx, workspace, from, to)
	if err != nil {
		return err
	}
	answer.Misses = make([]missesJSON, len(asked.Misses))
	for i, misses := range asked.Misses {
		answer.Misses[i] = missesJSON{Cause: misses.Cause, Requests: misses.Count, Tokens: misses.Tokens}
	}
	now := s.Now()
	recent, err := s.Usage.Balance(ctx, workspace, now.Add(-cost.AdviceSpan), now)
	if err != nil {
		return err
	}
	if advice, ok := cost.Advise(recent.Edited, recent.CostMicroUSD, recent.NetMicroUSD); ok {
		answer.Advice = &adviceJSON{
			From: now.Add(-cost.AdviceSpan), To: now, Requests: advice.Exchanges, LostMicroUSD: advice.Lost, WithoutMicroUSD: advice.Without,
		}
	}
	return nil
}

func (s *server) getUsage(c echo.Context, who caller) error {
	if err := allowQuery(c, "by", "from", "to"); err != nil {
		return err
	}
	by := tenants.Dimension(c.QueryParam("by"))
	if by == "" {
		by = tenants.ByDay
	}
	if !slices.Contains([]tenants.Dimension{tenants.ByDay, tenants.ByKey, tenants.ByModel, tenants.ByClient}, by) {
		return tenants.Invalid{Field: "by", Message: "must be one of day, key, model, client"}
	}
	from, to, err := queryRange(c)
	if err != nil {
		return err
	}
	if to.IsZero() {
		to = s.Now()
	}
	if from.IsZero() {
		from = to.Add(-usageDays * day)
	}
	ctx := c.Request().Context()
	rows, err := s.Usage.Usage(ctx, who.workspace, by, from, to)
	if err != nil {
		return err
	}
	answer := usageAnswer{page: page[usageJSON]{Data: make([]usageJSON, len(rows))}}
	for i, row := range rows {
		answer.Data[i] = usageOf(row)
	}
	if err := s.money(ctx, who.workspace, from, to, &answer); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}
