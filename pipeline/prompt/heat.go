package prompt

import (
	"bytes"
	"encoding/json"
	"iter"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// planShare is the share of a cache's lifetime after which the next epoch is planned.
const planShare = 0.8

// leastCached is the smallest prompt, in tokens, that providers cache, except for models with a known other
// limit.
const leastCached = 1024

// PlanLater schedules the plan of an epoch at due: for the lane whose last prompt went out at heat.At, unless
// another prompt follows. It never blocks.
type PlanLater func(lane *session.Lane, heat session.CacheState, outline *pipeline.Outline, due time.Time)

// life is how long a request asks its provider to cache parts of its prompt. Zero means no caching.
type life struct {
	longest, shortest time.Duration

	isMarked bool // by markers
}

// with returns the life with another part of the prompt.
func (l life) with(ttl string) life {
	span := session.ShortTTL
	switch ttl {
	case "":
		return l
	case oneHour:
		span = session.LongTTL
	}
	if l.longest == 0 {
		return life{span, span, true}
	}
	return life{max(l.longest, span), min(l.shortest, span), true}
}

// granted returns the cache lifetime of a prompt according to the provider's report. Anthropic reports writes
// for one hour and for five minutes separately.
func (l life) granted(usage wire.Usage) time.Duration {
	wroteShort := usage.CacheWrite > 0 && usage.CacheWrite1h == 0
	if l.isMarked && l.longest == session.LongTTL && l.shortest == l.longest && wroteShort {
		return session.ShortTTL
	}
	return l.longest
}

// life returns the cache lifetime that the prompt asks for: by the markers in the messages, otherwise by the
// one before them. Without markers it is the usual lifetime of a provider that caches automatically.
func (p *Prompt) life() life {
	exchange := p.Exchange
	if !exchange.Codec.Traits().MarksCache {
		return p.automatic()
	}
	asked := life{}.with(p.marked)
	for digest := range p.verbatim() {
		if digest.Markers > 0 {
			asked = asked.with(digest.MarkerTTL)
		}
	}
	if member, found := exchange.Body.Member("cache_control"); found && wire.Text(member, "type") != "" {
		asked = asked.with(timeToLive(member))
	}
	if asked.longest == 0 {
		asked = asked.with(exchange.Request.MarkerTTL)
	}
	return asked
}

// verbatim yields the digests of the messages that the prompt has as the client sent them.
func (p *Prompt) verbatim() iter.Seq[*conversation.Digest] {
	return func(yield func(*conversation.Digest) bool) {
		exchange, from := p.Exchange, 0
		var parts []session.Part
		if projection := exchange.Lane.Projection; projection != nil {
			from, parts = projection.Covers, projection.Parts
		}
		for _, part := range parts {
			for i := part.From; part.Raw == nil && i < part.To; i++ {
				if !yield(&exchange.Conversation.Digests[i]) {
					return
				}
			}
		}
		for i := from; i < len(exchange.Conversation.Digests); i++ {
			if !yield(&exchange.Conversation.Digests[i]) {
				return
			}
		}
	}
}

// timeToLive returns the lifetime of a marker.
func timeToLive(marker []byte) string {
	if wire.Text(marker, "ttl") == oneHour {
		return oneHour
	}
	return fiveMinutes
}

// automatic returns the cache lifetime at a provider that caches automatically, from OpenAI's request
// members. Documentation: https://developers.openai.com/api/docs/guides/prompt-caching.
func (p *Prompt) automatic() life {
	body, cache := p.Exchange.Body, p.Exchange.Model.Cache
	span := cache.Usual(session.ShortTTL)
	if retention, found := body.Member("prompt_cache_retention"); found {
		switch text, _ := wire.String(retention); text {
		case "24h":
			span = session.DayTTL
		case "in_memory":
			span = session.ShortTTL
		}
	}
	isExplicit := false
	if options, found := body.Member("prompt_cache_options"); found {
		span = asksFor(options, span)
		isExplicit = wire.Text(options, "mode") == "explicit"
	}
	if isExplicit {
		p.breakpoints(func(json.RawMessage) { isExplicit = false })
	}
	if isExplicit {
		return life{} // it marks nothing to keep
	}
	asked := life{longest: span, shortest: span}
	p.breakpoints(func(marker json.RawMessage) {
		own := asksFor(marker, span)
		asked.longest, asked.shortest = max(asked.longest, own), min(asked.shortest, own)
	})
	return asked
}

// asksFor returns the lifetime that an object asks for, or otherwise if it has no valid one.
func asksFor(object json.RawMessage, otherwise time.Duration) time.Duration {
	asked, err := time.ParseDuration(wire.Text(object, "ttl"))
	if err != nil || asked <= 0 {
		return otherwise
	}
	return min(asked, session.DayTTL)
}

// breakpoints calls found with each object that marks a part of the prompt for caching. In text, such an
// object would have backslashes before its quotes.
func (p *Prompt) breakpoints(found func(marker json.RawMessage)) {
	name := []byte(`"prompt_cache_breakpoint"`)
	for rest := p.Body; ; {
		at := bytes.Index(rest, name)
		if at < 0 {
			return
		}
		isMember := at == 0 || rest[at-1] != '\\'
		rest = rest[at+len(name):]
		value := bytes.TrimLeft(rest, " \t\r\n:")
		if end := bytes.IndexByte(value, '}'); isMember && end > 0 && value[0] == '{' {
			found(json.RawMessage(value[:end+1]))
		}
	}
}

// wentOut notes that the prompt has gone to the provider.
func (p *Prompt) wentOut(sent *Sent) {
	if p.Lane == nil || p.now == nil {
		return
	}
	exchange := p.Exchange
	sent.cache.life = p.account.life
	sent.cache.heat = session.CacheState{
		At: p.now(), TTL: sent.cache.life.longest, Projection: sent.size.anchor.Projection, Position: sent.Position,
		Tokens: exchange.Report.After, Model: exchange.Request.Model, Key: p.account.key,
	}
	p.Lane.Went(sent.cache.heat)
	config := pipeline.SettingsOf[ipc.Config](exchange.Config)
	if exchange.Request.ReadOnly == "" && config.DeepestLevel > 0 && config.ArchiveToBlob && p.Lane.Kind != session.Side && p.plansAhead && !exchange.Lane.Pinned {
		sent.cache.idle = config.IdleAbove(exchange.Limits.Limit)
		if exchange.Limits.Limit > 0 && 2*exchange.Report.After > sent.cache.idle { // the answer is still to come
			sent.cache.outline = exchange.Outline()
		}
	}
}

// metered learns the state of the lane's cache from a usage, and has an epoch planned for the time when the
// cache expires.
func (w *Writer) metered(sent *Sent, usage wire.Usage) {
	if sent.Lane == nil || sent.cache.heat.At.IsZero() {
		return
	}
	heat := sent.cache.heat
	heat.TTL, heat.Tokens = sent.cache.life.granted(usage), usage.Prompt()
	sent.Lane.Metered(heat, usage, usage.Prompt() >= max(leastCached, sent.size.model.Cache.Min))
	if w.PlanLater == nil || sent.cache.outline == nil || usage.Prompt()+usage.Output <= sent.cache.idle {
		return
	}
	if heat = sent.Lane.Heat(); heat.At.Equal(sent.cache.heat.At) && heat.TTL > 0 {
		w.PlanLater(sent.Lane, heat, sent.cache.outline, heat.Until(planShare))
	}
}
