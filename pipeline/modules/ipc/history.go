package ipc

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/cores"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/modules/ipc/extract"
	"palimpsest/pipeline/session"
)

// history is the messages of an exchange by turns. Each message is read once.
type history struct {
	exchange *pipeline.View
	config   Config
	count    func(conversation.Message) int
	memory   *memory // nil without a memory

	digests []conversation.Digest
	added   map[int]int // o200k tokens of the inserts at messages
	turns   []*turn

	readings []*reading   // of the turns, as they were read first
	memo     *ledger.Memo // of their texts
}

// newHistory returns the history of an exchange without reading a message.
func newHistory(exchange *pipeline.View, count func(conversation.Message) int, memory *memory) *history {
	h := &history{
		exchange: exchange, config: configOf(exchange), count: count, memory: memory,
		digests: exchange.Conversation.Digests, added: addedTo(&exchange.Lane),
	}
	for i, bounds := range exchange.Conversation.Turns {
		t := &turn{Turn: bounds, index: i, verbatim: bounds.From, spared: bounds.To}
		t.floor = h.standing(bounds)
		if covers := h.covered(); bounds.From < covers && covers < bounds.To {
			t.floor, t.spared = min(t.floor, 1), max(covers, h.newestGroup(t)) // it went on after the epoch
		}
		t.original = h.originals(bounds.From, bounds.To)
		h.turns = append(h.turns, t)
	}
	if memory != nil {
		h.memo = memory.texts
	} else {
		h.memo = ledger.NewMemo()
	}
	h.readings = make([]*reading, len(h.turns))
	return h
}

// addedTo returns the o200k tokens of the inserts at each message. They count with messages that
// stay unchanged; any change to a message drops them.
func addedTo(lane *pipeline.Lane) map[int]int {
	added := map[int]int{}
	for i := range lane.Inserts {
		added[lane.Inserts[i].Message] += lane.Inserts[i].Tokens
	}
	return added
}

// standing returns the level of a turn in the current projection.
func (h *history) standing(bounds conversation.Turn) int {
	projection, level := h.exchange.Lane.Projection, 0
	if bounds.From >= h.covered() {
		return 0
	}
	for _, part := range projection.Parts {
		if part.From < bounds.To && part.To > bounds.From {
			level = max(level, part.Level)
		}
	}
	return level
}

// covered returns how many messages the current projection replaces.
func (h *history) covered() int {
	if h.exchange.Lane.Projection == nil {
		return 0
	}
	return h.exchange.Lane.Projection.Covers
}

// newestGroup returns the index of the first message of a turn's newest calls with their results.
func (h *history) newestGroup(t *turn) int {
	digests, start := h.digests, t.To
	for start > t.From && digests[start-1].Role != conversation.Assistant {
		start--
	}
	for start > t.From && digests[start-1].Role == conversation.Assistant {
		start--
	}
	return start
}

// read parses the turn's messages and limits its level if calls and results don't match.
func (h *history) read(t *turn) error {
	if t.reading != nil {
		return nil
	}
	found := cmp.Or(h.readings[t.index], h.memory.of(t.Turn))
	if found == nil {
		found = &reading{from: t.From, messages: make([]conversation.Message, 0, t.To-t.From)}
		for i := t.From; i < t.To; i++ {
			message, err := h.exchange.Conversation.Message(i)
			if err != nil {
				return fmt.Errorf("read turn %d: %w", t.index, err)
			}
			found.messages = append(found.messages, message)
		}
		found.isClosed = isClosed(found.messages)
		if h.memory != nil {
			h.memory.readings[t.Turn] = found
		}
	}
	t.reading, h.readings[t.index] = found, found
	// Leave a call without its one result, or the reverse, to the provider.
	if !found.isClosed {
		t.isFixed, t.deepest = true, min(t.deepest, t.floor)
	}
	return nil
}

// runTurns is how many turns a core takes at a time.
const runTurns = 8

// each runs do for turns, on all cores at once if there are enough turns. do may change only its
// own turn.
func (h *history) each(turns []*turn, do func(*turn) error) error {
	run := runTurns
	if h.memory != nil {
		run = len(turns) + 1 // one core, because the memory is not safe for concurrent use
	}
	if err := cores.Each(len(turns), run, func(i int) error { return do(turns[i]) }); err != nil {
		return fmt.Errorf("plan %d turns: %w", len(turns), err)
	}
	return nil
}

// originals returns the o200k tokens of messages as the client sent them, with the
// inserts at them.
func (h *history) originals(from, to int) int {
	size := 0
	for i, digest := range h.digests[from:to] {
		size += digest.Tokens + h.added[from+i]
	}
	return size
}

// weigh returns the o200k tokens of a part, including its inserts.
func (h *history) weigh(part session.Part) int {
	size := part.Tokens
	for i := part.From; part.Raw == nil && i < part.To; i++ {
		size += h.added[i]
	}
	return size
}

// untouched returns the part of messages that stay as the client sent them.
func (h *history) untouched(from, to, level int) session.Part {
	part := session.Part{From: from, To: to, Level: level, Messages: to - from}
	for _, digest := range h.digests[from:to] {
		part.Tokens += digest.Tokens
	}
	return part
}

// encoded returns the part of a message that was changed at L1 and has so many tokens. It removes
// cache markers, because a client moves its markers on and this one would stay in place.
func (h *history) encoded(index int, message conversation.Message, tokens int) (session.Part, error) {
	raw, err := h.exchange.Conversation.WriteUnmarked(message)
	if err != nil {
		return session.Part{}, fmt.Errorf("encode message %d: %w", index, err)
	}
	return shortPart(index, raw, tokens), nil
}

// shortPart returns the part of a message at L1.
func shortPart(index int, raw json.RawMessage, tokens int) session.Part {
	return session.Part{From: index, To: index + 1, Level: 1, Raw: raw, Tokens: tokens, Messages: 1}
}

func (h *history) countText(text string) int {
	if text == "" {
		return 0
	}
	return h.count(textMessage(conversation.User, text))
}

func textMessage(role conversation.Role, text string) conversation.Message {
	return conversation.Message{
		Role:    role,
		Blocks:  []conversation.Block{{Kind: conversation.Text, Text: text}},
		Changed: true,
	}
}

func (h *history) hasResult(from, to int) bool {
	for _, digest := range h.digests[from:max(from, to)] {
		if digest.Flags.Has(conversation.HasResult) {
			return true
		}
	}
	return false
}

// isTyped reports whether a person typed in a turn.
func (h *history) isTyped(t *turn) bool {
	for _, digest := range h.digests[t.From:t.To] {
		if digest.Role == conversation.User && digest.Flags.Has(conversation.HasTyped) {
			return true
		}
	}
	return false
}

func (h *history) hasMedia(t *turn) bool {
	for _, digest := range h.digests[t.From:t.To] {
		if digest.Flags.Has(conversation.HasMedia) {
			return true
		}
	}
	return false
}

// olderGroups returns the size of the results that cutGroups may cut.
func (h *history) olderGroups() int {
	if len(h.turns) == 0 {
		return 0
	}
	t, size := h.turns[len(h.turns)-1], 0
	if t.deepest < 1 {
		return 0
	}
	from := max(t.From, h.covered()) // messages before it count with the projection
	for _, digest := range h.digests[from:max(from, h.newestGroup(t))] {
		if digest.Flags.Has(conversation.HasResult) {
			size += digest.Tokens
		}
	}
	return size
}

// memory caches the readings of a history's turns.
type memory struct {
	readings map[conversation.Turn]*reading
	texts    *ledger.Memo
}

func newMemory() *memory {
	return &memory{readings: map[conversation.Turn]*reading{}, texts: ledger.NewMemo()}
}

// of returns the reading of a turn; nil if it isn't cached.
func (m *memory) of(turn conversation.Turn) *reading {
	if m == nil {
		return nil
	}
	return m.readings[turn]
}

// reading is the parsed content of a turn, independent of the plan. Expensive parts are computed
// when they are first needed.
type reading struct {
	from     int // index of the first message
	messages []conversation.Message
	isClosed bool

	made  []ledger.Made        // nil until computed
	used  []extract.HashedName // names in its messages; nil until computed
	short []shortForm          // L1 of its messages; nil until computed
}

// shortForm is a message at L1 with its media.
type shortForm struct {
	isMade  bool
	message conversation.Message
	size    int             // o200k tokens
	raw     json.RawMessage // nil until encoded
}

// names returns the names in the turn's messages.
func (r *reading) names() []extract.HashedName {
	if r.used == nil {
		r.used = extract.NamesUsed(r.messages)
	}
	return r.used
}

// calls returns the turn's calls, in order.
func (r *reading) calls() []ledger.Made {
	if r.made == nil {
		r.made = ledger.Calls(r.from, r.messages)
	}
	return r.made
}

// with returns the reading with another message in place of one of its own. Its calls stay the
// same.
func (r *reading) with(place int, message conversation.Message) *reading {
	changed := &reading{from: r.from, isClosed: r.isClosed, made: r.made}
	changed.messages = append(changed.messages, r.messages...)
	changed.messages[place] = message
	return changed
}

// isClosed reports whether each call of the messages has exactly one result and
// each result its call.
func isClosed(messages []conversation.Message) bool {
	calls, results := 0, 0
	for i := range messages {
		for j := range messages[i].Blocks {
			switch messages[i].Blocks[j].Kind {
			case conversation.ToolCall:
				calls++
			case conversation.ToolResult:
				results++
			case conversation.Text, conversation.Thinking, conversation.Media, conversation.Opaque:
			}
		}
	}
	if calls != results || calls == 0 {
		return calls == results
	}
	answered := make(map[string]bool, calls)
	for block := range blocksOf(messages, conversation.ToolCall) {
		if _, again := answered[block.ID]; again {
			return false
		}
		answered[block.ID] = false
	}
	for block := range blocksOf(messages, conversation.ToolResult) {
		if again, isCalled := answered[block.ID]; again || !isCalled {
			return false
		}
		answered[block.ID] = true
	}
	return true
}

// blocksOf yields the blocks of a kind.
func blocksOf(messages []conversation.Message, kind conversation.Kind) iter.Seq[*conversation.Block] {
	return func(yield func(*conversation.Block) bool) {
		for i := range messages {
			for j := range messages[i].Blocks {
				if block := &messages[i].Blocks[j]; block.Kind == kind && !yield(block) {
					return
				}
			}
		}
	}
}
