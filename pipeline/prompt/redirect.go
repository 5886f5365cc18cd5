package prompt

import (
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
)

// Heat returns what is known of the provider's cache of the lane's newest prompt before this one.
func (p *Prompt) Heat() session.CacheState { return p.earlier.heat }

// IsBound reports whether the prompt can be answered for one account only: it goes on with what the
// provider holds, or has something in it that only the account can read that it was written for.
func (p *Prompt) IsBound() bool {
	exchange := p.Exchange
	if exchange == nil || exchange.Request.Refers || exchange.Request.Resumes || exchange.Request.Repeats {
		return exchange != nil
	}
	from := 0
	if projection := exchange.Projection; projection != nil {
		from = projection.Covers
		for _, part := range projection.Parts {
			if part.Raw == nil && isSealed(exchange.Digests[part.From:part.To]) {
				return true
			}
		}
	}
	return isSealed(exchange.Digests[from:])
}

func isSealed(digests []conversation.Digest) bool {
	for i := range digests {
		if digests[i].Flags&conversation.HasOpaque != 0 {
			return true
		}
	}
	return false
}

// Redirect has a prompt that is not sent yet go to another destination than it was written for. Its bytes
// stay; what it costs goes by the prices there, and nothing of it is expected in the cache of an account
// that the lane's newest prompt did not go to.
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
