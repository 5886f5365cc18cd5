package client

import (
	"errors"
	"fmt"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// ErrNoSummary says that a marker has no summary that can be read: the provider
// sealed it, or the client only told that something is missing.
var ErrNoSummary = errors.New("the client left no readable summary")

// Range is a part of a message's text.
type Range struct {
	Block    int // of the message's blocks
	From, To int // bytes of that block's text, To excluded
}

// Summary returns what a client wrote at a marker of body, without the words that
// it puts around every summary, and where that lies in the message at
// marker.Boundary as codec reads it. It returns ErrNoSummary if nothing can be
// read there. It decodes the whole message: call it once for each compaction, not
// for each request.
func Summary(codec wire.Codec, body *wire.Envelope, marker Marker) (string, Range, error) {
	if !marker.Found() || marker.form == sealed || marker.form == truncated || marker.Boundary >= body.Len() {
		return "", Range{}, ErrNoSummary
	}
	message, err := codec.Parse(body.Element(marker.Boundary))
	if err != nil {
		return "", Range{}, fmt.Errorf("message %d: %w", marker.Boundary, err)
	}
	for i := range message.Blocks {
		block := &message.Blocks[i]
		if block.Kind != conversation.Text {
			continue
		}
		if from, to, ok := marker.form.bounds(block.Text); ok {
			from, to = trim(block.Text, from, to)
			return block.Text[from:to], Range{Block: i, From: from, To: to}, nil
		}
	}
	return "", Range{}, ErrNoSummary
}

// endings are how Claude Code goes on behind a summary.
var endings = [...]string{
	"\n\nIf you need specific details from before compaction",
	"\n\nRecent messages are preserved verbatim.",
	"\nPlease continue the conversation from where",
	"\nContinue the conversation from where",
}

// bounds returns where the summary lies in a text; ok is false if the text is not
// the one that holds it.
func (f form) bounds(said string) (from, to int, ok bool) {
	switch f {
	case continued:
		return continuedBounds(said)
	case handedOver:
		from = after(said, "to assist with your own analysis:", after(said, codexHandover, 0))
		return from, len(said), strings.Contains(said, codexHandover)
	case compacted, branched:
		return between(said, "<summary>", "</summary>")
	case condensed:
		if from, to, ok = between(said, "<context>", "</context>"); !ok {
			from, to, ok = between(said, clineCondense, "</condense>")
		}
		return from, to, ok
	case noticed:
		if from, to, ok = between(said, clineNotice, clineNoticeEnd); ok {
			from = after(said, "request above:", from)
		}
		return from, to, ok
	case summarized:
		return wholeAfter(said, "Context summary:")
	case headed:
		return wholeAfter(said, "## Conversation Summary")
	case recalled, interrupted:
		return 0, len(said), strings.TrimSpace(said) != ""
	case noForm, truncated, sealed:
	}
	return 0, 0, false
}

// continuedBounds finds Claude Code's summary.
func continuedBounds(said string) (from, to int, ok bool) {
	start := strings.Index(said, "This session is being continued")
	if start < 0 {
		return 0, 0, false
	}
	from = after(said, "\n", start)
	if i := strings.Index(said[from:], "Summary:\n"); i >= 0 && strings.TrimSpace(conversation.WithoutReminders(said[from:from+i])) == "" {
		from += i + len("Summary:\n")
	}
	to = len(said)
	for _, ending := range endings {
		if i := strings.LastIndex(said, ending); i >= from {
			to = min(to, i)
		}
	}
	return from, to, true
}

// after returns where words end that stand behind from; from itself if they do not.
func after(said, words string, from int) int {
	if i := strings.Index(said[from:], words); i >= 0 {
		return from + i + len(words)
	}
	return from
}

// between returns what lies between the first opening and the last closing.
func between(said, opening, closing string) (from, to int, ok bool) {
	from, to = strings.Index(said, opening), strings.LastIndex(said, closing)
	if from < 0 || to < from+len(opening) {
		return 0, 0, false
	}
	return from + len(opening), to, true
}

// wholeAfter returns what follows words that a text starts with.
func wholeAfter(said, words string) (from, to int, ok bool) {
	return strings.Index(said, words) + len(words), len(said), strings.HasPrefix(strings.TrimSpace(said), words)
}

// trim narrows a range by the white space at its ends.
func trim(said string, from, to int) (start, end int) {
	const space = " \t\r\n"
	kept := strings.TrimLeft(said[from:to], space)
	start = to - len(kept)
	return start, start + len(strings.TrimRight(kept, space))
}
