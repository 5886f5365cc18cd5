package manage

import (
	"slices"
	"time"

	"github.com/labstack/echo/v4"

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
	rows, err := s.Usage.Usage(c.Request().Context(), who.workspace, by, from, to)
	if err != nil {
		return err
	}
	data := make([]usageJSON, len(rows))
	for i, row := range rows {
		data[i] = usageOf(row)
	}
	return answerPage(c, data, "")
}
