package components

import "palimpsest/pipeline/cost"

// MissName says in a word or two why the provider's cache did not have what it should: a
// cost.Cause, or "–" where nothing was missed.
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
