package session

import (
	"time"

	"github.com/google/uuid"
)

// MaxInstructions bounds the instructions of an Order, in characters.
const MaxInstructions = 2000

// Order asks for an epoch at a lane's next request, regardless of the prompt's size.
type Order struct {
	At           time.Time // zero without a request
	By           uuid.UUID // member or API key
	Instructions string    // what to keep or leave out; "" if unspecified
}

// Order returns the order for the lane's next epoch, or nil. An order waits until an epoch has been made or
// an attempt has failed.
func (l *Lane) Order() *Order {
	if l.order.At.IsZero() || l.order.At.Before(l.Attempts().At) {
		return nil
	}
	if n := len(l.projections); n > 0 && !l.projections[n-1].At.Before(l.order.At) {
		return nil
	}
	return &l.order
}
