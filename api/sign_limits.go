package api

import (
	"strconv"

	"palimpsest/api/limits"
	"palimpsest/tenants"
)

// signLimits sets what the limits of a request's key are and what is left of them.
// The provider's own x-ratelimit-* stand beside them as they came.
func signLimits(set func(name, value string), ticket *limits.Ticket) {
	quota, left := ticket.Quota(), ticket.Left()
	count := func(what string, limit, left int) {
		if limit > 0 {
			set("Ratelimit-Limit-"+what, strconv.Itoa(limit))
			set("Ratelimit-Remaining-"+what, strconv.Itoa(left))
		}
	}
	money := func(what string, limit, left int64) {
		if limit > 0 {
			set("Ratelimit-Limit-"+what, tenants.USD(limit))
			set("Ratelimit-Remaining-"+what, tenants.USD(left))
		}
	}
	count("Requests", quota.RequestsPerMinute, left.Requests)
	count("Tokens", quota.TokensPerMinute, left.Tokens)
	count("Concurrency", quota.Concurrency, left.Concurrency)
	money("Day-Usd", quota.DayMicroUSD, left.DayMicroUSD)
	money("Month-Usd", quota.MonthMicroUSD, left.MonthMicroUSD)
}
