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
	if quota.RequestsPerMinute > 0 {
		set("Ratelimit-Limit-Requests", strconv.Itoa(quota.RequestsPerMinute))
		set("Ratelimit-Remaining-Requests", strconv.Itoa(left.Requests))
	}
	if quota.TokensPerMinute > 0 {
		set("Ratelimit-Limit-Tokens", strconv.Itoa(quota.TokensPerMinute))
		set("Ratelimit-Remaining-Tokens", strconv.Itoa(left.Tokens))
	}
	if quota.Concurrency > 0 {
		set("Ratelimit-Limit-Concurrency", strconv.Itoa(quota.Concurrency))
		set("Ratelimit-Remaining-Concurrency", strconv.Itoa(left.Concurrency))
	}
	if quota.DayMicroUSD > 0 {
		set("Ratelimit-Limit-Day-Usd", tenants.USD(quota.DayMicroUSD))
		set("Ratelimit-Remaining-Day-Usd", tenants.USD(left.DayMicroUSD))
	}
	if quota.MonthMicroUSD > 0 {
		set("Ratelimit-Limit-Month-Usd", tenants.USD(quota.MonthMicroUSD))
		set("Ratelimit-Remaining-Month-Usd", tenants.USD(left.MonthMicroUSD))
	}
}
