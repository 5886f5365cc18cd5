package api

import "palimpsest/pipeline/prompt"

// mayCost returns what a prompt and its answer cost at most at list prices, in
// millionths of a dollar: as though all of it went into the provider's cache for the
// usual time, and the answer became as long as it may. It is 0 for what was not read
// and for models without a price.
func mayCost(written *prompt.Prompt) int64 {
	exchange := written.Exchange
	if exchange == nil {
		return 0
	}
	model, answer := exchange.Model, exchange.Request.MaxOutput
	if answer <= 0 || model.MaxOutput > 0 && answer > model.MaxOutput {
		answer = model.MaxOutput
	}
	price := model.Price
	price.Input = max(price.Input, price.CacheWrite)
	return price.MicroUSD(exchange.Report.After, 0, 0, 0, answer)
}
