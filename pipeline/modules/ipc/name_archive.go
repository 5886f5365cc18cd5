package ipc

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
)

// leastSaved is how many o200k tokens a message that names the archive has less than
// what the client sent at least: an epoch must not spend on that what it has freed.
const leastSaved = 16

// frame returns what opens the message that stands for turns at L2 and L3. The name
// of the archive changes with each epoch, as what follows does.
func (r *renderer) frame() string {
	return fmt.Sprintf(`[AUTO CONTEXT COMPRESSION]
This is a shortened record of earlier turns of this conversation, not a new request. The originals are archived word for word: #12 is message 12 of archive %[1]s. For a detail that is missing here, call recall_get with %[1]s#12, or recall_search, if you have these tools; else read the file or run the command again, or ask for it. A call without an outcome succeeded.
%[2]s`, r.archive, r.forms.records.base.told())
}

// nameArchive has the newest placeholder of a projection name the archive, where no
// frame does: all that stands before it stays the same bytes when the next epoch
// shortens what follows. A message that would be hardly shorter with
// the name stays without.
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

// nameIn has the placeholder in a part of one message name the archive, and reports
// whether it does.
func (h *history) nameIn(part *session.Part, name archive.Name) bool {
	message, err := h.exchange.Read(part.Raw)
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
