package ipc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
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

// describe returns a placeholder for each attachment, or "" without attachments.
func describe(index int, media []conversation.Attachment) string {
	placeholders := make([]string, 0, len(media))
	for _, attachment := range media {
		size := ""
		if attachment.Size > 0 {
			size = ", " + thousands(attachment.Size) + " bytes"
		}
		placeholders = append(placeholders, fmt.Sprintf("[%s%s, archived as %s]", attachment.Type, size, archived(index)))
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
