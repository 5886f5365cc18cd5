package session

import (
	"time"

	"github.com/google/uuid"
)

// MaxInstructions bounds the instructions of an Order, in characters.
const MaxInstructions = 2000

// Order asks for an epoch at a lane's next request, whatever its size.
type Order struct {
	At           time.Time // zero: nobody has asked
	By           uuid.UUID // member or API key
	Instructions string    // what the person wants to be kept or left out; empty if nothing special
}

// Order returns the order that the lane's next epoch is to carry out; nil if none
// waits. An order waits until an epoch has been made or an attempt has come to
// nothing.
func (l *Lane) Order() *Order {
	if l.order.At.IsZero() || l.order.At.Before(l.Attempts().At) {
		return nil
	}
	if n := len(l.projections); n > 0 && !l.projections[n-1].At.Before(l.order.At) {
		return nil
	}
	return &l.order
}
