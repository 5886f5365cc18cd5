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
