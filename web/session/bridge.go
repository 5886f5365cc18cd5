package session

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/web/components"
)

// bridged counts the losses when the lane's client compacted itself, and the parts that were put back.
type bridged struct {
	counts map[string]int
	reason string // why nothing was put back; "" if something was
}

// bridged returns the comparison for the client's newest compaction of the lane, or nil without one.
func (m *model) bridged() *bridged {
	for _, moment := range slices.Backward(m.Timeline.Events) {
		if found := bridgedAt(moment); found != nil {
			return found
		}
	}
	return nil
}

// lost lists the items missing from the client's summary.
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
		return "The client compacted itself. Its summary lost no directive, file, error or decision."
	}
	return "The client’s summary lost " + strings.Join(parts, ", ") + "."
}

// restored lists the items that were put back.
func (b *bridged) restored() string {
	if b.reason != "" {
		return "Nothing was restored: " + b.reason + "."
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
	return "Restored: " + strings.Join(parts, ", ") + "."
}
