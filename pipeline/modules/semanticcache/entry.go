package semanticcache

import "time"

// Entry is an answer that is kept.
type Entry struct {
	Key         Key
	Answer      []byte // as the provider sent it, a stream as a stream
	ContentType string
	Model       string
	At          time.Time // when it was kept
	AskedAt     time.Time // when the request came that it answers
	EndUser     string    // whose question it answered, as session.EndUserID names them; "" if not known

	// MicroUSD is what the exchange that it comes from cost, in millionths of a US
	// dollar.
	MicroUSD int64
}

// Size returns what the entry counts towards its workspace's limit, in bytes.
func (e *Entry) Size() int { return len(e.Answer) }
