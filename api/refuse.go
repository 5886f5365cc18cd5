package api

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/api/connections"
	"palimpsest/api/limits"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// refuse answers a request with one of our errors, in its client's dialect.
func (s *Server) refuse(c echo.Context, codec wire.Codec, event *RequestLog, err error) error {
	if why := whyEnded(c.Request().Context()); why != nil {
		err = why
	}
	problem := problem(err)
	if errors.Is(err, tenants.ErrSuspended) && s.Contact != "" {
		problem.Message += " Its contact is " + s.Contact + "."
	}
	event.outcome.refused(problem.Status, problem.Type, err)
	if problem.Status == statusClientGone {
		event.outcome.brokeOff("client", nil)
		return nil
	}
	problem.RequestID = event.ID.String()
	sign(c.Response().Header(), event)
	exceeded, isLimit := errors.AsType[limits.Exceeded](err)
	if isLimit {
		s.Metrics.refused.WithLabelValues(exceeded.Kind.String()).Inc()
		if exceeded.Wait > 0 {
			c.Response().Header().Set("Retry-After", strconv.Itoa(seconds(exceeded.Wait)))
		}
	}
	if problem.Status == http.StatusRequestTimeout {
		c.Response().Header().Set(echo.HeaderConnection, "close") // the rest of the body may still arrive
	}
	switch {
	case isLimit && exceeded.Asked == 0 && exceeded.Kind != limits.DayBudget && exceeded.Kind != limits.MonthBudget:
		c.Response().Header().Set("X-Should-Retry", "true")
	case errors.Is(err, errCrowded), isBytes(err):
		c.Response().Header().Set(echo.HeaderRetryAfter, retryCrowded)
	case errors.Is(err, tenants.ErrTooMany):
		c.Response().Header().Set(echo.HeaderRetryAfter, connections.TooMany{}.RetryAfter())
	case problem.Code == codeDatabaseAway:
		c.Response().Header().Set(echo.HeaderRetryAfter, retryDatabase)
	case problem.Code == codeLate:
		c.Response().Header().Set("X-Should-Retry", "false") // the next try would be charged for as well
	case problem.Status < http.StatusInternalServerError && problem.Status != http.StatusRequestTimeout:
		c.Response().Header().Set("X-Should-Retry", "false")
	}
	return c.Blob(problem.Status, echo.MIMEApplicationJSON, codec.Error(problem))
}
