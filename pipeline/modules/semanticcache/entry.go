package semanticcache

import (
	"math"
	"time"
)

// Entry is an answer that is kept, with the question that it answered.
type Entry struct {
	Key         Key
	Alike       Key // zero: only the very same request gets it
	Text        string
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
func (e *Entry) Size() int { return len(e.Answer) + len(e.Text) }

// Similarity returns the cosine of two vectors, from -1 to 1; 0 if they have
// different lengths or one has no direction.
func Similarity(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var product, sizeA, sizeB float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		product += x * y
		sizeA += x * x
		sizeB += y * y
	}
	if sizeA == 0 || sizeB == 0 {
		return 0
	}
	return product / math.Sqrt(sizeA*sizeB)
}
