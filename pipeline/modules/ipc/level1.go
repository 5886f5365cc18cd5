package ipc

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/modules/ipc/extract"
	"palimpsest/pipeline/session"
)

// surelySmaller is how many bytes shorter a text must be so that it surely has fewer tokens,
// without counting them.
const surelySmaller = 160

// cuts renders turns at L1: it cuts tool results and leaves everything else byte for byte.
type cuts struct {
	history    *history
	protection *protection
	media      *media
}

// cutAhead renders a turn at L1 if it may go there.
func (c *cuts) cutAhead(t *turn) error {
	if t.level >= 1 || t.deepest < 1 {
		return nil
	}
	return c.shortenResults(t)
}

// shortenResults renders the turn's messages at L1 and counts their tokens.
func (c *cuts) shortenResults(t *turn) error {
	if t.shorter != nil {
		return nil
	}
	if err := c.history.read(t); err != nil {
		return err
	}
	t.shorter = make([]conversation.Message, len(t.messages))
	for i, message := range t.messages {
		digest := c.history.digests[t.From+i]
		if c.protection.leavesOut(t, t.From+i) {
			t.sizes = append(t.sizes, 0)
			continue
		}
		shorter, size := message, c.history.originals(t.From+i, t.From+i+1)
		if !t.isFixed && t.From+i < t.spared && digest.Flags.Has(conversation.HasResult) {
			if changed, less := c.shortOf(t, i); less < size {
				shorter, size = changed, less
			}
		}
		if t.isEvicted {
			if bare, had := c.media.withoutMedia(t.From+i, shorter); had {
				shorter, size = bare, c.history.count(bare)
			}
		}
		if shorter.Changed {
			t.shorter[i] = shorter
		}
		t.sizes = append(t.sizes, size)
		t.cutSize += size
	}
	return nil
}

// shortOf returns message i of a turn that has been read as L1 renders it, and its o200k tokens.
func (c *cuts) shortOf(t *turn, i int) (conversation.Message, int) {
	if t.short == nil {
		t.short = make([]shortForm, len(t.messages))
	}
	form := &t.short[i]
	if !form.isMade {
		form.isMade = true
		form.message, form.size = c.cutResults(t.From+i, t.messages[i], c.history.digests[t.From+i])
	}
	return form.message, form.size
}

// cutResults returns a message with its tool results cut for L1, and its o200k tokens. A message
// without a shorter form, such as a screenshot, keeps its size. Blocks other than tool results stay
// byte for byte.
func (c *cuts) cutResults(index int, message conversation.Message, digest conversation.Digest) (conversation.Message, int) {
	results := 0
	for i := range message.Blocks {
		if message.Blocks[i].Kind == conversation.ToolResult {
			results++
		}
	}
	for i := range message.Blocks {
		block := &message.Blocks[i]
		if block.Kind != conversation.ToolResult || len(block.Tools) > 0 {
			continue
		}
		text := cutResult(index, block, c.history.config.ObservationMasking)
		// With one result, the check of the whole message below is enough.
		if text != block.Text && (results == 1 || c.smaller(block, text)) {
			message.Replace(i, text)
		}
	}
	if !message.Changed {
		return message, digest.Tokens
	}
	if digest.Flags.Has(conversation.HasMedia) {
		if _, err := c.history.exchange.Conversation.Write(message); err != nil {
			return message, digest.Tokens
		}
	}
	return message, c.history.count(message)
}

// cutResult returns a tool result as L1 renders it: KeptCharacters of it and its full length.
func cutResult(index int, block *conversation.Block, masked bool) string {
	media := describe(index, block.Media)
	length := utf8.RuneCountInString(block.Text)
	if said, _ := ledger.Rejection(block); said != "" {
		return extract.JoinNonEmpty("\n", withoutMiddle(block.Text, typedLengths[0], index), media) // a person's words
	}
	if masked {
		text := fmt.Sprintf("[TOOL OUTPUT ARCHIVED] %s characters as %s", extract.Thousands(length), extract.Archived(index))
		return extract.JoinNonEmpty("\n", text, media)
	}
	if length <= extract.KeptCharacters {
		return extract.JoinNonEmpty("\n", block.Text, media)
	}
	kept := extract.ExcerptOf(block.Text)
	rest := length - utf8.RuneCountInString(kept.Head) - utf8.RuneCountInString(kept.Middle) - utf8.RuneCountInString(kept.Tail)
	text := fmt.Sprintf("%s [%s of %s characters archived as %s]", kept, extract.Thousands(rest), extract.Thousands(length), extract.Archived(index))
	return extract.JoinNonEmpty("\n", text, media)
}

// smaller reports whether a tool result has fewer tokens as text.
func (c *cuts) smaller(block *conversation.Block, text string) bool {
	if len(block.Media) > 0 {
		return true // a placeholder is smaller than any attachment
	}
	if len(block.Text)-len(text) >= surelySmaller {
		return true
	}
	return len(text) < len(block.Text) && c.history.countText(text) < c.history.countText(block.Text)
}

// cutDown encodes the turn's L1.
func (c *cuts) cutDown(t *turn) error {
	if t.cut != nil {
		return nil
	}
	if err := c.shortenResults(t); err != nil {
		return err
	}
	t.cutSize = 0
	for i, shorter := range t.shorter {
		part := c.history.untouched(t.From+i, t.From+i+1, 1)
		if c.protection.leavesOut(t, t.From+i) {
			part = session.Part{From: t.From + i, To: t.From + i + 1, Level: 1, Raw: json.RawMessage{}}
		}
		if shorter.Changed {
			// A result without a shorter form stays, for example a screenshot.
			if cut, err := c.encodedShort(t, i); err == nil {
				part = cut
			}
		}
		t.cut = append(t.cut, part)
		t.cutSize += c.history.weigh(part)
	}
	return nil
}

// encodedShort returns the part of message i of a turn that has been rendered at L1.
func (c *cuts) encodedShort(t *turn, i int) (session.Part, error) {
	if t.isEvicted || t.messages[i].Changed {
		return c.history.encoded(t.From+i, t.shorter[i], c.history.count(t.shorter[i]))
	}
	form := &t.short[i]
	if form.raw == nil {
		part, err := c.history.encoded(t.From+i, form.message, form.size)
		form.raw = part.Raw
		return part, err
	}
	return shortPart(t.From+i, form.raw, form.size), nil
}

// leastAt1 returns the minimum size of messages at L1, in o200k tokens: L1 cuts tool results and
// leaves out outdated notices.
func (c *cuts) leastAt1(from, to int) int {
	size := 0
	for i, digest := range c.history.digests[from:to] {
		if !digest.Flags.Has(conversation.HasResult) && c.protection.fates[from+i] != isOutdated {
			size += digest.Tokens + c.history.added[from+i]
		}
	}
	return size
}

// shallowSize returns the o200k tokens of a run at L1.
func (c *cuts) shallowSize(run []*span) (int, error) {
	size := 0
	for _, span := range run {
		t := c.history.turns[span.turn]
		if err := c.shortenResults(t); err != nil {
			return 0, err
		}
		for _, tokens := range t.sizes[span.From-t.From:] {
			size += tokens
		}
	}
	return size, nil
}
