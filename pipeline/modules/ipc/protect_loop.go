package ipc

import "palimpsest/pipeline/conversation"

// opener returns the index of the turn that opens the tool loop at the end of the conversation, if
// the loop must open with thinking; otherwise -1. To the provider a record is a message of the
// user, after which the loop begins again. Therefore the opener stays, and records of later turns
// go before it.
func (p *protection) opener() int {
	digests := p.history.digests
	last := len(digests) - 1
	for last >= 0 && digests[last].Role == conversation.System {
		last--
	}
	if !p.history.exchange.Request.ThinkingFirst || last < 0 {
		return -1
	}
	// An answer at the end was paused by the provider, and continues from there.
	if digests[last].Role == conversation.User && !digests[last].Flags.Has(conversation.HasResult) {
		return -1
	}
	start := last
	for start > 0 && (digests[start-1].Role != conversation.User || digests[start-1].Flags.Has(conversation.HasResult)) {
		start--
	}
	for i, t := range p.history.turns {
		if t.To > start && t.floor < 2 && p.opens(t) {
			return i
		}
	}
	return -1
}

// opens reports whether a turn's answer holds thinking, which then comes first.
func (p *protection) opens(t *turn) bool {
	for _, digest := range p.history.digests[t.From:t.To] {
		if digest.Role == conversation.Assistant {
			return digest.Flags.Has(conversation.HasThinking)
		}
	}
	return false
}
