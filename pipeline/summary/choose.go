package summary

import "palimpsest/pipeline/tokens"

// The ways to ask a model.
const (
	FormOwn    = "own"    // a separate request, with the turns shortened
	FormCached = "cached" // continues the lane's last prompt
)

// offer is the cost of asking in one form.
type offer struct {
	model  tokens.Model
	input  int // tokens of the prompt
	cached int // of these read from the provider's cache
	output int
}

// microUSD returns the price of an offer. Without a published price, cached input counts a tenth
// and output five times as much as input, as with all providers that publish theirs.
func (o offer) microUSD() float64 {
	price := o.model.Price
	if price.Input == 0 {
		price = tokens.Price{Input: 1, CacheRead: 0.1, Output: 5}
	}
	price = price.Of(o.input)
	return price.Input*float64(o.input-o.cached) + price.CacheRead*float64(o.cached) + price.Output*float64(o.output)
}

// ridesCheaper reports whether continuing the cached prompt costs less than a separate request. A
// model without a published price is compared only with itself.
func ridesCheaper(base, own offer) bool {
	if base.cached == 0 {
		return false // no known cache entry
	}
	if (base.model.Price.Input == 0) != (own.model.Price.Input == 0) || base.model.Price.Input == 0 && base.model.Name != own.model.Name {
		return false
	}
	return base.microUSD() < own.microUSD()
}
