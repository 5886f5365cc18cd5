package session

import (
	"math"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// Requests answers the figures of all requests of a lane as CSV, without what was said.
func (h *Handler) Requests(c echo.Context, who tenants.Principal) error {
	of, err := h.subject(c, who, c.QueryParam("lane"))
	if err != nil {
		return err
	}
	course, err := h.deps.Sessions.Course(c.Request().Context(), who.Workspace.ID, of.detail.ID, of.lane.ID, math.MaxInt32)
	if err != nil {
		return err
	}
	out := layout.CSV(c, "requests-"+shortID(of.detail.ID)+".csv")
	rows := [][]string{{"request", "at", "received_tokens", "sent_tokens", "window_tokens", "compression", "miss_cause", "missed_tokens", "projection", "net_microusd", "status"}}
	for _, m := range course.Points {
		rows = append(rows, []string{
			strconv.Itoa(m.Number), m.At.UTC().Format(time.RFC3339), strconv.Itoa(m.Before), strconv.Itoa(m.After), strconv.Itoa(m.Window),
			m.Compression, m.MissCause, strconv.Itoa(m.MissedTokens), strconv.Itoa(m.Projection), strconv.FormatInt(m.NetMicroUSD, 10), strconv.Itoa(m.Status),
		})
	}
	return out.WriteAll(rows)
}
