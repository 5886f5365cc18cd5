package ipc

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
)

// leastSaved is the minimum of o200k tokens that a message must still save after it names the
// archive, so that an epoch does not spend the space it has freed.
const leastSaved = 16

// frame returns the opening of the message that replaces turns at L2 and L3. The name of the
// archive changes with each epoch, as does the text after it.
func (r *renderer) frame() string {
	return fmt.Sprintf(`[AUTO CONTEXT COMPRESSION]
This is a shortened record of earlier turns of this conversation, not a new request. The originals are archived word for word: #12 is message 12 of archive %[1]s. For a detail that is missing here, call recall_get with %[1]s#12, or recall_search, if you have these tools; else read the file or run the command again, or ask for it. A call without an outcome succeeded.
%[2]s`, r.archive, r.forms.records.base.told())
}

// nameArchive has the newest placeholder of a projection name the archive if no frame does. The
// newest one, because all bytes before it stay the same when the next epoch shortens later ones. A
// message that would save too little with the name is left without it.
func (r *renderer) nameArchive(parts parts) {
	if r.isNamed {
		return
	}
	for i := range slices.Backward(parts) {
		if parts[i].Raw != nil && r.history.nameIn(&parts[i], r.archive) {
			return
		}
	}
}

// nameIn puts the archive's name into the placeholder in a part of one message, and reports whether
// it did.
func (h *history) nameIn(part *session.Part, name archive.Name) bool {
	message, err := h.exchange.Conversation.Read(part.Raw)
	if err != nil {
		return false
	}
	plain := " as " + archived(part.From)
	for i := range slices.Backward(message.Blocks) {
		text := message.Blocks[i].Text
		end := strings.LastIndex(text, plain) + len(plain)
		if end < len(plain) || end < len(text) && text[end] != ']' && text[end] != '\n' {
			continue
		}
		message.Replace(i, fmt.Sprintf("%s of archive %s; recall_get %s%s returns it, if you have that tool%s", text[:end], name, name, archived(part.From), text[end:]))
		named, err := h.encoded(part.From, message, h.count(message))
		if err != nil || named.Tokens > h.digests[part.From].Tokens-leastSaved {
			return false
		}
		named.Level = part.Level
		*part = named
		return true
	}
	return false
}
