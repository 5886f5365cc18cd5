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

// Seen returns what the request adds to its session: the messages that are not
// known to be in the archive. Their bytes share the body's memory. The prompt
// must have a lane.
func (p *Prompt) Seen(now time.Time) session.Seen {
	exchange, lane := p.Exchange, p.Lane
	position := len(exchange.Digests)
	seen := session.Seen{
		Scope: exchange.Scope, Session: lane.Session, Lane: lane.ID, Parent: lane.Parent, ForkAt: lane.ForkAt, Inherited: lane.Inherited,
		Name: lane.Name, Source: lane.Source, Model: exchange.Request.Model, At: now,
		Position: position, Head: exchange.Chain[position],
	}
	if p.archived == 0 {
		seen.Title = title(exchange)
	}
	for i := p.archived; i < position; i++ {
		digest, raw := exchange.Digests[i], exchange.Body.Element(i)
		seen.Entries = append(seen.Entries, archive.Entry{
			Index: i, Hash: digest.Sum, Role: digest.Role, Tokens: digest.Tokens, Raw: raw, Size: len(raw),
		})
	}
	return seen
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
	if runes := []rune(text); len(runes) > maxTitle {
		return string(runes[:maxTitle-1]) + "…"
	}
	return text
}
