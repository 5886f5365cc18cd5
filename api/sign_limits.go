package api

import (
	"palimpsest/api/limits"
	"palimpsest/tenants"
)

// signLimits sets the limits of a request's key and the remaining amounts. The provider's own x-ratelimit-*
// headers remain unchanged.
func signLimits(set func(name, value string), ticket *limits.Ticket) {
	quota, left := ticket.Quota(), ticket.Left()
	for _, limit := range tenants.QuotaLimits() {
		if most := limit.Of(quota); most > 0 {
			set("Ratelimit-Limit-"+limit.Header, limit.Text(most))
			set("Ratelimit-Remaining-"+limit.Header, limit.Text(limit.Of(left)))
		}
	}
}
