package session

import (
	"golang.org/x/sync/semaphore"

	"palimpsest/pipeline/conversation"
)

// openings let one request at a time open the lane of a history. Unrelated histories may share an opening,
// which is acceptable because it is held only for a query to the store.
type openings [256]*semaphore.Weighted

func newOpenings() openings {
	var all openings
	for i := range all {
		all[i] = semaphore.NewWeighted(1)
	}
	return all
}

// of returns the opening of the histories with a link.
func (d *openings) of(link conversation.Hash) *semaphore.Weighted { return d[link[0]] }
