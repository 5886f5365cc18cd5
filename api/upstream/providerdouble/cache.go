package providerdouble

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	lookback   = 20 // positions that a breakpoint looks back, itself included
	shortTTL   = 5 * time.Minute
	longTTL    = time.Hour
	openaiTTL  = 10 * time.Minute
	openaiStep = 128
	cacheLimit = 1 << 18 // entries after which the stale ones are dropped
)

// cacheUse is the cache's part in a prompt, in reported tokens.
type cacheUse struct {
	read, write, write1h, fresh int
}

// entry is a cached prefix.
type entry struct {
	expires time.Time
	ttl     time.Duration
}

// cacheKey identifies a prefix within an account.
type cacheKey struct {
	account string
	sum     [sha256.Size]byte
}

// promptCache simulates the prompt caches of all accounts.
type promptCache struct {
	mu      sync.Mutex
	entries map[cacheKey]*entry
}

// useBreakpoints caches as Anthropic does: it only writes prefixes that end at a marker, and each marker
// finds prefixes written at most 19 positions before it.
func (c *promptCache) useBreakpoints(account string, list []position, shortest int, now time.Time, reported func(int) int) cacheUse {
	c.mu.Lock()
	defer c.mu.Unlock()
	upTo := cumulative(list)
	hit := c.longestHit(account, list, now)
	use := cacheUse{}
	if hit >= 0 {
		use.read = reported(upTo[hit])
	}
	written, written1h := hit, hit
	for i, p := range list {
		if p.cache == nil || i <= hit || reported(upTo[i]) < shortest {
			continue
		}
		ttl := shortTTL
		if p.cache.hour {
			ttl, written1h = longTTL, i
		}
		c.put(cacheKey{account, p.sum}, ttl, now)
		written = i
	}
	if written > hit {
		use.write = reported(upTo[written]) - use.read
	}
	if written1h > hit {
		use.write1h = reported(upTo[written1h]) - use.read
	}
	if len(list) > 0 {
		use.fresh = reported(upTo[len(list)-1]) - use.read - use.write
	}
	return use
}

// longestHit returns the last position whose prefix is cached and within reach of a marker, and renews it; -1
// if absent.
func (c *promptCache) longestHit(account string, list []position, now time.Time) int {
	for i := range slices.Backward(list) {
		if list[i].cache == nil {
			continue
		}
		for j := i; j >= 0 && j > i-lookback; j-- {
			if found := c.live(cacheKey{account, list[j].sum}, now); found != nil {
				found.expires = now.Add(found.ttl)
				return j
			}
		}
	}
	return -1
}

// usePrefix caches as OpenAI does: any prefix, in steps of 128 tokens from 1024. It keeps prefixes for life;
// if the model paysWrites, the rest of the prompt counts as written.
func (c *promptCache) usePrefix(account string, list []position, model Model, life time.Duration, now time.Time, reported func(int) int) cacheUse {
	c.mu.Lock()
	defer c.mu.Unlock()
	upTo := cumulative(list)
	use := cacheUse{}
	for i, p := range list {
		key := cacheKey{account, p.sum}
		if c.live(key, now) != nil {
			use.read = reported(upTo[i])
		}
		c.put(key, life, now)
	}
	use.read -= use.read % openaiStep
	if use.read < model.MinCache {
		use.read = 0
	}
	if len(list) > 0 {
		use.fresh = reported(upTo[len(list)-1]) - use.read
	}
	if model.PaysWrites && use.read+use.fresh >= model.MinCache {
		use.write, use.fresh = use.fresh, 0
	}
	return use
}

func (c *promptCache) live(key cacheKey, now time.Time) *entry {
	found := c.entries[key]
	if found == nil || !now.Before(found.expires) {
		return nil
	}
	return found
}

func (c *promptCache) put(key cacheKey, ttl time.Duration, now time.Time) {
	if c.entries == nil {
		c.entries = map[cacheKey]*entry{}
	}
	if len(c.entries) >= cacheLimit {
		for stale, e := range c.entries {
			if !now.Before(e.expires) {
				delete(c.entries, stale)
			}
		}
	}
	c.entries[key] = &entry{expires: now.Add(ttl), ttl: ttl}
}

// cumulative returns the o200k tokens up to and including each position.
func cumulative(list []position) []int {
	sums := make([]int, len(list))
	sum := 0
	for i, p := range list {
		sum += p.tokens
		sums[i] = sum
	}
	return sums
}

// position is a place of a prompt where a cached prefix may end.
type position struct {
	sum    [sha256.Size]byte // of everything up to its end
	tokens int               // o200k, of it alone
	cache  *cacheMarker
}

// positions lists a prompt in the order in which it is cached: tools, system,
// messages.
func (r *anthropicRequest) positions() []position {
	var list []position
	running := sha256.Sum256([]byte(r.modelID))
	add := func(label string, sum [sha256.Size]byte, tokens int, cache *cacheMarker) {
		running = chain(running).with(label, sum)
		list = append(list, position{sum: running, tokens: tokens, cache: cache})
	}
	for _, t := range r.tools {
		add("tool", t.sum, t.tokens, t.cache)
	}
	for _, b := range r.system {
		add("system", b.sum, b.tokens, b.cache)
	}
	running = chain(running).with("settings", r.settings())
	for i, m := range r.messages {
		overhead := messageTokens
		for _, b := range m.blocks {
			cache := b.cache
			for _, part := range b.inner {
				if cache == nil {
					cache = part.cache
				}
			}
			if r.isForgotten(i, b) {
				continue
			}
			add(m.role, b.sum, b.tokens+overhead, cache)
			overhead = 0
		}
	}
	if r.automatic != nil && len(list) > 0 && list[len(list)-1].cache == nil {
		list[len(list)-1].cache = r.automatic
	}
	return list
}

// settings is the sum of the members whose change invalidates the cache of the messages.
func (r *anthropicRequest) settings() [sha256.Size]byte {
	thinking, _ := objectMembers(r.members["thinking"])
	output, _ := objectMembers(r.members["output_config"])
	parts := []json.RawMessage{canonical(r.members["tool_choice"]), thinking["type"], thinking["budget_tokens"], output["effort"]}
	joined := []byte{}
	for _, part := range parts {
		joined = append(append(joined, part...), 0)
	}
	return sha256.Sum256(joined)
}

// positionList builds the positions of a prompt without markers.
type positionList struct {
	all     []position
	running chain
}

func newPositions(scope string) *positionList {
	return &positionList{running: sha256.Sum256([]byte(scope))}
}

func (l *positionList) add(label string, sum [sha256.Size]byte, tokens int) {
	l.running = l.running.with(label, sum)
	l.all = append(l.all, position{sum: l.running, tokens: tokens})
}

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
