package providerdouble

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"
)

// Tariff holds a double's prices for a model, in US dollars for a million tokens.
type Tariff struct {
	Input, Output, Read, Write, WriteHour float64

	LongAbove             int // tokens of prompt above which the whole request costs a multiple
	LongInput, LongOutput float64

	Tiers   map[string]float64 // multiples, by tier of service or speed
	Regions map[string]float64 // and by region
	Search  float64            // US dollars for each web search
}

// Terms are the terms of an answer; empty if its format or model has no word for them.
type Terms struct {
	Tier, Speed, Region string

	Searches int    // of the web, by the provider itself
	Model    string // the model that answered; "" if it is the requested one
}

// charge returns the cost of an answer, in US dollars.
func (t Tariff) charge(usage Usage) float64 {
	input, output := 1.0, 1.0
	if prompt := usage.Input + usage.CacheRead + usage.CacheWrite; t.LongAbove > 0 && prompt > t.LongAbove {
		input, output = t.LongInput, t.LongOutput
	}
	short := usage.CacheWrite - usage.CacheWrite1h
	sum := input * (float64(usage.Input)*t.Input + float64(usage.CacheRead)*t.Read + float64(short)*t.Write + float64(usage.CacheWrite1h)*t.WriteHour)
	sum += output * float64(usage.Output) * t.Output
	for _, factor := range []float64{t.Tiers[usage.Tier], t.Tiers[usage.Speed], t.Regions[usage.Region]} {
		sum *= cmp.Or(factor, 1)
	}
	return sum/1e6 + float64(usage.Searches)*t.Search
}

// terms returns the terms of an answer: the requested ones, unless the reply overrides them.
func terms(format string, body []byte, reply Reply) Terms {
	asked, _ := document(body)
	served := reply.Terms
	tier, _ := asked.text("service_tier")
	if served.Tier == "" {
		served.Tier = tier
	}
	if isGoogle(format) {
		return served
	}
	if format != Anthropic {
		if served.Tier == "" || served.Tier == "auto" {
			served.Tier = "default"
		}
		return served
	}
	if served.Tier == "" || served.Tier == "auto" || served.Tier == "standard_only" {
		served.Tier = "standard"
	}
	speed, _ := asked.text("speed")
	served.Speed = cmp.Or(served.Speed, speed, "standard")
	region, _ := asked.text("inference_geo")
	served.Region = cmp.Or(served.Region, region, "global")
	return served
}

// openaiLife returns how long a body asks OpenAI to keep its prompt; usual by default.
func openaiLife(body []byte, usual time.Duration) time.Duration {
	asked, _ := document(body)
	life := usual
	if retention, _ := asked.text("prompt_cache_retention"); retention == "24h" {
		life = 24 * time.Hour
	}
	options, _ := objectMembers(asked["prompt_cache_options"])
	if ttl, _ := options.text("ttl"); ttl != "" {
		life, _ = time.ParseDuration(ttl)
	}
	for _, rest := range strings.Split(string(body), `"prompt_cache_breakpoint":`)[1:] {
		var breakpoint struct {
			TTL string `json:"ttl"`
		}
		if json.NewDecoder(strings.NewReader(rest)).Decode(&breakpoint) == nil {
			if own, err := time.ParseDuration(breakpoint.TTL); err == nil {
				life = max(life, own)
			}
		}
	}
	return life
}

// Charge returns the cost of the answer, in US dollars. Tariffs are by the model's id.
func (r *Recorded) Charge(tariffs map[string]Tariff) float64 {
	return tariffs[cmp.Or(r.Usage.Model, r.Model)].charge(r.Usage)
}

// Bill returns the cost of all answers, in US dollars.
func (d *Double) Bill(tariffs map[string]Tariff) float64 {
	sum := 0.0
	for _, request := range d.Requests() {
		sum += request.Charge(tariffs)
	}
	return sum
}
