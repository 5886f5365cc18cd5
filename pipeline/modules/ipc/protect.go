package ipc

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// bridge is the module whose inserts hold the facts that a client's own summary has lost. No other
// part of the prompt has them.
const bridge = "compaction-bridge"

// rung selects the rules for cost and form that a plan may break. The rules that make a prompt
// legal hold on every rung.
type rung int

const (
	byTheRules  rung = iota
	foldsPinned      // turns that a person pinned, the bridge's inserts, summaries, notices
	foldsHeld        // item references, unknown roles, tools made known, messages before a compaction
	foldsTyped       // the message that a person typed last, if it is in an older turn
)

// lastRung is the highest rung.
const lastRung = foldsTyped

// String returns the rung's name in events.
func (r rung) String() string {
	return [...]string{"", "pinned_turns", "held_messages", "typed_message"}[r]
}

// protection decides which messages of a history must stay, by the rules of a rung.
type protection struct {
	history *history
	budget  *budget
	rung    rung // which rules for cost and form may be broken

	latest   int // the message that a person typed last, or -1
	attached int // the newest message of a person with an attachment, or -1
	loop     int // the turn that opens a tool loop that must open with thinking, or -1

	fates map[int]fate   // of messages with rules beyond those of their turn
	loads map[string]int // the last message that makes a tool known
}

// protect decides how deep each turn of a history may go, without reading a message.
func protect(history *history, budget *budget, rung rung) *protection {
	p := &protection{
		history: history, budget: budget, rung: rung,
		latest: latestTyped(history.digests), attached: latestAttached(history.digests),
	}
	boundary := p.boundary()
	for i, t := range history.turns {
		t.deepest = max(t.floor, p.deepest(t.Turn, boundary))
		t.isFixed = t.deepest == 0
		p.keepPinned(t)
		isNewest := i == len(history.turns)-1
		if p.latest >= t.From && p.latest < t.To && (rung < foldsTyped || isNewest) {
			p.keepUpTo(t, p.latest)
		}
	}
	if p.loop = p.opener(); p.loop >= 0 {
		opener := history.turns[p.loop]
		opener.deepest = min(opener.deepest, 1)
	}
	return p
}

// boundary returns the index of the last message that replaces a history only the provider knows;
// -1 without one. Messages before it may go on the last rungs because the provider does not need
// them.
func (p *protection) boundary() int {
	if p.rung >= foldsHeld {
		return -1
	}
	for i, digest := range slices.Backward(p.history.digests) {
		if digest.Flags.Has(conversation.IsBoundary) {
			return i
		}
	}
	return -1
}

// deepest returns the level that a turn may reach, given its messages. It is 0 up to and including
// a provider's own compaction, and for a call without its result. Otherwise the turn may fold, and
// its protected messages stay behind its record.
func (p *protection) deepest(bounds conversation.Turn, boundary int) int {
	if bounds.From <= boundary {
		return 0
	}
	var flags conversation.Flags
	for _, digest := range p.history.digests[bounds.From:bounds.To] {
		flags |= digest.Flags
	}
	if flags.Has(conversation.HasCall) && !flags.Has(conversation.HasResult) {
		return 0
	}
	return p.history.config.DeepestLevel
}

// keepPinned keeps a turn as the client sent it if one of its messages is pinned. If it was
// compressed before, the epoch restores it.
func (p *protection) keepPinned(t *turn) {
	if p.rung < foldsPinned && p.isPinned(t.Turn) {
		t.floor, t.deepest, t.isFixed = 0, 0, true
	}
}

// isPinned reports whether a message of a turn is pinned, or has an insert that must stay.
func (p *protection) isPinned(bounds conversation.Turn) bool {
	at, _ := slices.BinarySearch(p.history.exchange.Lane.Pins, bounds.From)
	return at < len(p.history.exchange.Lane.Pins) && p.history.exchange.Lane.Pins[at] < bounds.To || slices.ContainsFunc(p.history.exchange.Lane.Inserts, func(insert session.Insert) bool {
		return insert.Module == bridge && bounds.From <= insert.Message && insert.Message < bounds.To
	})
}

// keepUpTo keeps the turn's messages up to and including the one at index unchanged. If that
// message has results, it answers an assistant's calls: then the turn may only reach L1, which
// keeps the typed text as well.
func (p *protection) keepUpTo(t *turn, index int) {
	if p.history.digests[index].Flags.Has(conversation.HasResult) {
		t.deepest = min(t.deepest, max(t.floor, 1))
		return
	}
	t.verbatim = index + 1
	t.front = p.history.originals(t.From, t.verbatim)
}

// latestTyped returns the index of the newest message that a person typed.
func latestTyped(digests []conversation.Digest) int {
	for i, digest := range slices.Backward(digests) {
		if digest.Role == conversation.User && digest.Flags.Has(conversation.HasTyped) {
			return i
		}
	}
	return -1
}

// latestAttached returns the index of the newest message of a person that has media.
func latestAttached(digests []conversation.Digest) int {
	for i, digest := range slices.Backward(digests) {
		if digest.Role == conversation.User && digest.Flags.Has(conversation.HasMedia) && !digest.Flags.Has(conversation.HasResult) {
			return i
		}
	}
	return -1
}

// hold reads the messages that must stay for their content.
func (p *protection) hold() error {
	if err := p.findKept(); err != nil {
		return err
	}
	return p.keepSummary()
}

// keepSummary keeps a client's summary of a history that it has compacted itself, unless it fills a
// large part of the window, because no other part of the prompt has its content.
func (p *protection) keepSummary() error {
	if len(p.history.turns) == 0 || p.rung >= foldsPinned {
		return nil
	}
	first := p.history.turns[0]
	size := 0
	for i := first.From; i < first.To && p.history.digests[i].Role == conversation.User; i++ {
		message, err := p.history.exchange.Conversation.Message(i)
		if err != nil {
			return err
		}
		size += p.history.digests[i].Tokens
		for _, block := range message.Blocks {
			if block.Kind == conversation.Text && isSummary(block.Text) && size < p.budget.limit/8 && i >= first.verbatim {
				p.keepUpTo(first, i)
			}
		}
	}
	return nil
}

// isSummary reports whether a user's text is a client's summary of a history that it has compacted
// itself.
func isSummary(text string) bool {
	for _, marker := range []string{
		"This session is being continued from a previous conversation",
		"The conversation history before this point was compacted into the following summary",
		"Another language model started to solve this problem and produced a summary",
		"Earlier context was compacted. Summary of your actions",
		"## Conversation Summary",
	} {
		if strings.Contains(text, marker) {
			return true
		}
	}
	return false
}

// isLatest reports whether a message is the last one that a person typed, or an attachment after
// it.
func (p *protection) isLatest(index int) bool {
	return index == p.latest || index == p.attached && p.attached > p.latest
}

// evictable returns the turns that may lose their media, the oldest first. The newest one may only
// if the provider itself refused the body.
func (p *protection) evictable() []*turn {
	if len(p.history.turns) == 0 || p.history.exchange.Limits.MaxBytes > 0 {
		return p.history.turns
	}
	return p.history.turns[:len(p.history.turns)-1]
}

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
