package ipc

import (
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// span is what is folded of a turn at L2 or L3.
type span struct {
	From, To int
	turn     int // index of the turn
	level    int
	record   *record
	written  *written
}

func (t *turn) span() *span {
	return &span{From: t.verbatim, To: t.To, turn: t.index, level: t.level, record: t.record, written: t.written}
}

// render returns the projection of the plan; one that covers nothing if no turn is
// compressed.
func (p *planner) render() (*session.Projection, error) {
	last := len(p.turns) - 1
	for last >= 0 && p.turns[last].level == 0 && !p.turns[last].isEvicted {
		last--
	}
	if last < 0 {
		return &session.Projection{Chain: p.exchange.Chain[0]}, nil
	}
	block := p.blockSize(p.turns[min(p.truncation.turns, last+1) : last+1])
	if err := p.writeLedger(p.turns[:last+1]); err != nil {
		return nil, err
	}
	err := p.each(p.turns[:last+1], func(t *turn) error {
		if t.level != 1 {
			return nil
		}
		return p.cutDown(t)
	})
	if err != nil {
		return nil, err
	}
	covers := p.turns[last].To
	p.archive, p.isNamed = archive.NameOf(p.exchange.Chain[covers]), false
	var parts parts
	parts.add(p.untouched(0, p.turns[0].From, 0))
	var run []*span
	for _, t := range p.turns[:last+1] {
		if t.level >= 2 && t.verbatim == t.From {
			run = append(run, t.span())
			continue
		}
		if err := p.fold(&parts, run, block); err != nil {
			return nil, err
		}
		run = nil
		switch {
		case t.level >= 2:
			parts.add(p.untouched(t.From, t.verbatim, 0))
			run = append(run, t.span())
		case t.level == 1:
			parts.add(t.cut...)
		case t.isEvicted:
			parts.add(t.stripped...)
		default:
			parts.add(p.untouched(t.From, t.To, 0))
		}
	}
	if err := p.fold(&parts, run, block); err != nil {
		return nil, err
	}
	p.nameArchive(parts)
	projection := &session.Projection{
		Number: p.exchange.NextProjection, Covers: covers, Chain: p.exchange.Chain[covers], Parts: p.opened(parts),
	}
	if projection.Number == 0 {
		projection.Number = 1
		if current := p.exchange.Projection; current != nil {
			projection.Number = current.Number + 1
		}
	}
	return projection, nil
}

// parts are a projection's parts in order.
type parts []session.Part

// add appends parts; one that goes on as the client's own bytes at the same level
// as the last one makes that longer.
func (p *parts) add(more ...session.Part) {
	for _, part := range more {
		if part.From == part.To {
			continue
		}
		if n := len(*p); n > 0 && part.Raw == nil {
			if last := &(*p)[n-1]; last.Raw == nil && last.Level == part.Level {
				last.To, last.Tokens, last.Messages = part.To, last.Tokens+part.Tokens, last.Messages+part.Messages
				continue
			}
		}
		*p = append(*p, part)
	}
}

// fold adds the parts of a run of adjacent spans: a record of them, which is one message
// of the user, behind it what stays of their turns, and one message of the assistant where
// another of the user follows, so that roles take turns. Each level has a part, all but
// the last without a message. The turns stay at L1 if the record would be larger.
func (p *planner) fold(parts *parts, run []*span, block int) error {
	if len(run) == 0 {
		return nil
	}
	from, to := run[0].From, run[len(run)-1].To
	behind := p.behind(run)
	answers := len(behind) > 0 && behind[len(behind)-1].isAnswer
	text := p.recorded(run, block, answers)
	record := textMessage(conversation.User, p.frame()+text)
	recordSize := p.counter.Message(record)
	size := recordSize
	for i := range behind {
		size += behind[i].tokens
	}
	if size >= p.leastAt1(from, to) {
		shallow, err := p.shallowSize(run)
		if err != nil {
			return err
		}
		if size >= shallow {
			return p.foldShallow(parts, run)
		}
	}
	if p.ledger != "" { // the first record opens the projection
		record = textMessage(conversation.User, p.frame()+p.ledger+text)
		recordSize = p.counter.Message(record)
		p.ledger = ""
	}
	p.isNamed = true
	rendered := session.Part{From: from, To: to}
	messages := []kept{}
	if parts.endWithSystem(p.exchange.Digests) {
		messages = append(messages, p.said(conversation.Assistant, answerBelow))
	}
	messages = append(append(messages, kept{role: conversation.User, message: &record, tokens: recordSize}), behind...)
	for i := range messages {
		raw, err := p.encode(&messages[i])
		if err != nil {
			return fmt.Errorf("encode record of messages %d to %d: %w", from, to, err)
		}
		join(&rendered, raw, 1, messages[i].tokens)
	}
	for len(run) > 0 {
		n := sameLevel(run)
		part := session.Part{From: run[0].From, To: run[n-1].To, Level: run[0].level, Raw: json.RawMessage{}}
		if n == len(run) {
			part.Raw, part.Tokens, part.Messages = rendered.Raw, rendered.Tokens, rendered.Messages
		}
		parts.add(part)
		run = run[n:]
	}
	return nil
}

// What is said where a record stands between system messages, each of which must follow a
// message of the user and precede one of the assistant.
const (
	answerBelow = "[The answer is in the notes that follow.]"
	answerAbove = "[The answer is in the notes above.]"
	goesOn      = "[The conversation goes on.]"
)

// behind returns what stands behind the record of a run: what stays of its turns, in
// order, and what the assistant said last where a message of the user follows.
func (p *planner) behind(run []*span) []kept {
	var all []kept
	role, hasCall := conversation.User, false
	for _, span := range run {
		for _, stays := range p.turns[span.turn].kept {
			if stays.role == conversation.System && role != conversation.User && role != conversation.Tool {
				if role == conversation.System {
					all = append(all, p.said(conversation.Assistant, answerAbove))
				}
				all = append(all, p.said(conversation.User, goesOn))
			}
			all, role = append(all, stays), stays.role
			hasCall = hasCall || role == conversation.Assistant
		}
	}
	if hasCall && p.exchange.Request.ThinkingFirst {
		// The tool loop that comes next must not begin with these calls.
		all, role = append(all, p.said(conversation.User, goesOn)), conversation.User
	}
	last := run[len(run)-1]
	if last.To >= len(p.exchange.Digests) || p.exchange.Digests[last.To].Role != conversation.User {
		return all
	}
	switch {
	case last.record.said != "":
		answer := p.said(conversation.Assistant, last.answer())
		answer.isAnswer = true
		return append(all, answer)
	case role == conversation.System:
		return append(all, p.said(conversation.Assistant, answerAbove))
	}
	return all
}

// said returns a message that is written for a record.
func (p *planner) said(role conversation.Role, text string) kept {
	message := textMessage(role, text)
	return kept{role: role, message: &message, tokens: p.counter.Message(message)}
}

// encode returns the bytes of a message that goes with a record.
func (p *planner) encode(message *kept) (json.RawMessage, error) {
	if message.message == nil {
		return message.raw, nil
	}
	return p.exchange.Codec.Encode(*message.message)
}

// endWithSystem reports whether the last message so far is a system message amid the
// conversation, which an answer must follow.
func (p *parts) endWithSystem(digests []conversation.Digest) bool {
	if len(*p) == 0 {
		return false
	}
	last := (*p)[len(*p)-1]
	return last.Raw == nil && last.To > conversation.Lead(digests) && digests[last.To-1].Role == conversation.System
}

// answer returns what the assistant says behind a record that ends with the span.
func (s *span) answer() string {
	if s.level >= 3 {
		return s.record.said
	}
	return s.record.answer()
}

// shallowSize returns the o200k tokens of a run at L1.
func (p *planner) shallowSize(run []*span) (int, error) {
	size := 0
	for _, span := range run {
		t := p.turns[span.turn]
		if err := p.shortenResults(t); err != nil {
			return 0, err
		}
		for _, tokens := range t.sizes[span.From-t.From:] {
			size += tokens
		}
	}
	return size, nil
}

// foldShallow adds the parts of a run at L1.
func (p *planner) foldShallow(parts *parts, run []*span) error {
	for _, span := range run {
		t := p.turns[span.turn]
		if err := p.cutDown(t); err != nil {
			return err
		}
		parts.add(t.cut[span.From-t.From:]...)
	}
	return nil
}

// sameLevel counts the spans at the head of a run that have one level.
func sameLevel(run []*span) int {
	n := 1
	for n < len(run) && run[n].level == run[0].level {
		n++
	}
	return n
}

// recordText returns the text that stands for a run, behind the frame.
func (p *planner) recordText(run []*span, block int, answers bool) string {
	text := strings.Builder{}
	text.Grow(sizeOf(run))
	for len(run) > 0 {
		if entry, spans := run[0].written.of(run); spans > 0 {
			text.WriteString(entry)
			run = run[spans:]
			continue
		}
		n := sameLevel(run)
		if run[0].level == 3 {
			for _, line := range p.blockLines(run[:n], block) {
				text.WriteString(line.text + "\n")
			}
		} else {
			fmt.Fprintf(&text, "[%s, %s–%s]\n", turnRange(run[0].turn, run[n-1].turn), archived(run[0].From), archived(run[n-1].To-1))
			for i, span := range run[:n] {
				if answers && n == len(run) && i == n-1 {
					text.WriteString(span.record.entryBefore())
				} else {
					text.WriteString(span.record.entry())
				}
			}
		}
		run = run[n:]
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// sizeOf returns about how many bytes the entries of a run have.
func sizeOf(run []*span) int {
	const frame = 64
	size := frame
	for _, span := range run {
		if span.level < 3 && span.written == nil {
			size += len(span.record.entry())
		}
	}
	return size
}

// blockLines returns the lines of adjacent spans at L3 for blocks of so many turns.
// Blocks begin at fixed turns, whatever was folded when.
func (p *planner) blockLines(spans []*span, block int) []lineOf {
	var lines []lineOf
	for len(spans) > 0 {
		n := 1
		for n < len(spans) && spans[n].turn/block == spans[0].turn/block {
			n++
		}
		lines = append(lines, p.blockLine(spans[:n]))
		spans = spans[n:]
	}
	return lines
}

// blockSize returns how many turns a block has, so that all L3 text of the lane
// is within its bound.
func (p *planner) blockSize(turns []*turn) int {
	for block := blockTurns; ; block *= 2 {
		size := 0
		for _, line := range p.foldedLines(turns, block) {
			size += line.size
		}
		if size <= p.blockTokens || block >= len(turns) {
			return block
		}
	}
}

// foldedLines returns the L3 lines of each run of turns at L3.
func (p *planner) foldedLines(turns []*turn, block int) []lineOf {
	var all []lineOf
	var run []*span
	for _, t := range turns {
		if t.written != nil {
			continue
		}
		if t.level == 3 && t.verbatim == t.From {
			run = append(run, t.span())
			continue
		}
		if len(run) > 0 {
			all = append(all, p.blockLines(run, block)...)
		}
		run = nil
		if t.level == 3 {
			run = append(run, t.span())
		}
	}
	if len(run) > 0 {
		all = append(all, p.blockLines(run, block)...)
	}
	return all
}
