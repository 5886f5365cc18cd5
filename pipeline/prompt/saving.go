package prompt

import (
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// saving is what decides how much an exchange saved.
type saving struct {
	price  tokens.Price
	before int // tokens of the prompt as the client sent it
	after  int // and as it was sent
	fresh  int // tokens at the end that no earlier prompt of the lane held
	epoch  bool
	usage  wire.Usage
}

// microUSD returns what an exchange saved, net of what the rewritten cache cost:
//
//	input not sent + cached input not read − cache rewritten
//
// Input that was not sent counts at the price it would have had: that of a cache
// read where the provider caches this prompt, else that of plain input. In an
// epoch, what the provider had to read anew although an unedited prompt would
// have come from its cache counts at the difference of the two prices.
func (s saving) microUSD() int64 {
	if !s.usage.Reported {
		return 0
	}
	caches := s.usage.CacheRead+s.usage.CacheWrite > 0
	notSent := max(0, s.before-s.after)
	if !caches {
		return s.price.MicroUSD(notSent, 0, 0, 0, 0)
	}
	net := s.price.MicroUSD(0, notSent, 0, 0, 0)
	if !s.epoch {
		return net
	}
	anew := s.usage.Input + s.usage.CacheWrite
	rewritten := max(0, anew-s.fresh)
	write := min(rewritten, s.usage.CacheWrite)
	hour := min(write, s.usage.CacheWrite1h)
	paid := s.price.MicroUSD(rewritten-write, 0, write-hour, hour, 0)
	return net - paid + s.price.MicroUSD(0, rewritten, 0, 0, 0)
}
