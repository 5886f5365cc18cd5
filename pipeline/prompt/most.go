package prompt

import (
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// Most is the cost of a prompt and its answers, estimated before they are sent: at most so much.
// It is zero for a request that was not read; money is 0 where no price is known.
type Most struct {
	Prompt, Answers          int   // tokens
	PromptMicroUSD, MicroUSD int64 // of the prompt alone, and of everything
}

// usedTokens are how many tokens of a prompt one use of a provider's own tool counts as: what
// it finds is read as part of the prompt.
const usedTokens = 10_000

// mostOutput bounds the length of an answer that is believed, in tokens.
const mostOutput = 10_000_000

// Most returns what the prompt may come to with the dearest of the models that may
// answer it: all of it written to the cache for as long as it asks, every answer as long
// as it may be, and every use of the provider's own tools.
func (p *Prompt) Most() Most {
	if p.Exchange == nil {
		return Most{}
	}
	isLong := p.life().longest == session.LongTTL
	most := p.mostOf(p.account.own, isLong)
	for _, model := range p.account.others {
		other := p.mostOf(model, isLong)
		most.Answers = max(most.Answers, other.Answers)
		most.PromptMicroUSD, most.MicroUSD = max(most.PromptMicroUSD, other.PromptMicroUSD), max(most.MicroUSD, other.MicroUSD)
	}
	return most
}

func (p *Prompt) mostOf(model tokens.Model, isLong bool) Most {
	asked := p.Exchange.Request
	answer := asked.MaxOutput
	if answer <= 0 || model.MaxOutput > 0 && answer > model.MaxOutput {
		answer = model.MaxOutput
	}
	if answer <= 0 {
		answer = model.Window
	}
	price, billing := model.On(p.account.terms(wire.Served{})), p.account.billing
	if price.Output < model.Price.Output { // the provider may not serve what costs less
		price = model.Price
	}
	price.Input = max(price.Input, price.CacheWrite)
	if isLong {
		price.Input = max(price.Input, price.CacheWrite1h)
	}
	most := Most{Prompt: p.Exchange.Report.After, Answers: min(mostOutput, answer) * max(1, billing.Answers)}
	read := most.Prompt
	if billing.Beyond {
		read = max(read, model.InputLimit(0))
	}
	most.PromptMicroUSD = price.MicroUSD(most.Prompt, 0, 0, 0, 0)
	most.MicroUSD = price.MicroUSD(read+billing.Uses*usedTokens, 0, 0, 0, most.Answers)
	if price.Input > 0 {
		most.MicroUSD += int64(billing.Uses) * billing.Fee
	}
	return most
}
