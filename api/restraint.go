package api

import "palimpsest/tenants"

// warningOf tells a client why its request passed without any module; "" if it didn't.
func warningOf(restraint tenants.Restraint) string {
	switch restraint.Reason {
	case tenants.PaymentFailed:
		return "uncompressed: a payment for this workspace failed, see the page Billing"
	case tenants.QuotaUsed:
		return "uncompressed: this month's exchanges of the plan Free are used up, see the page Billing"
	case tenants.Unrestrained:
	}
	return ""
}
