package conversation

// Turn is the smallest group of messages that stays together: an assistant message, the typed user messages
// right before it, and all tool results for it. From and To are indices into the list, To excluded.
type Turn struct{ From, To int }

// Turns groups a list, oldest turn first, into its turns. Leading system messages belong to no turn; the
// first turn starts after them. A user message without an answer is a separate turn.
func Turns(messages []Digest) []Turn {
	start := Lead(messages)
	turns := make([]Turn, 0, len(messages)/2+1)
	open, held := Turn{From: start, To: start}, holding{}
	for i := start; i < len(messages); i++ {
		if held.isLeftBy(&messages[i]) {
			turns = append(turns, open)
			open, held = Turn{From: i}, holding{}
		}
		open.To = i + 1
		held.add(&messages[i])
	}
	if open.To > open.From {
		turns = append(turns, open)
	}
	return turns
}

// Lead counts the system messages at the head of a list.
func Lead(messages []Digest) int {
	n := 0
	for n < len(messages) && messages[n].Role == System {
		n++
	}
	return n
}

// holding is the content of the open turn so far.
type holding struct {
	answer    bool // an assistant message
	results   bool // tool results
	reasoning bool
	pending   int // calls whose results are still to come, if each is a separate message
	provider  int // messages with calls that the provider has not answered yet
}

// isLeftBy reports whether a message opens the next turn. Responses may interleave the calls of one answer
// with their outputs, so a turn does not end before every call has its output, and a bare call after an
// output stays with the reasoning it depends on. A provider's answer in a later message belongs to the turn
// of its call.
func (h *holding) isLeftBy(message *Digest) bool {
	if !h.answer || h.pending > 0 {
		return false
	}
	switch message.Role {
	case User:
		return !message.Flags.Has(HasResult)
	case Assistant:
		if h.provider > 0 {
			return false
		}
		bareCall := message.Flags.Has(IsPart) && message.Flags.Has(HasCall)
		return h.results && !(bareCall && h.reasoning)
	default:
		return false
	}
}

// add adds a message to the turn.
func (h *holding) add(message *Digest) {
	if message.Flags.Has(HasSettled) {
		h.provider = max(0, h.provider-1)
	}
	if message.Flags.Has(HasPending) {
		h.provider++
	}
	switch {
	case message.Role == Assistant:
		h.answer = true
		h.reasoning = h.reasoning || message.Flags.Has(HasThinking)
		if message.Flags.Has(IsPart) && message.Flags.Has(HasCall) {
			h.pending++
		}
	case message.Flags.Has(HasResult):
		h.results = true
		h.pending = max(0, h.pending-1)
	}
}
