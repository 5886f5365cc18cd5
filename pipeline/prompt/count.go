package prompt

import (
	"context"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// Count writes the prompt of a request that asks for its size, with the current projection and inserts of its
// lane. It commits no epoch, creates no lane or head, and records no exchange. The report has the sizes. It
// returns an error only if the sender must fix the request: a BodyError.
func (w *Writer) Count(ctx context.Context, request Request) (*Prompt, error) {
	prompt, err := w.take(ctx, request)
	if err != nil {
		return nil, err
	}
	exchange := prompt.Exchange
	if request.Bypass {
		exchange.Request.ReadOnly = bypass
	}
	prompt.guarded(func() { w.glance(ctx, prompt, client.Hint(request.Headers, exchange.Request)) })
	prompt.seal(false, request.Memory)
	return prompt, nil
}

// glance sizes a prompt with the current state of its lane without changing the lane.
func (w *Writer) glance(ctx context.Context, prompt *Prompt, hint session.Hint) {
	exchange := prompt.Exchange
	hint.Kind = laneKind(exchange.Class)
	exchange.Conversation.Digests, exchange.Conversation.Chain = w.Resolver.Follow(ctx, exchange.Scope, hint, exchange.Conversation.Digests, exchange.Conversation.Message)
	asking, cancel := context.WithTimeout(ctx, resolveTimeout)
	prompt.earlier.isLost = true
	glance, err := w.Resolver.Preview(asking, exchange.Scope, exchange.Conversation.Digests, exchange.Conversation.Chain, exchange.Request.Model)
	prompt.earlier.isLost = err != nil
	cancel()
	exchange.Lane.NextProjection, exchange.Lane.Anchor = glance.Next, glance.Anchor
	if exchange.Request.ReadOnly == "" {
		exchange.Lane.Projection = glance.Projection
		exchange.Lane.Inserts = glance.Inserts
	} else {
		prompt.earlier.omits = len(glance.Inserts) > 0
	}
	exchange.Report = exchange.Standing()
	if err != nil {
		exchange.Report.Events = []pipeline.ReportEntry{{Module: "session", Type: "failed", Reason: err.Error()}}
	}
}

// Most is an upper estimate of the cost of a prompt and its answers, made before they are sent. It is zero
// for a request that could not be read. Money is 0 if no price is known.
type Most struct {
	Prompt, Answers          int   // tokens
	PromptMicroUSD, MicroUSD int64 // of the prompt alone, and of everything
}

// usedTokens is the assumed size of one result of a provider's own tool, in tokens. The result is billed as
// part of the prompt.
const usedTokens = 10_000

// mostOutput is the longest plausible answer, in tokens.
const mostOutput = 10_000_000

// Most returns the highest cost of the prompt with the most expensive model that may answer it. It assumes
// that the whole prompt is written to the cache for the requested time, that every answer has its maximum
// length, and that every allowed use of the provider's own tools happens.
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
	if price.Output < model.Price.Output { // the provider may not serve the cheaper model
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
