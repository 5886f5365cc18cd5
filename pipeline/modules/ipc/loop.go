package ipc

import (
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// runningLoop returns the index of the first message of the tool loop that the
// conversation ends in, if its provider wants such a loop to open with thinking:
// Anthropic does, where thinking is on. ok is false otherwise.
func (p *planner) runningLoop() (start int, ok bool) {
	digests := p.exchange.Digests
	last := len(digests) - 1
	for last >= 0 && digests[last].Role == conversation.System {
		last--
	}
	if p.exchange.Codec.Format() != conversation.Anthropic || last < 0 || !digests[last].Flags.Has(conversation.HasResult) {
		return 0, false
	}
	for start = last; start > 0; start-- {
		before := digests[start-1]
		if before.Role == conversation.User && !before.Flags.Has(conversation.HasResult) {
			break
		}
	}
	for i := start; i < last; i++ {
		if digests[i].Role == conversation.Assistant {
			return start, digests[i].Flags.Has(conversation.HasThinking)
		}
	}
	return 0, false
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

// foldable returns the end of the turns before end that may be folded. A record
// inside the running loop is a message of the user, behind which the loop opens
// anew: with the turn that follows.
func (p *planner) foldable(end int) int {
	if p.inLoop < 0 {
		return end
	}
	for end > 0 && end < len(p.turns) && p.turns[end].From > p.inLoop && !p.opens(p.turns[end]) {
		end--
	}
	return end
}

// closeFold folds as many more turns as it takes for the running loop to open with
// thinking behind the last record. All turns before end may be folded.
func (p *planner) closeFold(end int) error {
	if p.inLoop < 0 {
		return nil
	}
	next := end
	for next > 0 && p.turns[next-1].level < 2 {
		next--
	}
	if next == 0 {
		return nil
	}
	for ; next < end && p.turns[next].From > p.inLoop && !p.opens(p.turns[next]); next++ {
		if err := p.raiseTurn(p.turns[next], 2); err != nil {
			return err
		}
	}
	return nil
}

// loopOpens reports whether the running loop opens with thinking behind the last
// record of a projection.
func (p *planner) loopOpens(projection *session.Projection) bool {
	if p.inLoop < 0 {
		return true
	}
	after := 0 // the last record
	for _, part := range projection.Parts {
		if part.Level >= 2 {
			after = part.To
		}
	}
	if after <= p.inLoop {
		return true
	}
	for _, t := range p.turns {
		if t.From >= after {
			return p.opens(t)
		}
	}
	return true
}

// leaveLoop keeps the running loop's turns from being folded any further.
func (p *planner) leaveLoop() {
	for _, t := range p.turns {
		if t.From >= p.inLoop || t.To > p.inLoop {
			t.deepest = min(t.deepest, max(t.floor, 1))
		}
	}
}
