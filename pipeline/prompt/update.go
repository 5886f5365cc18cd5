package prompt

import (
	"strings"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// maxTitle bounds a session's title, in characters.
const maxTitle = 120

// Update returns what the request adds to its session: the messages that are not
// yet on their way to the archive. Their bytes share the body's memory. The
// prompt must have a lane, which is to be told whether they have Arrived or are
// Lost.
func (p *Prompt) Update(now time.Time) session.Update {
	return p.update(now, p.Lane.HandOver(len(p.Exchange.Digests)))
}

// Announce begins to tell other processes where the request of a client ends, at a time.
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

// update returns what the request adds to its session with its messages from index
// from on.
func (p *Prompt) update(now time.Time, from int) session.Update {
	exchange, lane := p.Exchange, p.Lane
	position := len(exchange.Digests)
	update := lane.Update(exchange.Scope, exchange.Request.Model, now)
	update.Position, update.Head, update.Continued = position, exchange.Chain[position], session.HasHistory(exchange.Digests)
	if from == 0 && lane.Kind != session.Side {
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

// title returns the start of the first text that a person typed.
func title(exchange *pipeline.Exchange) string {
	for i, digest := range exchange.Digests {
		if digest.Role != conversation.User || !digest.Flags.Has(conversation.HasTyped) {
			continue
		}
		message, err := exchange.Message(i)
		if err != nil {
			return ""
		}
		for _, block := range message.Blocks {
			if block.Kind == conversation.Text && conversation.IsTyped(block.Text) {
				return shorten(strings.TrimSpace(conversation.WithoutReminders(block.Text)))
			}
		}
	}
	return ""
}

// shorten returns the first line of text, at most maxTitle characters of it.
func shorten(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if runes := []rune(text[:min(len(text), 4*maxTitle+4)]); len(runes) > maxTitle {
		return string(runes[:maxTitle-1]) + "…"
	}
	return text
}
