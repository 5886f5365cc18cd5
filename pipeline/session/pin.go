package session

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// MaxPins bounds how many messages of a lane can be pinned.
const MaxPins = 200

// Pin keeps the turn of a message unchanged in the prompt.
type Pin struct {
	Lane    uuid.UUID // lane of the pin: the lane itself or one that it forked from
	Message int       // place in the client's list
	By      uuid.UUID // member or API key
	At      time.Time
}

// Pins returns the pinned messages of the lane, in order. The caller must not
// change them.
func (l *Lane) Pins() []int { return l.pins }

// Pinned reports whether the whole session is pinned: its prompts are compacted only by an order.
func (l *Lane) Pinned() bool { return l.pinned }

// pinsBefore returns the pins of messages before index end.
func pinsBefore(pins []int, end int) []int {
	at, _ := slices.BinarySearch(pins, end)
	return pins[:at:at]
}
