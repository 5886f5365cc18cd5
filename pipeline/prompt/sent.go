package prompt

import (
	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// Sent is what is still needed of a prompt once it has been sent. It holds
// nothing of the body, so that the memory is free while the answer streams.
type Sent struct {
	Lane     *session.Lane // nil: the store failed
	Scope    session.Scope
	Head     conversation.Hash // link of the history after the request's last message
	Position int               // messages in the request

	// AsksUsage is the prompt's AsksUsage.
	AsksUsage bool

	model    tokens.Model
	anchor   session.Anchor // but for the tokens that the provider will report
	estimate int            // o200k tokens of the prompt as sent
	limit    int            // tokens that it might have; 0: nobody knows
	saving   saving

	heat    session.Heat
	life    life
	idle    int               // tokens above which an epoch may be planned ahead
	outline *pipeline.Outline // what to plan it of; nil: none
}

// Money is what an exchange cost and saved at list prices, in millionths of a
// US dollar. Net can be negative.
type Money struct{ Cost, Net int64 }

// Sent notes that the prompt has been sent and returns what is needed from then on.
func (p *Prompt) Sent() Sent {
	exchange := p.Exchange
	length := len(exchange.Digests)
	sent := Sent{
		Lane: p.Lane, Scope: exchange.Scope, Head: exchange.Chain[length], Position: length, AsksUsage: p.AsksUsage,
		model: exchange.Model, estimate: exchange.Estimate(exchange.Projection), limit: exchange.Limit,
		anchor: session.Anchor{Position: length, Fixed: exchange.Fixed, Model: exchange.Request.Model},
		saving: saving{
			price: exchange.Model.Price, before: exchange.Report.Before, after: exchange.Report.After, fresh: exchange.Fresh(),
			epoch: exchange.Report.Archived > 0,
		},
	}
	if exchange.Projection != nil {
		sent.anchor.Projection = exchange.Projection.Number
	}
	p.wentOut(&sent)
	return sent
}

// Answered learns from the usage that the provider reported for a prompt and
// returns what the exchange cost and saved.
func (w *Writer) Answered(sent Sent, answer wire.Answer) Money {
	usage := answer.Usage
	if !usage.Reported || usage.Prompt() == 0 {
		return Money{}
	}
	sent.anchor.Tokens = usage.Prompt()
	if sent.Lane != nil {
		sent.Lane.Reported(sent.anchor)
	}
	w.metered(&sent, usage)
	if !answer.Reduced { // or the count is of less than was estimated
		w.Calibration.Observe(sent.Scope.Workspace, sent.model, sent.estimate, usage.Prompt())
	}
	sent.saving.usage = usage
	hour := usage.CacheWrite1h
	return Money{
		Cost: sent.model.Price.MicroUSD(usage.Input, usage.CacheRead, usage.CacheWrite-hour, hour, usage.Output),
		Net:  sent.saving.microUSD(),
	}
}
