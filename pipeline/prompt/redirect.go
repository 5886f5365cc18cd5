package prompt

import (
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
)

// Heat returns the state of the provider's cache for the lane's newest prompt before this one.
func (p *Prompt) Heat() session.CacheState { return p.earlier.heat }

// IsBound reports whether only one account can answer the prompt: it continues state that the provider holds,
// or contains content that only the original account can read.
func (p *Prompt) IsBound() bool {
	exchange := p.Exchange
	if exchange == nil || exchange.Request.Refers || exchange.Request.Resumes || exchange.Request.Repeats {
		return exchange != nil
	}
	for digest := range p.verbatim() {
		if digest.Flags&conversation.HasOpaque != 0 {
			return true
		}
	}
	return false
}

// Redirect sends a prompt to another destination than it was written for. The bytes stay the same. Its cost
// uses the new destination's prices, and no cache hits are expected unless the lane's newest prompt went to
// the same account.
func (w *Writer) Redirect(p *Prompt, to Destination, overrides tokens.Overrides) {
	request := Request{Destination: to, Overrides: overrides, Long: p.account.isLong}
	own := w.provided(request, p.Exchange.Request.Model)
	p.account.key, p.account.region, p.account.own, p.account.overrides = to.Key, to.Region, own, overrides
	for i, name := range p.account.billing.Models {
		p.account.others[i] = w.provided(request, name)
	}
	p.Exchange.Model.Price = own.On(p.account.terms(p.account.billing.Served))
	p.account = w.account(p)
}
