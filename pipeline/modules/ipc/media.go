package ipc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc/extract"
	"palimpsest/pipeline/session"
)

// lightAttachment is the size, in bytes as sent, below which an attachment is not worth a
// placeholder, for example the URL or the id of a file.
const lightAttachment = 1 << 10

// media takes attachments out of turns.
type media struct {
	history    *history
	protection *protection
}

// keepEvicted finds turns that have lost their media in the current projection. Such a turn is at
// L0 if it has lost only its media.
func (m *media) keepEvicted() error {
	current := m.history.exchange.Lane.Projection
	if current == nil {
		return nil
	}
	changed := map[int]json.RawMessage{}
	for _, part := range current.Parts {
		if part.Level == 1 && len(part.Raw) > 0 && part.To-part.From == 1 {
			changed[part.From] = part.Raw
		}
	}
	for _, t := range m.history.turns {
		if t.floor != 1 || !m.history.hasMedia(t) {
			continue
		}
		if err := m.history.read(t); err != nil {
			return err
		}
		isCut := false
		for i, message := range t.messages {
			raw, is := changed[t.From+i]
			if !is {
				continue
			}
			bare := m.bare(t.From+i, message, session.Part{})
			if bytes.Equal(bare.Raw, raw) || bare.Raw != nil && m.history.nameIn(&bare, archive.NameOf(current.Chain)) && bytes.Equal(bare.Raw, raw) {
				t.isEvicted = true
				continue
			}
			isCut = true
			t.isEvicted = t.isEvicted || m.lostMedia(t.From+i, message, raw)
		}
		if t.isEvicted && !isCut {
			t.floor = 0
		}
	}
	return nil
}

// evictTurn takes a turn's media out and returns how many bytes that saves.
func (m *media) evictTurn(t *turn) (saved int, err error) {
	if t.isEvicted || t.level >= 2 || t.deepest < 1 || !m.history.hasMedia(t) {
		return 0, nil
	}
	if err := m.history.read(t); err != nil || t.isFixed {
		return 0, err
	}
	before := m.bytesOf(t)
	t.isEvicted = true
	if t.cut == nil {
		t.forgetL1()
	}
	for i := range t.cut {
		message := t.messages[i]
		if t.shorter[i].Changed {
			message = t.shorter[i]
		}
		t.cutSize -= m.history.weigh(t.cut[i])
		t.cut[i] = m.bare(t.From+i, message, t.cut[i])
		t.cutSize += m.history.weigh(t.cut[i])
	}
	if err := m.strip(t); err != nil {
		return 0, err
	}
	if saved = before - m.bytesOf(t); saved <= 0 {
		t.isEvicted = false
		return 0, nil
	}
	return saved, nil
}

// strip makes the turn's L0 without media.
func (m *media) strip(t *turn) error {
	if t.stripped != nil {
		return nil
	}
	if err := m.history.read(t); err != nil {
		return err
	}
	for i, message := range t.messages {
		part := m.bare(t.From+i, message, m.history.untouched(t.From+i, t.From+i+1, 0))
		t.stripped = append(t.stripped, part)
		t.strippedSize += m.history.weigh(part)
	}
	return nil
}

// bare returns the part of a message without its media, or part if it has no media to remove.
func (m *media) bare(index int, message conversation.Message, part session.Part) session.Part {
	changed, has := m.withoutMedia(index, message)
	if !has {
		return part
	}
	// A message without a form that lacks them stays: a screenshot of computer use.
	bare, err := m.history.encoded(index, changed, m.history.count(changed))
	if err != nil {
		return part
	}
	return bare
}

// withoutMedia returns a message with a placeholder for each of its attachments,
// and whether it had any. Those of the message that a person typed last stay.
func (m *media) withoutMedia(index int, message conversation.Message) (conversation.Message, bool) {
	flags := m.history.digests[index].Flags
	if m.protection.isLatest(index) || !flags.Has(conversation.HasMedia) || flags.Has(conversation.IsPinned) {
		return message, false
	}
	has := false
	for i := range message.Blocks {
		block := &message.Blocks[i]
		isTyped := block.Kind == conversation.Media && message.Role == conversation.User
		if !isTyped && block.Kind != conversation.ToolResult || len(block.Tools) > 0 || weight(block.Media) < lightAttachment {
			continue
		}
		message.Replace(i, extract.JoinNonEmpty("\n", block.Text, describe(index, block.Media)))
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

// describe returns a placeholder for each attachment, or "" without attachments.
func describe(index int, media []conversation.Attachment) string {
	placeholders := make([]string, 0, len(media))
	for _, attachment := range media {
		size := ""
		if attachment.Size > 0 {
			size = ", " + extract.Thousands(attachment.Size) + " bytes"
		}
		placeholders = append(placeholders, fmt.Sprintf("[%s%s, archived as %s]", attachment.Type, size, extract.Archived(index)))
	}
	return strings.Join(placeholders, " ")
}

// lostMedia reports whether a message whose results were cut has also lost a person's attachments.
func (m *media) lostMedia(index int, message conversation.Message, raw json.RawMessage) bool {
	if _, had := m.withoutMedia(index, message); !had {
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
	sent, err := m.history.exchange.Conversation.Read(raw)
	return err == nil && isAttached(message) && !isAttached(sent)
}

// bytesOf returns the size of a turn at L0 or L1 in bytes.
func (m *media) bytesOf(t *turn) int {
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
			size += m.history.exchange.Conversation.Length(i)
		}
	}
	return size
}

// ballast returns the upper bound of the bytes of media that could be removed.
func (m *media) ballast() int {
	ballast := 0
	for _, t := range m.protection.evictable() {
		for i := t.From; i < t.To; i++ {
			if m.history.digests[i].Flags.Has(conversation.HasMedia) && !m.protection.isLatest(i) {
				ballast += m.history.exchange.Conversation.Length(i)
			}
		}
	}
	if projection := m.history.exchange.Lane.Projection; projection != nil {
		for _, part := range projection.Parts {
			for i := part.From; part.Raw != nil && i < part.To; i++ {
				if m.history.digests[i].Flags.Has(conversation.HasMedia) && !m.protection.isLatest(i) {
					ballast -= m.history.exchange.Conversation.Length(i)
				}
			}
			if part.Raw != nil && part.Level < 2 {
				ballast += len(part.Raw)
			}
		}
	}
	return ballast
}

// leastLighter is the divisor of the byte limit that gives the minimum that an epoch for the sake
// of bytes must free.
const leastLighter = 10

// maxBytes returns how many bytes a prompt may have; 0 means no limit.
func maxBytes(exchange *pipeline.View) int {
	most := configOf(exchange).MaxBytes
	if said := exchange.Limits.MaxBytes; said > 0 && (most == 0 || said < most) {
		return said
	}
	return most
}

// isHeavy reports whether a prompt exceeds its byte limit.
func isHeavy(exchange *pipeline.View) bool {
	most := maxBytes(exchange)
	// No part ever grows, so a small enough body needs no sum.
	return most > 0 && exchange.Conversation.BodyLength() > most && exchange.Bytes(exchange.Lane.Projection) > most
}

// fitsWhole reports whether the prompt fits as the client sent it, including the modules' inserts.
func fitsWhole(exchange *pipeline.View) bool {
	most := maxBytes(exchange)
	return exchange.Original()+int(float64(exchange.Inserted(nil))*exchange.Limits.Factor) <= exchange.Limits.Limit && (most == 0 || exchange.Conversation.BodyLength() <= most)
}

// mayLighten reports whether an epoch can free enough bytes, without reading a
// message.
func (p *planner) mayLighten() bool {
	text := float64(p.history.exchange.Bytes(p.history.exchange.Lane.Projection)) * float64(p.potential()) / float64(p.budget.now)
	return p.forms.media.ballast()+int(text) >= maxBytes(p.history.exchange)/leastLighter
}

// lighten brings a plan's prompt under its byte limit. It takes media out, the oldest first, down
// to half of the limit, so that there is room for a while. If media are not the cause, it plans
// again with a lower token budget.
func (p *planner) lighten(ctx context.Context, projection *session.Projection) (*session.Projection, error) {
	most := maxBytes(p.history.exchange)
	projection, err := p.evict(projection, most/2)
	if err != nil {
		return nil, err
	}
	size := p.history.exchange.Bytes(projection)
	if size <= most {
		return projection, nil
	}
	tokens := float64(p.history.exchange.Estimate(projection)) / float64(size)
	p.budget.lower(tokens * float64(most))
	p.descent.restart()
	for _, t := range p.history.turns {
		t.reading = nil // results may have been cut to fit
		t.forgetL1()
	}
	if projection, err = p.tails.search(ctx); err != nil {
		return nil, err
	}
	if projection, err = p.descent.descend(projection); err != nil {
		return nil, err
	}
	return p.evict(projection, most/2)
}

// evict takes media out of a plan, the oldest first, until its prompt has at most
// goal bytes.
func (p *planner) evict(projection *session.Projection, goal int) (*session.Projection, error) {
	size, changed := p.history.exchange.Bytes(projection), false
	for _, t := range p.protection.evictable() {
		if size <= goal {
			break
		}
		saved, err := p.forms.media.evictTurn(t)
		if err != nil {
			return nil, err
		}
		size -= saved
		changed = changed || saved > 0
	}
	if !changed {
		return projection, nil
	}
	return p.renderer.render()
}

// isLighter reports whether a projection frees enough bytes to be worth an epoch.
func (p *planner) isLighter(projection *session.Projection) bool {
	most, size := maxBytes(p.history.exchange), p.history.exchange.Bytes(projection)
	freed := p.history.exchange.Bytes(p.history.exchange.Lane.Projection) - size
	return freed > 0 && (size <= most || freed >= most/leastLighter)
}
