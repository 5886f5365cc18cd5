package ipc

import (
	"encoding/json"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// noticeShare is what the newest notice of each kind may take together, as a share of
// what the prompt may have. The oldest that do not fit fold with their turns. Claude Code
// says in 2,500 tokens where it runs.
const noticeShare = 1.0 / 8

// aroundNotice is about what the messages around a notice take, in o200k tokens.
const aroundNotice = 40

// fate is what becomes of a message when its turn is folded.
type fate int

// The fates of a message.
const (
	foldsAway  fate = iota
	isOutdated      // a later message says better what it says: it is left out at L1 as well
	stays           // it stays as it is, behind the record of its turn
)

// rung says what a plan may do that the rules for cost and form forbid. The rules that
// make a prompt legal hold on every rung.
type rung int

const (
	byTheRules  rung = iota
	foldsPinned      // turns that a person pinned, what the bridge brought back, summaries, notices
	foldsHeld        // item references, unknown roles, tools made known, what precedes a compaction
	foldsTyped       // the message that a person typed last, where it stands in an older turn
)

// lastRung is the highest rung.
const lastRung = foldsTyped

// String returns the rung's name in events.
func (r rung) String() string {
	return [...]string{"", "pinned_turns", "held_messages", "typed_message"}[r]
}

// kept is a message that goes with the record of a turn: one that stays, as it is or what
// of it makes tools known, or one that is written for the record.
type kept struct {
	role     conversation.Role
	raw      json.RawMessage       // of one that stays
	message  *conversation.Message // of one that is written
	tokens   int                   // o200k
	isAnswer bool                  // it says what the assistant said last
}

// findKept decides for each message that is bound by more than its turn what becomes of
// it when its turn is folded. One that the program does not know stays, and nothing but
// itself.
func (p *planner) findKept() error {
	p.fates, p.loads = map[int]fate{}, map[string]int{}
	notices := map[string]bool{}
	budget := int(noticeShare * float64(p.limit))
	var later *conversation.Digest // the next message that is pinned
	lead := conversation.Lead(p.exchange.Digests)
	for i := len(p.exchange.Digests) - 1; i >= lead; i-- {
		digest := &p.exchange.Digests[i]
		switch {
		case digest.Flags.Has(conversation.IsPinned):
			// Of two in a row that say the same, one is enough.
			if later == nil || later.Sum != digest.Sum {
				p.fates[i] = p.holdPinned(digest)
			}
			later = digest
		case digest.Role == conversation.System:
			message, err := p.exchange.Message(i)
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

// holdPinned returns what becomes of a message that must stay as it is.
func (p *planner) holdPinned(digest *conversation.Digest) fate {
	if p.rung >= foldsHeld && digest.Role != conversation.System && !digest.Flags.Has(conversation.IsBoundary) {
		return foldsAway
	}
	return stays
}

// isFarBack reports whether a message does not belong to the newest turn.
func (p *planner) isFarBack(index int) bool {
	return len(p.turns) > 0 && index < p.turns[len(p.turns)-1].From
}

// newestOf returns what becomes of a system message of plain text: it stays if it is the
// newest of one of its kinds. known holds the kinds of later messages.
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
func (p *planner) noteLoads(index int) error {
	message, err := p.exchange.Message(index)
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
func (p *planner) loadsNow(index int, block *conversation.Block) bool {
	return slices.ContainsFunc(block.Tools, func(tool string) bool { return p.loads[tool] == index })
}

// keep makes what stays of a turn when it is folded, in order.
func (p *planner) keep(t *turn) error {
	if t.isKept {
		return nil
	}
	if err := p.read(t); err != nil {
		return err
	}
	wanted := p.wantedOf(t)
	for i, message := range t.messages {
		index := t.From + i
		switch {
		case index < t.verbatim:
		case p.fates[index] == stays:
			t.add(message.Role, p.exchange.Codec.Mark(p.exchange.Body.Element(index), ""), p.exchange.Digests[index].Tokens)
		case len(wanted[i]) > 0:
			raw, err := p.exchange.Codec.Encode(part(message, wanted[i]))
			if err != nil {
				return err
			}
			message.Blocks = wanted[i]
			t.add(message.Role, p.exchange.Codec.Mark(raw, ""), p.counter.Message(message))
		}
	}
	t.isKept = true
	return nil
}

// add keeps a message behind the turn's record.
func (t *turn) add(role conversation.Role, raw json.RawMessage, tokens int) {
	t.kept = append(t.kept, kept{role: role, raw: raw, tokens: tokens})
	t.keptSize += tokens
}

// part returns a message with some of its blocks.
func part(message conversation.Message, blocks []conversation.Block) conversation.Message {
	if len(blocks) < len(message.Blocks) {
		message.Blocks, message.Changed = blocks, true
	}
	return message
}

// wantedOf returns the blocks of a turn's messages that make tools known, with the calls
// that they answer and the thinking that led to these; by the messages' places.
func (p *planner) wantedOf(t *turn) map[int][]conversation.Block {
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
	var thinking []int // messages of the answer so far that hold nothing but thinking
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

// idOf returns what joins a call and its answer: the call's id, or where the provider
// gives none the kind of tool.
func idOf(block *conversation.Block) string {
	if block.ID != "" || block.Kind != conversation.Opaque {
		return block.ID
	}
	return strings.TrimSuffix(strings.TrimSuffix(block.Name, "_output"), "_call")
}
