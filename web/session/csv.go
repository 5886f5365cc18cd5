package session

import (
	"math"
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// Requests answers with the figures of a lane's requests as CSV, without messages.
func (h *Handler) Requests(c echo.Context, who tenants.Principal) error {
	of, err := h.subject(c, who, c.QueryParam("lane"))
	if err != nil {
		return err
	}
	timeline, err := h.deps.Sessions.Timeline(c.Request().Context(), who.Workspace.ID, of.detail.ID, of.lane.ID, math.MaxInt32)
	if err != nil {
		return err
	}
	out := layout.CSV(c, "requests-"+shortID(of.detail.ID)+".csv")
	rows := [][]string{{"request", "at", "received_tokens", "sent_tokens", "window_tokens", "compression", "miss_cause", "missed_tokens", "projection", "net_microusd", "status", "target_tokens", "reach", "answered_by", "cost_microusd", "cache_read_tokens", "duration_ms"}}
	for _, m := range timeline.Points {
		rows = append(rows, []string{
			strconv.Itoa(m.Number), tenants.CSVTime(m.At), strconv.Itoa(m.Before), strconv.Itoa(m.After), strconv.Itoa(m.Window),
			m.Compression, m.MissCause, strconv.Itoa(m.MissedTokens), strconv.Itoa(m.Projection), strconv.FormatInt(m.NetMicroUSD, 10), strconv.Itoa(m.Status),
			strconv.Itoa(m.Target), strconv.FormatBool(m.Reach), tenants.CSVCell(m.AnsweredBy),
			strconv.FormatInt(m.CostMicroUSD, 10), strconv.Itoa(m.CacheRead), strconv.FormatInt(m.Duration.Milliseconds(), 10),
		})
	}
	return out.WriteAll(rows)
}

// Epochs answers with a lane's epochs as CSV, each with its expected and actual savings.
func (h *Handler) Epochs(c echo.Context, who tenants.Principal) error {
	of, err := h.subject(c, who, c.QueryParam("lane"))
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	epochs, err := h.deps.Sessions.Epochs(ctx, who.Workspace.ID, of.lane.ID)
	if err != nil {
		return err
	}
	decisions, err := h.deps.Costs.Decisions(ctx, who.Workspace.ID, of.detail.ID)
	if err != nil {
		return err
	}
	rows := [][]string{{"epoch", "at", "reason", "tokens_before", "tokens_after", "requests_since", "predicted_micro_usd", "realised_micro_usd", "worst_micro_usd", "reach"}}
	for _, decision := range decisionsOf(epochs, decisions) {
		predicted, worst := "", ""
		if decision.Guessed {
			predicted = strconv.FormatInt(decision.Predicted, 10)
		}
		if decision.Worst != nil {
			worst = strconv.FormatInt(*decision.Worst, 10)
		}
		rows = append(rows, []string{
			strconv.Itoa(decision.Number), tenants.CSVTime(decision.At), tenants.CSVCell(decision.Reason), strconv.Itoa(decision.Before), strconv.Itoa(decision.After),
			strconv.Itoa(decision.Exchanges), predicted, strconv.FormatInt(decision.Realized, 10), worst, strconv.Itoa(decision.Reach),
		})
	}
	return layout.CSV(c, "epochs-"+shortID(of.detail.ID)+".csv").WriteAll(rows)
}
