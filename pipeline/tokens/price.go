package tokens

import (
	"cmp"
	"math"
)

// Price is what a model's tokens cost, in US dollars for a million of them. In a request
// with more than LongAbove tokens of prompt all of them cost LongInput and LongOutput times as
// much; 0: prompts of every length cost the same. See https://developers.openai.com/api/docs/pricing
// and https://platform.claude.com/docs/en/about-claude/pricing.
type Price struct {
	Input        float64 `json:"input"`
	Output       float64 `json:"output"`
	CacheRead    float64 `json:"cacheRead,omitempty"`
	CacheWrite   float64 `json:"cacheWrite,omitempty"`
	CacheWrite1h float64 `json:"cacheWrite1h,omitempty"` // kept for an hour

	Free bool `json:"free,omitempty"` // they cost nothing

	LongAbove  int     `json:"longAbove,omitempty"`
	LongInput  float64 `json:"longInput,omitempty"` // of the cache, too
	LongOutput float64 `json:"longOutput,omitempty"`
}

// Of returns the price of a request with so many tokens of prompt, whatever its length.
func (p Price) Of(prompt int) Price {
	if p.LongAbove > 0 && prompt > p.LongAbove {
		p.Input, p.CacheRead, p.Output = p.Input*p.LongInput, p.CacheRead*p.LongInput, p.Output*p.LongOutput
		p.CacheWrite, p.CacheWrite1h = p.CacheWrite*p.LongInput, p.CacheWrite1h*p.LongInput
	}
	p.LongAbove, p.LongInput, p.LongOutput = 0, 0, 0
	return p
}

// times returns the price at so many times of it.
func (p Price) times(factor float64) Price {
	p.Input, p.Output, p.CacheRead = p.Input*factor, p.Output*factor, p.CacheRead*factor
	p.CacheWrite, p.CacheWrite1h = p.CacheWrite*factor, p.CacheWrite1h*factor
	return p
}

// dearest is by how much a tier may raise a price that is not listed: no provider asks for more,
// see https://openai.com/api-fast-mode/.
const dearest = 2.5

// Terms are on what terms tokens are processed: the tier of service or speed, and the region, as
// requests and answers name them. Empty: the usual ones.
type Terms struct {
	Tier   string
	Region string
}

// On returns the price of a model's tokens on some terms. A tier that is not listed counts as the
// dearest, but for the usual ones and those that cost less: of these nothing is taken off.
func (m Model) On(terms Terms) Price {
	factor := 1.0
	switch listed, known := m.Tiers[terms.Tier]; {
	case known:
		factor = listed
	case !isUsual(terms.Tier):
		factor = dearest
	}
	if terms.Region != "" {
		factor *= cmp.Or(m.Regions[terms.Region], m.Regions["*"], 1)
	}
	if factor == 1 {
		return m.Price
	}
	return m.Price.times(factor)
}

// isUsual reports whether a tier costs what the list says, or less.
func isUsual(tier string) bool {
	switch tier {
	case "", "auto", "default", "standard", "standard_only", "on_demand", "flex", "batch", "scale":
		return true
	}
	return false
}

// MicroUSD returns what tokens cost in millionths of a US dollar. Each token
// counts in one of the five kinds; input is what came neither from the cache nor
// went into it.
func (p Price) MicroUSD(input, cacheRead, cacheWrite5m, cacheWrite1h, output int) int64 {
	p = p.Of(input + cacheRead + cacheWrite5m + cacheWrite1h)
	sum := p.Input*float64(input) + p.Output*float64(output) + p.CacheRead*float64(cacheRead) +
		p.CacheWrite*float64(cacheWrite5m) + p.CacheWrite1h*float64(cacheWrite1h)
	return int64(math.Round(sum))
}

// complete returns a price without gaps: what a provider has no price of its own
// for costs as much as input. Anthropic's writes for an hour cost twice as much.
func (p Price) complete(provider string) Price {
	if p.CacheRead == 0 {
		p.CacheRead = p.Input
	}
	if p.CacheWrite == 0 {
		p.CacheWrite = p.Input
	}
	if p.CacheWrite1h == 0 {
		p.CacheWrite1h = p.CacheWrite
		if provider == providerAnthropic {
			p.CacheWrite1h = 2 * p.Input
		}
	}
	return p
}
