package api

import (
	"palimpsest/api/limits"
	"palimpsest/tenants"
)

// signLimits sets what the limits of a request's key are and what is left of them.
// The provider's own x-ratelimit-* stand beside them as they came.
func signLimits(set func(name, value string), ticket *limits.Ticket) {
	quota, left := ticket.Quota(), ticket.Left()
	for _, limit := range tenants.QuotaLimits() {
		if most := limit.Of(quota); most > 0 {
			set("Ratelimit-Limit-"+limit.Header, limit.Text(most))
			set("Ratelimit-Remaining-"+limit.Header, limit.Text(limit.Of(left)))
		}
	}
}
