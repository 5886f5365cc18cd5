package ipc

import (
	"encoding/json"
	"fmt"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// renderer makes the projection of a selection of levels.
type renderer struct {
	history    *history
	protection *protection
	forms      *forms
	lines      *lines
	opening    *opening

	dropped int // the number of first turns whose folded form is left out

	archive archive.Name // of the history that the projection replaces
	isNamed bool         // the projection names the archive already
}

// render returns the projection of the plan; one that covers nothing if no turn is compressed.
func (r *renderer) render() (*session.Projection, error) {
	last := len(r.history.turns) - 1
	for last >= 0 && r.history.turns[last].level == 0 && !r.history.turns[last].isEvicted {
		last--
	}
	if last < 0 {
		return &session.Projection{Chain: r.history.exchange.Conversation.Chain[0]}, nil
	}
	block := r.lines.blockSize(r.history.turns[min(r.dropped, last+1) : last+1])
	if err := r.opening.writeLedger(r.history.turns[:last+1], min(r.dropped, last+1)); err != nil {
		return nil, err
	}
	err := r.history.each(r.history.turns[:last+1], func(t *turn) error {
		if t.level != 1 {
			return nil
		}
		return r.forms.cuts.cutDown(t)
	})
	if err != nil {
		return nil, err
	}
	covers := r.history.turns[last].To
	r.archive, r.isNamed = archive.NameOf(r.history.exchange.Conversation.Chain[covers]), false
	var parts parts
	parts.add(r.history.untouched(0, r.history.turns[0].From, 0))
	var run []*span
	for _, t := range r.history.turns[:last+1] {
		if t.level >= 2 && t.verbatim == t.From {
			run = append(run, t.span())
			continue
		}
		if err := r.fold(&parts, run, block); err != nil {
			return nil, err
		}
		run = nil
		switch {
		case t.level >= 2:
			parts.add(r.history.untouched(t.From, t.verbatim, 0))
			run = append(run, t.span())
		case t.level == 1:
			parts.add(t.cut...)
		case t.isEvicted:
			parts.add(t.stripped...)
		default:
			parts.add(r.history.untouched(t.From, t.To, 0))
		}
	}
	if err := r.fold(&parts, run, block); err != nil {
		return nil, err
	}
	r.nameArchive(parts)
	projection := &session.Projection{
		Number: r.history.exchange.Lane.NextProjection, Covers: covers, Chain: r.history.exchange.Conversation.Chain[covers], Parts: r.opened(parts),
	}
	if projection.Number == 0 {
		projection.Number = 1
		if current := r.history.exchange.Lane.Projection; current != nil {
			projection.Number = current.Number + 1
		}
	}
	return projection, nil
}

// fold adds the parts of a run of adjacent spans: first a record of them as one message of the
// user, then the kept messages of their turns, and one message of the assistant if a message of the
// user follows, so that roles alternate. Each level has a part, all but the last without a message.
// The turns stay at L1 if the record would be larger.
func (r *renderer) fold(parts *parts, run []*span, block int) error {
	if len(run) == 0 {
		return nil
	}
	from, to := run[0].From, run[len(run)-1].To
	behind := r.behind(run)
	answers := len(behind) > 0 && behind[len(behind)-1].isAnswer
	text := r.recorded(run, block, answers)
	record := textMessage(conversation.User, r.frame()+text)
	recordSize := r.history.count(record)
	size := recordSize
	for i := range behind {
		size += behind[i].tokens
	}
	if size >= r.forms.cuts.leastAt1(from, to) {
		shallow, err := r.forms.cuts.shallowSize(run)
		if err != nil {
			return err
		}
		if size >= shallow {
			return r.foldShallow(parts, run)
		}
	}
	if r.opening.text != "" { // the first record opens the projection
		record = textMessage(conversation.User, r.frame()+r.opening.text+text)
		recordSize = r.history.count(record)
		r.opening.text = ""
	}
	r.isNamed = true
	rendered := session.Part{From: from, To: to}
	messages := []kept{}
	if parts.endWithSystem(r.history.digests) {
		messages = append(messages, r.said(conversation.Assistant, answerBelow))
	}
	messages = append(append(messages, kept{role: conversation.User, message: &record, tokens: recordSize}), behind...)
	for i := range messages {
		raw, err := r.encode(&messages[i])
		if err != nil {
			return fmt.Errorf("encode record of messages %d to %d: %w", from, to, err)
		}
		rendered.Join(raw, 1, messages[i].tokens)
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

// The fillers around a record between system messages, each of which must follow a message of the
// user and precede one of the assistant.
const (
	answerBelow = "[The answer is in the notes that follow.]"
	answerAbove = "[The answer is in the notes above.]"
	goesOn      = "[The conversation goes on.]"
)

// behind returns the messages after the record of a run: the kept messages of its turns, in order,
// and the assistant's last text if a message of the user follows.
func (r *renderer) behind(run []*span) []kept {
	var all []kept
	role, hasCall := conversation.User, false
	for _, span := range run {
		for _, stays := range r.history.turns[span.turn].kept {
			if stays.role == conversation.System && role != conversation.User && role != conversation.Tool {
				if role == conversation.System {
					all = append(all, r.said(conversation.Assistant, answerAbove))
				}
				all = append(all, r.said(conversation.User, goesOn))
			}
			all, role = append(all, stays), stays.role
			hasCall = hasCall || role == conversation.Assistant
		}
	}
	if hasCall && r.history.exchange.Request.ThinkingFirst {
		// The next tool loop must not begin with these calls.
		all, role = append(all, r.said(conversation.User, goesOn)), conversation.User
	}
	last := run[len(run)-1]
	if last.To >= len(r.history.digests) || r.history.digests[last.To].Role != conversation.User {
		return all
	}
	switch {
	case last.record.said != "":
		answer := r.said(conversation.Assistant, last.answer())
		answer.isAnswer = true
		return append(all, answer)
	case role == conversation.System:
		return append(all, r.said(conversation.Assistant, answerAbove))
	}
	return all
}

// said returns a message written for a record.
func (r *renderer) said(role conversation.Role, text string) kept {
	message := textMessage(role, text)
	return kept{role: role, message: &message, tokens: r.history.count(message)}
}

// encode returns the bytes of a message that goes with a record.
func (r *renderer) encode(message *kept) (json.RawMessage, error) {
	if message.message == nil {
		return message.raw, nil
	}
	return r.history.exchange.Conversation.Write(*message.message)
}

// foldShallow adds the parts of a run at L1.
func (r *renderer) foldShallow(parts *parts, run []*span) error {
	for _, span := range run {
		t := r.history.turns[span.turn]
		if err := r.forms.cuts.cutDown(t); err != nil {
			return err
		}
		parts.add(t.cut[span.From-t.From:]...)
	}
	return nil
}

// opened moves the records that follow the loop's opener before it.
func (r *renderer) opened(all parts) parts {
	if r.protection.loop < 0 {
		return all
	}
	t := r.history.turns[r.protection.loop]
	all = r.split(r.split(all, t.verbatim), t.To)
	front := session.Part{From: t.verbatim, To: t.To, Level: t.level, Raw: json.RawMessage{}}
	for i := range all {
		if part := &all[i]; part.From >= t.To && part.Level >= 2 && len(part.Raw) > 0 {
			front.Join(part.Raw, part.Messages, part.Tokens)
			part.Raw, part.Messages, part.Tokens = json.RawMessage{}, 0, 0
		}
	}
	if front.Messages == 0 {
		return all
	}
	var moved parts
	for _, part := range all {
		if part.From < t.verbatim || part.To > t.To {
			moved.add(part)
			continue
		}
		for i := part.From; part.Raw == nil && i < part.To; i++ {
			front.Join(r.history.exchange.UnmarkedWithInserts(i), 1, r.history.originals(i, i+1))
		}
		if part.Raw != nil {
			front.Join(part.Raw, part.Messages, part.Tokens)
		}
		if part.To == t.To {
			moved.add(front)
		}
	}
	return moved
}

// split splits the parts at a message, so that no part of the client's own bytes spans it.
func (r *renderer) split(all parts, at int) parts {
	for i, part := range all {
		if part.Raw != nil || part.From >= at || part.To <= at {
			continue
		}
		before, after := r.history.untouched(part.From, at, part.Level), r.history.untouched(at, part.To, part.Level)
		return append(append(append(parts{}, all[:i]...), before, after), all[i+1:]...)
	}
	return all
}

// parts are a projection's parts in order.
type parts []session.Part

// add appends parts. It merges a part of the client's own bytes into the previous part if that one
// precedes it directly at the same level.
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

// endWithSystem reports whether the last message so far is a system message within the
// conversation, which an answer must follow.
func (p *parts) endWithSystem(digests []conversation.Digest) bool {
	if len(*p) == 0 {
		return false
	}
	last := (*p)[len(*p)-1]
	return last.Raw == nil && last.To > conversation.Lead(digests) && digests[last.To-1].Role == conversation.System
}
