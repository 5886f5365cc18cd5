package tokens

import (
	"cmp"
	"math"
)

// Price is the price of a model's tokens, in US dollars per million. In a request with more than LongAbove
// prompt tokens, all tokens cost LongInput and LongOutput times as much; a LongAbove of 0 turns that off. See
// https://developers.openai.com/api/docs/pricing and
// https://platform.claude.com/docs/en/about-claude/pricing.
type Price struct {
	Input        float64 `json:"input"`
	Output       float64 `json:"output"`
	CacheRead    float64 `json:"cacheRead,omitempty"`
	CacheWrite   float64 `json:"cacheWrite,omitempty"`
	CacheWrite1h float64 `json:"cacheWrite1h,omitempty"` // kept for an hour

	Free bool `json:"free,omitempty"` // the tokens cost nothing

	LongAbove  int     `json:"longAbove,omitempty"`
	LongInput  float64 `json:"longInput,omitempty"` // applies to the cache, too
	LongOutput float64 `json:"longOutput,omitempty"`
}

// Of returns the price of a request with the given prompt length. The result no longer depends on the length.
func (p Price) Of(prompt int) Price {
	if p.LongAbove > 0 && prompt > p.LongAbove {
		p.Input, p.CacheRead, p.Output = p.Input*p.LongInput, p.CacheRead*p.LongInput, p.Output*p.LongOutput
		p.CacheWrite, p.CacheWrite1h = p.CacheWrite*p.LongInput, p.CacheWrite1h*p.LongInput
	}
	p.LongAbove, p.LongInput, p.LongOutput = 0, 0, 0
	return p
}

// times returns the price multiplied by a factor.
func (p Price) times(factor float64) Price {
	p.Input, p.Output, p.CacheRead = p.Input*factor, p.Output*factor, p.CacheRead*factor
	p.CacheWrite, p.CacheWrite1h = p.CacheWrite*factor, p.CacheWrite1h*factor
	return p
}

// dearest is the assumed factor of an unlisted tier: no provider charges more, see
// https://openai.com/api-fast-mode/.
const dearest = 2.5

// Terms are the processing terms of tokens: the tier of service or speed, and the region, as requests and
// answers name them. Empty means the usual ones.
type Terms struct {
	Tier   string
	Region string
}

// On returns the price of a model's tokens under some terms. An unlisted tier has the highest factor, except
// usual and cheaper tiers, which have no discount.
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

// isUsual reports whether a tier costs at most the list price.
func isUsual(tier string) bool {
	switch tier {
	case "", "auto", "default", "standard", "standard_only", "on_demand", "flex", "batch", "scale":
		return true
	}
	return false
}

// MicroUSD returns the price of tokens in millionths of a US dollar. Each token counts in one of the five
// kinds; input excludes tokens read from or written to the cache.
func (p Price) MicroUSD(input, cacheRead, cacheWrite5m, cacheWrite1h, output int) int64 {
	p = p.Of(input + cacheRead + cacheWrite5m + cacheWrite1h)
	sum := p.Input*float64(input) + p.Output*float64(output) + p.CacheRead*float64(cacheRead) +
		p.CacheWrite*float64(cacheWrite5m) + p.CacheWrite1h*float64(cacheWrite1h)
	return int64(math.Round(sum))
}

// complete returns a price without gaps: kinds without a price cost the same as input. Anthropic's one-hour
// cache writes cost twice as much.
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
