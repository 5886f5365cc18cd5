package ipc

import (
	"encoding/json"
	"slices"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// opener returns the index of the turn with which the tool loop that the
// conversation ends in opens, if it must open with thinking; -1 if nothing asks
// for that. To the provider a record is a message of the user, behind which the
// loop begins again: the opener stays and records of later turns go before it.
func (p *planner) opener() int {
	digests := p.exchange.Digests
	last := len(digests) - 1
	for last >= 0 && digests[last].Role == conversation.System {
		last--
	}
	if !p.exchange.Request.ThinkingFirst || last < 0 {
		return -1
	}
	// An answer at the end is one that the provider paused: it goes on from there.
	if digests[last].Role == conversation.User && !digests[last].Flags.Has(conversation.HasResult) {
		return -1
	}
	start := last
	for start > 0 && (digests[start-1].Role != conversation.User || digests[start-1].Flags.Has(conversation.HasResult)) {
		start--
	}
	for i, t := range p.turns {
		if t.To > start && t.floor < 2 && p.opens(t) {
			return i
		}
	}
	return -1
}

// opens reports whether a turn's answer holds thinking, which then comes first.
func (p *planner) opens(t *turn) bool {
	for _, digest := range p.exchange.Digests[t.From:t.To] {
		if digest.Role == conversation.Assistant {
			return digest.Flags.Has(conversation.HasThinking)
		}
	}
	return false
}

// opened puts the records that follow the loop's opener before it.
func (p *planner) opened(all parts) parts {
	if p.loop < 0 {
		return all
	}
	t := p.turns[p.loop]
	all = p.split(p.split(all, t.verbatim), t.To)
	front := session.Part{From: t.verbatim, To: t.To, Level: t.level, Raw: json.RawMessage{}}
	for i := range all {
		if part := &all[i]; part.From >= t.To && part.Level >= 2 && len(part.Raw) > 0 {
			join(&front, part.Raw, part.Messages, part.Tokens)
			part.Raw, part.Messages, part.Tokens = json.RawMessage{}, 0, 0
		}
	}
	if front.Messages == 0 {
		return all
	}
	var moved parts
	for _, part := range all {
		if part.From < t.verbatim || part.To > t.To {
			moved.add(part)
			continue
		}
		for i := part.From; part.Raw == nil && i < part.To; i++ {
			join(&front, p.exchange.Codec.Mark(p.exchange.WithInsertsAt(i), ""), 1, p.originals(i, i+1))
		}
		if part.Raw != nil {
			join(&front, part.Raw, part.Messages, part.Tokens)
		}
		if part.To == t.To {
			moved.add(front)
		}
	}
	return moved
}

// split returns parts of which none reaches across a message that stays as the
// client sent it.
func (p *planner) split(all parts, at int) parts {
	for i, part := range all {
		if part.Raw != nil || part.From >= at || part.To <= at {
			continue
		}
		before, after := p.untouched(part.From, at, part.Level), p.untouched(at, part.To, part.Level)
		return append(append(append(parts{}, all[:i]...), before, after), all[i+1:]...)
	}
	return all
}

// join adds messages to a part.
func join(part *session.Part, raw json.RawMessage, messages, tokens int) {
	part.Raw = slices.Grow(part.Raw, len(raw)+1)
	if len(part.Raw) > 0 {
		part.Raw = append(part.Raw, ',')
	}
	part.Raw = append(part.Raw, raw...)
	part.Messages += messages
	part.Tokens += tokens
}
