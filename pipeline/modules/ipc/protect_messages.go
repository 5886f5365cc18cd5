package ipc

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// noticeShare bounds the newest notices of all kinds together, as a share of the prompt's limit.
// The oldest that do not fit fold with their turns. Claude Code's notice about its environment
// takes 2,500 tokens.
const noticeShare = 1.0 / 8

// aroundNotice estimates the messages around a notice, in o200k tokens.
const aroundNotice = 40

// fate is the treatment of a message when its turn is folded.
type fate int

// The fates of a message.
const (
	foldsAway  fate = iota
	isOutdated      // a later message replaces it: it is left out at L1 as well
	stays           // it stays unchanged, behind the record of its turn
)

// findKept decides the fate of each message with rules beyond those of its turn. A message that the
// program does not know stays, but does not protect its turn.
func (p *protection) findKept() error {
	p.fates, p.loads = map[int]fate{}, map[string]int{}
	notices := map[string]bool{}
	budget := int(noticeShare * float64(p.budget.limit))
	var later *conversation.Digest // the next pinned message
	lead := conversation.Lead(p.history.digests)
	for i := len(p.history.digests) - 1; i >= lead; i-- {
		digest := &p.history.digests[i]
		switch {
		case digest.Flags.Has(conversation.IsPinned):
			// Of two equal messages in a row, one is enough.
			if later == nil || later.Sum != digest.Sum {
				p.fates[i] = p.holdPinned(digest)
			}
			later = digest
		case digest.Role == conversation.System:
			message, err := p.history.exchange.Conversation.Message(i)
			if err != nil {
				return err
			}
			if p.fates[i] = newestOf(notices, &message); p.fates[i] == stays && p.isFarBack(i) {
				if budget -= digest.Tokens + aroundNotice; budget < 0 || p.rung >= foldsPinned {
					p.fates[i] = foldsAway
				}
			}
		case digest.Flags.Has(conversation.LoadsTools):
			if err := p.noteLoads(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdPinned returns the fate of a message that must stay unchanged.
func (p *protection) holdPinned(digest *conversation.Digest) fate {
	if p.rung >= foldsHeld && digest.Role != conversation.System && !digest.Flags.Has(conversation.IsBoundary) {
		return foldsAway
	}
	return stays
}

// isFarBack reports whether a message does not belong to the newest turn.
func (p *protection) isFarBack(index int) bool {
	return len(p.history.turns) > 0 && index < p.history.turns[len(p.history.turns)-1].From
}

// newestOf returns the fate of a system message of plain text: it stays if it is the newest of one
// of its kinds. known holds the kinds of later messages.
func newestOf(known map[string]bool, message *conversation.Message) fate {
	newest := isOutdated
	for _, kind := range conversation.NoticeKinds(message) {
		if !known[kind] {
			newest = stays
		}
		known[kind] = true
	}
	return newest
}

// noteLoads notes which message is the last to make each of its tools known.
func (p *protection) noteLoads(index int) error {
	message, err := p.history.exchange.Conversation.Message(index)
	if err != nil {
		return err
	}
	for i := range message.Blocks {
		for _, tool := range message.Blocks[i].Tools {
			if _, known := p.loads[tool]; !known {
				p.loads[tool] = index
			}
		}
	}
	return nil
}

// loadsNow reports whether a block of a message makes a tool known that no later message
// does.
func (p *protection) loadsNow(index int, block *conversation.Block) bool {
	return slices.ContainsFunc(block.Tools, func(tool string) bool { return p.loads[tool] == index })
}

// wantedOf returns the blocks of a turn's messages that make tools known, with the calls
// that they answer and the thinking that led to these; by the messages' places.
func (p *protection) wantedOf(t *turn) map[int][]conversation.Block {
	if p.rung >= foldsHeld {
		return nil
	}
	calls, found := map[string]bool{}, false
	for i := range t.messages {
		for j := range t.messages[i].Blocks {
			if block := &t.messages[i].Blocks[j]; p.loadsNow(t.From+i, block) {
				calls[idOf(block)], found = true, true
			}
		}
	}
	if !found {
		return nil
	}
	wanted := map[int][]conversation.Block{}
	var thinking []int // messages of the answer so far with only thinking
	for i := range t.messages {
		message := &t.messages[i]
		var blocks, thoughts []conversation.Block
		for j := range message.Blocks {
			switch block := &message.Blocks[j]; {
			case block.Kind == conversation.Thinking:
				thoughts = append(thoughts, *block)
			case p.loadsNow(t.From+i, block), isCall(block) && calls[idOf(block)]:
				blocks = append(blocks, *block)
			}
		}
		switch {
		case len(blocks) > 0:
			for _, before := range thinking {
				wanted[before] = t.messages[before].Blocks
			}
			wanted[i], thinking = append(thoughts, blocks...), nil
		case message.Role != conversation.Assistant:
			thinking = nil
		case len(thoughts) > 0 && len(thoughts) == len(message.Blocks):
			thinking = append(thinking, i)
		}
	}
	return wanted
}

// isCall reports whether a block calls a tool.
func isCall(block *conversation.Block) bool {
	return block.Kind == conversation.ToolCall || block.Kind == conversation.Opaque && !isAnswer(block)
}

// isAnswer reports whether a block of the provider's answers a call.
func isAnswer(block *conversation.Block) bool {
	return strings.HasSuffix(block.Name, "_result") || strings.HasSuffix(block.Name, "_output") || strings.HasSuffix(block.Name, "_listing")
}

// idOf returns the key that joins a call and its answer: the call's id, or the kind of tool if the
// provider sends no id.
func idOf(block *conversation.Block) string {
	if block.ID != "" || block.Kind != conversation.Opaque {
		return block.ID
	}
	return strings.TrimSuffix(strings.TrimSuffix(block.Name, "_output"), "_call")
}

// leavesOut reports whether L1 leaves a message out: a notice replaced by a later one, between a
// message of the user and the next message.
func (p *protection) leavesOut(t *turn, index int) bool {
	return p.fates[index] == isOutdated && !t.isFixed && index < t.spared && index > 0 && p.history.digests[index-1].Role != conversation.Assistant
}

// keptOf estimates the o200k tokens of the messages of a turn that stay when it is folded.
func (p *protection) keptOf(t *turn) int {
	sum := 0
	for i := t.verbatim; i < t.To; i++ {
		if p.fates[i] == stays || p.history.digests[i].Flags.Has(conversation.LoadsTools) {
			sum += p.history.digests[i].Tokens
		}
	}
	return sum
}
