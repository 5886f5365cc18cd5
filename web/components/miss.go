package components

import "palimpsest/pipeline/cost"

// MissName returns a short name of a cost.Cause, the reason for a provider cache miss, or "–" without one.
func MissName(cause string) string {
	switch cost.Cause(cause) {
	case cost.None:
		return "–"
	case cost.TTLExpiry:
		return "expired"
	case cost.PrefixChangeOurs:
		return "our edit"
	case cost.PrefixChangeClient:
		return "client’s edit"
	case cost.ColdStart:
		return "first request"
	default:
		return "provider"
	}
}
