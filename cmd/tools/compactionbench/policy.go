package compactionbench

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/replay"
)

// The names of the policies.
const (
	NoCompression  = "no compression"
	Stateless      = "stateless just-enough"
	Masking        = "masking all but 5"
	SelfCompacting = "client compacts itself"
	SelfAt150k     = "client compacts itself at 150k"
	ContextEditing = "context editing at 100k, keeping 3"
	Ours           = "palimpsest"
)

// policy determines the prompts of a conversation.
type policy interface {
	// prompts returns the prompts to send when the conversation has length messages: one prompt, or the
	// request for a summary before it. Lengths only grow.
	prompts(length int) []sending
}

// sending is one prompt without the common start of all prompts, and the tokens of its answer if the policy
// requested it for its own use.
type sending struct {
	forms  []*form
	output float64
}

// charge returns the cost of a policy's prompts for a whole talk, and the last one.
func charge(r *reading, policy policy, prices Prices, pace Pace) (Bill, []*form) {
	var bill Bill
	cache := replay.Cache{TTL: prices.TTL}
	var last []*form
	for request, length := range r.ends {
		at := pace.At(request)
		for _, sent := range policy.prompts(length) {
			pieces := make([]replay.Piece, 1, len(sent.forms)+1)
			pieces[0] = r.fixed
			for _, form := range sent.forms {
				pieces = append(pieces, form.Piece)
			}
			use := cache.Send(at, pieces)
			bill.add(prices, r.tokens(use.Read), r.tokens(use.Write), sent.output)
			if use.Bust {
				bill.Busts++
			}
			bill.measure(float64(use.Read+use.Write) / r.limit)
			last = sent.forms
			at = at.Add(time.Second)
		}
		bill.requested()
		if r.looksBack {
			bill.Held = bill.Held.and(r.held(request, func(name string) bool { return formsHold(last, name) }))
		}
	}
	return bill, last
}

// untouched sends every message unchanged, without a limit.
type untouched struct{ *reading }

func (u untouched) prompts(length int) []sending {
	return []sending{{forms: u.originals(0, length)}}
}

// originals returns unchanged messages.
func (r *reading) originals(from, to int) []*form {
	forms := make([]*form, 0, to-from)
	for i := from; i < to; i++ {
		forms = append(forms, &r.messages[i].form)
	}
	return forms
}

// The parameters of a client that compacts itself, after Claude Code.
const (
	selfShare   = cost.SelfCompacts // of the window, above which it has its history summarized
	selfSummary = cost.SelfSummary  // tokens of the summary
	selfAsking  = 500               // tokens of the request for it

	selfTokens = 150_000 // limit above which it compacts regardless of the window, as providers' own compaction does
)

// selfCompacting is a client that has the model summarize the history, continues from the summary and the
// newest turn, and forgets the rest.
type selfCompacting struct {
	*reading

	most        float64 // maximum size of a prompt, in the model's tokens; 0: selfShare of the window
	compactions int
	summary     *form
	from        int // messages before this index are in the summary
}

func (s *selfCompacting) prompts(length int) []sending {
	whole := s.forms(length)
	size := s.fixed.Tokens + sizeOf(whole)
	newest := s.lastTurn(length)
	most := min(selfShare*s.window, s.limit-selfAsking/s.model.TokensPerO200k)
	if s.most > 0 {
		most = min(most, s.most/s.model.TokensPerO200k)
	}
	if float64(size) <= most || newest <= s.from {
		return []sending{{forms: whole}}
	}
	s.compactions++
	history := append(s.forms(newest), s.made("asking", selfAsking))
	s.from = newest
	s.summary = s.made("summary", selfSummary)
	return []sending{{forms: history, output: selfSummary}, {forms: s.forms(length)}}
}

func (s *selfCompacting) forms(length int) []*form {
	rest := s.originals(s.from, length)
	if s.summary == nil {
		return rest
	}
	return append([]*form{s.summary}, rest...)
}

// made returns a unique message with a number of the model's tokens.
func (s *selfCompacting) made(name string, size float64) *form {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(name), uint64(s.compactions))) //nolint:gosec // counts up from 1
	return &form{Piece: replay.Piece{Sum: sum, Tokens: int(size / s.model.TokensPerO200k)}}
}

// kept is how many of the newest turns the stateless policies leave unchanged.
const kept = 5

// masking replaces every tool result with a placeholder except in the newest turns.
type masking struct {
	*reading

	keeps  int           // turns
	masked map[int]*form // by message
}

func newMasking(r *reading) *masking {
	return &masking{reading: r, keeps: kept, masked: map[int]*form{}}
}

func (m *masking) prompts(length int) []sending {
	forms := m.originals(0, length)
	turns := m.turnsOf(length)
	for _, turn := range turns[:max(0, len(turns)-m.keeps)] {
		for i := turn.From; i < turn.To; i++ {
			if m.messages[i].flags.Has(conversation.HasResult) {
				forms[i] = m.mask(i)
			}
		}
	}
	return []sending{{forms: forms}}
}

func (m *masking) mask(index int) *form {
	if m.masked[index] == nil {
		m.masked[index] = m.withResults(index, func(string) string { return "[Old tool output cleared]" })
	}
	return m.masked[index]
}

// The parameters of a provider's context editing, after Anthropic's clear_tool_uses. It is stateless: a
// prompt above the threshold continues without the results of all tool uses except the newest.
const (
	editedAbove = 100_000 // tokens
	editedKeeps = 3       // messages with results
)

// contextEditing clears old tool results of large prompts.
type contextEditing struct{ masking }

func (c *contextEditing) prompts(length int) []sending {
	forms := c.originals(0, length)
	if c.tokens(c.fixed.Tokens+c.sums[length]) <= editedAbove {
		return []sending{{forms: forms}}
	}
	kept := 0
	for i := length - 1; i >= 0; i-- {
		if !c.messages[i].flags.Has(conversation.HasResult) {
			continue
		}
		if kept++; kept > editedKeeps {
			forms[i] = c.mask(i)
		}
	}
	return []sending{{forms: forms}}
}

// turnsOf returns the turns of the first length messages.
func (r *reading) turnsOf(length int) []conversation.Turn {
	n, _ := slices.BinarySearchFunc(r.turns, length, func(turn conversation.Turn, length int) int { return turn.From - length })
	return r.turns[:n]
}

// withResults returns a message with other tool results.
func (r *reading) withResults(index int, change func(string) string) *form {
	message := r.messages[index].Message
	for i := range message.Blocks {
		if message.Blocks[i].Kind == conversation.ToolResult {
			message.Replace(i, change(message.Blocks[i].Text))
		}
	}
	return r.formOf(message)
}

// formOf returns a changed message in its sent form.
func (r *reading) formOf(message conversation.Message) *form {
	var text []byte
	for i := range message.Blocks {
		text = append(append(text, message.Blocks[i].Text...), '\n')
	}
	return &form{Piece: replay.Piece{Sum: sha256.Sum256(text), Tokens: r.counter.Message(message)}, text: text}
}
