package ipc

import (
	"bytes"
	"context"
	"encoding/json"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// lightAttachment is the size, in bytes as sent, below which an attachment is not
// worth a placeholder: the URL or the id of a file.
const lightAttachment = 1 << 10

// leastLighter is the part of the bytes that a prompt may have, as a divisor, that
// an epoch for their sake must free at least.
const leastLighter = 10

// maxBytes returns how many bytes a prompt may have; 0: any number.
func maxBytes(exchange *pipeline.Exchange) int {
	most := configOf(exchange).MaxBytes
	if said := exchange.MaxBytes; said > 0 && (most == 0 || said < most) {
		return said
	}
	return most
}

// isHeavy reports whether a prompt has more bytes than it may have.
func isHeavy(exchange *pipeline.Exchange) bool {
	most := maxBytes(exchange)
	// Nothing ever grows: a body that is small enough needs no adding up.
	return most > 0 && len(exchange.Body.Body()) > most && exchange.Bytes(exchange.Projection) > most
}

// mayLighten reports whether an epoch can free enough bytes, without reading a
// message.
func (p *planner) mayLighten() bool {
	text := float64(p.exchange.Bytes(p.exchange.Projection)) * float64(p.potential()) / float64(p.now)
	return p.ballast()+int(text) >= maxBytes(p.exchange)/leastLighter
}

// isLatest reports whether a message is the last one that a person typed, or what
// was attached behind it.
func (p *planner) isLatest(index int) bool {
	return index == p.latest || index == p.attached && p.attached > p.latest
}

// ballast returns how many bytes of media could be taken out, at most.
func (p *planner) ballast() int {
	ballast := 0
	for _, t := range p.evictable() {
		for i := t.From; i < t.To; i++ {
			if p.exchange.Digests[i].Flags.Has(conversation.HasMedia) && !p.isLatest(i) {
				ballast += len(p.exchange.Body.Element(i))
			}
		}
	}
	if projection := p.exchange.Projection; projection != nil {
		for _, part := range projection.Parts {
			for i := part.From; part.Raw != nil && i < part.To; i++ {
				if p.exchange.Digests[i].Flags.Has(conversation.HasMedia) && !p.isLatest(i) {
					ballast -= len(p.exchange.Body.Element(i))
				}
			}
			if part.Raw != nil && part.Level < 2 {
				ballast += len(part.Raw)
			}
		}
	}
	return ballast
}

// evictable returns the turns that may lose their media, the oldest first. The
// newest one may only where the provider itself refused the body.
func (p *planner) evictable() []*turn {
	if len(p.turns) == 0 || p.exchange.MaxBytes > 0 {
		return p.turns
	}
	return p.turns[:len(p.turns)-1]
}

// lighten brings a plan's prompt under its bytes: it takes media out, the oldest
// first, until half of what is allowed is left, so that there is room for a while.
// Where media are not what weighs, it plans again for as much fewer tokens.
func (p *planner) lighten(ctx context.Context, projection *session.Projection) (*session.Projection, error) {
	most := maxBytes(p.exchange)
	projection, err := p.evict(projection, most/2)
	if err != nil {
		return nil, err
	}
	size := p.exchange.Bytes(projection)
	if size <= most {
		return projection, nil
	}
	tokens := float64(p.exchange.Estimate(projection)) / float64(size)
	p.goal = min(p.goal, int(tokens*float64(most)/2))
	p.high = min(p.high, int(tokens*float64(most)))
	p.truncation = newTruncation()
	for _, t := range p.turns {
		t.reading = nil // results may have been cut to fit
		t.forgetL1()
	}
	if projection, err = p.search(ctx); err != nil {
		return nil, err
	}
	if projection, err = p.descend(projection); err != nil {
		return nil, err
	}
	return p.evict(projection, most/2)
}

// evict takes media out of a plan, the oldest first, until its prompt has at most
// goal bytes.
func (p *planner) evict(projection *session.Projection, goal int) (*session.Projection, error) {
	size, changed := p.exchange.Bytes(projection), false
	for _, t := range p.evictable() {
		if size <= goal {
			break
		}
		saved, err := p.evictTurn(t)
		if err != nil {
			return nil, err
		}
		size -= saved
		changed = changed || saved > 0
	}
	if !changed {
		return projection, nil
	}
	return p.render()
}

// evictTurn takes a turn's media out and returns how many bytes that saves.
func (p *planner) evictTurn(t *turn) (saved int, err error) {
	if t.isEvicted || t.level >= 2 || t.deepest < 1 || !p.hasMedia(t) {
		return 0, nil
	}
	if err := p.read(t); err != nil || t.isFixed {
		return 0, err
	}
	before := p.bytesOf(t)
	t.isEvicted = true
	if t.cut == nil {
		t.forgetL1()
	}
	for i := range t.cut {
		message := t.messages[i]
		if t.shorter[i].Changed {
			message = t.shorter[i]
		}
		t.cutSize -= p.weigh(t.cut[i])
		t.cut[i] = p.bare(t.From+i, message, t.cut[i])
		t.cutSize += p.weigh(t.cut[i])
	}
	if err := p.strip(t); err != nil {
		return 0, err
	}
	if saved = before - p.bytesOf(t); saved <= 0 {
		t.isEvicted = false
		return 0, nil
	}
	return saved, nil
}

// strip makes the turn's L0 without media.
func (p *planner) strip(t *turn) error {
	if t.stripped != nil {
		return nil
	}
	if err := p.read(t); err != nil {
		return err
	}
	for i, message := range t.messages {
		part := p.bare(t.From+i, message, p.untouched(t.From+i, t.From+i+1, 0))
		t.stripped = append(t.stripped, part)
		t.strippedSize += p.weigh(part)
	}
	return nil
}

// bare returns the part of a message without its media; part where it has none to
// take out.
func (p *planner) bare(index int, message conversation.Message, part session.Part) session.Part {
	changed, has := p.withoutMedia(index, message)
	if !has {
		return part
	}
	// What has no form without them stays: a screenshot of computer use.
	bare, err := p.encoded(index, changed, p.counter.Message(changed))
	if err != nil {
		return part
	}
	return bare
}

// withoutMedia returns a message with a placeholder for each of its attachments,
// and whether it had any. Those of the message that a person typed last stay.
func (p *planner) withoutMedia(index int, message conversation.Message) (conversation.Message, bool) {
	flags := p.exchange.Digests[index].Flags
	if p.isLatest(index) || !flags.Has(conversation.HasMedia) || flags.Has(conversation.IsPinned) {
		return message, false
	}
	has := false
	for i := range message.Blocks {
		block := &message.Blocks[i]
		isTyped := block.Kind == conversation.Media && message.Role == conversation.User
		if !isTyped && block.Kind != conversation.ToolResult || len(block.Tools) > 0 || weight(block.Media) < lightAttachment {
			continue
		}
		message.Replace(i, joinNonEmpty("\n", block.Text, describe(index, block.Media)))
		has = true
	}
	return message, has
}

func weight(media []conversation.Attachment) int {
	bytes := 0
	for _, attachment := range media {
		bytes += len(attachment.Raw)
	}
	return bytes
}

func (p *planner) hasMedia(t *turn) bool {
	for _, digest := range p.exchange.Digests[t.From:t.To] {
		if digest.Flags.Has(conversation.HasMedia) {
			return true
		}
	}
	return false
}

// bytesOf returns the size of a turn at L0 or L1 in bytes.
func (p *planner) bytesOf(t *turn) int {
	parts := t.cut
	if t.level == 0 {
		parts = nil
		if t.isEvicted {
			parts = t.stripped
		}
	}
	size := 0
	for i := t.From; i < t.To; i++ {
		if parts != nil && parts[i-t.From].Raw != nil {
			size += len(parts[i-t.From].Raw)
		} else {
			size += len(p.exchange.Body.Element(i))
		}
	}
	return size
}

// keepEvicted sees which turns have lost their media in the current projection. A
// turn that has lost nothing else is at L0 but for them.
func (p *planner) keepEvicted() error {
	current := p.exchange.Projection
	if current == nil {
		return nil
	}
	changed := map[int]json.RawMessage{}
	for _, part := range current.Parts {
		if part.Level == 1 && len(part.Raw) > 0 && part.To-part.From == 1 {
			changed[part.From] = part.Raw
		}
	}
	for _, t := range p.turns {
		if t.floor != 1 || !p.hasMedia(t) {
			continue
		}
		if err := p.read(t); err != nil {
			return err
		}
		isCut := false
		for i, message := range t.messages {
			raw, is := changed[t.From+i]
			if !is {
				continue
			}
			bare := p.bare(t.From+i, message, session.Part{})
			if bytes.Equal(bare.Raw, raw) || bare.Raw != nil && p.nameIn(&bare, archive.NameOf(current.Chain)) && bytes.Equal(bare.Raw, raw) {
				t.isEvicted = true
				continue
			}
			isCut = true
			t.isEvicted = t.isEvicted || p.lostMedia(t.From+i, message, raw)
		}
		if t.isEvicted && !isCut {
			t.floor = 0
		}
	}
	return nil
}

// lostMedia reports whether a message whose results were cut has also lost what a
// person attached to it.
func (p *planner) lostMedia(index int, message conversation.Message, raw json.RawMessage) bool {
	if _, had := p.withoutMedia(index, message); !had {
		return false
	}
	isAttached := func(message conversation.Message) bool {
		for i := range message.Blocks {
			if message.Blocks[i].Kind == conversation.Media {
				return true
			}
		}
		return false
	}
	sent, err := p.exchange.Codec.Parse(raw)
	return err == nil && isAttached(message) && !isAttached(sent)
}

// isLighter reports whether a projection frees enough bytes to be worth an epoch.
func (p *planner) isLighter(projection *session.Projection) bool {
	most, size := maxBytes(p.exchange), p.exchange.Bytes(projection)
	freed := p.exchange.Bytes(p.exchange.Projection) - size
	return freed > 0 && (size <= most || freed >= most/leastLighter)
}

// fitsWhole reports whether the prompt fits as the client sent it, with what modules
// have put into it.
func fitsWhole(exchange *pipeline.Exchange) bool {
	most := maxBytes(exchange)
	return exchange.Original()+int(float64(exchange.Inserted(nil))*exchange.Factor) <= exchange.Limit && (most == 0 || len(exchange.Body.Body()) <= most)
}
