package session

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/web/components"
)

// bridged is what the lane's client lost when it compacted itself, and what of it was
// put back.
type bridged struct {
	counts map[string]int
	reason string // why nothing was put back; empty: something was
}

// bridged returns what is known of the lane's newest compaction by its client; nil if
// there was none, or nothing could be compared.
func (m *model) bridged() *bridged {
	for _, moment := range slices.Backward(m.Timeline.Events) {
		if found := bridgedAt(moment); found != nil {
			return found
		}
	}
	return nil
}

// lost says what the client's summary does not hold.
func (b *bridged) lost() string {
	var parts []string
	for _, kind := range [...]struct{ all, lost, one string }{
		{compactionbridge.Directives, compactionbridge.DirectivesLost, "directive"},
		{compactionbridge.Files, compactionbridge.FilesLost, "changed file"},
		{compactionbridge.Errors, compactionbridge.ErrorsLost, "open error"},
		{compactionbridge.Decisions, compactionbridge.DecisionsLost, "decision"},
	} {
		if b.counts[kind.lost] > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", b.counts[kind.lost], components.Plural(int64(b.counts[kind.all]), kind.one)))
		}
	}
	if len(parts) == 0 {
		return "The client compacted itself; its summary lost nothing of the ledger."
	}
	return "The client’s summary lost " + strings.Join(parts, ", ") + "."
}

// restored says what was put back.
func (b *bridged) restored() string {
	if b.reason != "" {
		return "Nothing was put back: " + b.reason + "."
	}
	var parts []string
	for _, kind := range [...]struct{ count, one string }{
		{compactionbridge.DirectivesRestored, "directive"},
		{compactionbridge.TurnsRestored, "turn"},
		{compactionbridge.ErrorsRestored, "open error"},
		{compactionbridge.DecisionsRestored, "decision"},
		{compactionbridge.FilesRestored, "file"},
	} {
		if count := b.counts[kind.count]; count > 0 {
			parts = append(parts, components.Plural(int64(count), kind.one))
		}
	}
	return "Put back: " + strings.Join(parts, ", ") + "."
}
