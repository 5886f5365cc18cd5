package prompt

import (
	"time"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
)

// Update returns the request's addition to its session: the messages not yet on their way to the
// archive. Their bytes share the body's memory. The prompt must have a lane, and the caller must report to it
// whether they have Arrived or are Lost.
func (p *Prompt) Update(now time.Time) session.Update {
	return p.update(now, p.Lane.HandOver(len(p.Exchange.Digests)))
}

// Announce begins to notify other processes of the position and time of a client's request.
func (w *Writer) Announce(prompt *Prompt, client string, now time.Time) session.Announced {
	if prompt.Lane == nil {
		return session.Announced{}
	}
	exchange, lane, position := prompt.Exchange, prompt.Lane, len(prompt.Exchange.Digests)
	update := lane.Place(exchange.Scope, now)
	update.Position, update.Head = position, exchange.Chain[position]
	if lane.Kind != session.Side && lane.Archived() == 0 { // a new session is listed from now on
		update.Title, update.Client, update.Model = title(exchange), client, exchange.Request.Model
	}
	return w.Resolver.Announce(update)
}

// update returns the request's addition to its session, with its messages from index from on.
func (p *Prompt) update(now time.Time, from int) session.Update {
	exchange, lane := p.Exchange, p.Lane
	position := len(exchange.Digests)
	update := lane.Update(exchange.Scope, exchange.Request.Model, now)
	update.Position, update.Head, update.Continued = position, exchange.Chain[position], session.HasHistory(exchange.Digests)
	if lane.Kind != session.Side && !isTitled(exchange.Digests[:min(from, position)]) {
		update.Title = title(exchange)
	}
	if from < position {
		update.Links = exchange.Chain[from : position+1]
	}
	for i := from; i < position; i++ {
		digest := exchange.Digests[i]
		raw, found := exchange.Kept(i)
		update.Redacted = session.Sum(update.Redacted, found)
		update.Entries = append(update.Entries, archive.Entry{
			Index: i, Hash: exchange.KeptHash(i), Role: digest.Role, Flags: digest.Flags, Tokens: digest.Tokens, Raw: raw, Size: len(raw),
		})
	}
	p.Redacted = session.Sum(p.Redacted, update.Redacted)
	return update
}
