package semanticcache

import "time"

// Entry is a kept answer.
type Entry struct {
	Key         Key
	Answer      []byte // as the provider sent it, a stream as a stream
	ContentType string
	Model       string
	At          time.Time // when it was kept
	AskedAt     time.Time // when its request came
	EndUser     string    // who asked, as session.EndUserID names them; "" if unknown

	// MicroUSD is the cost of the original exchange, in millionths of a US dollar.
	MicroUSD int64
}

// Size returns the entry's size towards its workspace's limit, in bytes.
func (e *Entry) Size() int { return len(e.Answer) }
