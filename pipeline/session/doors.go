package session

import (
	"golang.org/x/sync/semaphore"

	"palimpsest/pipeline/conversation"
)

// doors let one request at a time open the lane of a history. Histories that have
// nothing to do with each other may share one: it is held no longer than the store takes
// for an answer.
type doors [256]*semaphore.Weighted

func newDoors() doors {
	var all doors
	for i := range all {
		all[i] = semaphore.NewWeighted(1)
	}
	return all
}

// of returns the door of the histories with a link.
func (d *doors) of(link conversation.Hash) *semaphore.Weighted { return d[link[0]] }
