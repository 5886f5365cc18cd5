package prompt

import (
	"cmp"

	"github.com/google/uuid"
	"github.com/zeebo/xxh3"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// account holds the inputs of a prompt's cost and savings, except its answer.
type account struct {
	exchange cost.Exchange
	before   *cost.Cached // the lane's newest prompt before this one; nil if unknown
	billing  wire.Billing
	key      uuid.UUID      // provider key that the prompt goes out with
	region   string         // region that processes all requests to this destination; "" if unknown
	own      tokens.Model   // model named by the request, at its list price
	isLong   bool           // the model has its long window
	others   []tokens.Model // models that may answer in its place

	overrides tokens.Overrides // for other models that answer
	life      life
}

// account opens the account of a sealed prompt.
func (w *Writer) account(prompt *Prompt) account {
	exchange := prompt.Exchange
	opened := prompt.account
	opened.life = prompt.life()
	opened.exchange = cost.Exchange{
		Prompt: cost.Prompt{
			At: w.Now(), Model: exchange.Request.Model, Fixed: fixedHash(exchange),
			Key: opened.key, Released: prompt.released, Projection: number(&exchange.Lane), Position: len(exchange.Conversation.Digests),
		},
		Price: exchange.Model.Price,
		Sizes: cost.Sizes{
			Before: exchange.Report.Before, After: exchange.Report.After,
			Ahead: int(float64(exchange.Limits.Fixed) * exchange.Limits.Factor), Limit: exchange.Limits.Takes,
		},
		First: prompt.Lane != nil && prompt.earlier.met == 0, Epoch: exchange.Report.Archived > 0,
		Summary:  exchange.Class.Kind == client.AfterCompaction,
		Bypassed: exchange.Request.ReadOnly == bypass,
		Marked:   isMarked(exchange), Implicit: !exchange.Codec.Traits().MarksCache,
		Life: opened.life.longest, Least: exchange.Model.Cache.Min,
	}
	opened.before, opened.exchange.Shared = w.before(prompt)
	if opened.before == nil && !prompt.earlier.heat.At.IsZero() {
		opened.before, opened.exchange.Shared = ownRecord(prompt)
	}
	if opened.before != nil && opened.key != uuid.Nil && opened.before.Key != uuid.Nil && opened.before.Key != opened.key {
		opened.before = nil // the cache of another account
	}
	from, sent := opened.exchange.Shared, 0
	if projection := exchange.Lane.Projection; projection != nil {
		sent = exchange.Limits.Fixed + projection.Tokens() + exchange.Inserted(projection) - exchange.Added(projection.Covers, len(exchange.Conversation.Digests))
		from = max(from, projection.Covers)
	}
	fresh := exchange.Added(from, len(exchange.Conversation.Digests))
	for _, digest := range exchange.Conversation.Digests[from:] {
		fresh += digest.Tokens
	}
	opened.exchange.Replayed = int(float64(sent) * exchange.Limits.Factor)
	opened.exchange.Fresh = int(float64(fresh) * exchange.Limits.Factor)
	return opened
}

// served returns the terms of an answer: as the answer reports them, otherwise as the request asks.
func (a *account) served(said wire.Served) wire.Served {
	asked := a.billing.Served
	asked.Region = cmp.Or(asked.Region, a.region)
	return said.Over(asked)
}

// terms returns the terms of served as the catalog has them.
func (a *account) terms(said wire.Served) tokens.Terms {
	served := a.served(said)
	terms := tokens.Terms{Tier: served.Tier, Region: served.Region}
	if served.Speed != "" && served.Speed != "standard" {
		terms.Tier = served.Speed
	}
	return terms
}

// before returns the newest answered prompt of a prompt's lane, or of the lane that it has just left, and how
// many messages the two share. It returns nil if this process has seen no such prompt.
func (w *Writer) before(prompt *Prompt) (*cost.Cached, int) {
	lane, length := prompt.Lane, len(prompt.Exchange.Conversation.Digests)
	if lane == nil {
		return nil, 0
	}
	if last, known := w.Tracker.Last(lane.ID); known {
		return refreshed(last, prompt.earlier.heat), min(last.Position, length)
	}
	if lane.Ancestry.ForkAt == 0 {
		return nil, 0
	}
	if last, known := w.Tracker.Last(lane.Ancestry.Parent); known {
		return refreshed(last, prompt.earlier.heat), min(last.Position, lane.Ancestry.ForkAt, length)
	}
	return nil, 0
}

// refreshed returns last with its cache lifetime extended by prompts sent since then.
func refreshed(last cost.Cached, heat session.CacheState) *cost.Cached {
	if heat.Model != last.Model || heat.TTL == 0 || heat.At.Before(last.At) {
		return &last
	}
	last.At, last.TTL = heat.At, heat.TTL
	return &last
}

// ownRecord returns the lane's own record of its last prompt, for a process that has seen none of its answers. It
// has no record of the parts before the messages.
func ownRecord(prompt *Prompt) (*cost.Cached, int) {
	heat := prompt.earlier.heat
	last := &cost.Cached{
		Prompt: cost.Prompt{
			At: heat.At, Model: heat.Model, Key: heat.Key, Projection: heat.Projection, Position: heat.Position, Released: prompt.released,
		},
		TTL: heat.TTL,
	}
	if heat.TTL > 0 {
		last.Tokens = heat.Tokens
	}
	return last, min(heat.Position, len(prompt.Exchange.Conversation.Digests))
}

// fixedHash returns a hash of the request's parts before the messages, never 0.
func fixedHash(exchange *pipeline.Exchange) uint64 {
	sum := uint64(1)
	for _, part := range exchange.Request.Fixed {
		sum = sum*31 + xxh3.Hash(part)
	}
	for i := range exchange.Lane.Inserts {
		if exchange.Lane.Inserts[i].Message == session.InSystem {
			sum = sum*31 + xxh3.HashString(exchange.Lane.Inserts[i].Text)
		}
	}
	return max(sum, 1)
}

// isMarked reports whether a request asks for caching by markers.
func isMarked(exchange *pipeline.Exchange) bool {
	if exchange.Request.Markers > 0 {
		return true
	}
	for i := range exchange.Conversation.Digests {
		if exchange.Conversation.Digests[i].Markers > 0 {
			return true
		}
	}
	return false
}

// number returns the number of an exchange's projection, or 0 without one.
func number(lane *pipeline.Lane) int {
	if lane.Projection == nil {
		return 0
	}
	return lane.Projection.Number
}
