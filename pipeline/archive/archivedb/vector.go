package archivedb

import (
	"fmt"
	"math"

	"github.com/google/uuid"
)

// longestVector is the maximum number of components of a stored vector.
const longestVector = 4096

// vector is the direction of an embedding: its components scaled so that the largest is 127, and rounded. It
// has a quarter of the bytes of floats, and the cosine of two is the same on every machine.
type vector []int8

// newVector returns the direction of an embedding, or an empty vector for an embedding without a direction or
// with too many components.
func newVector(embedding []float32) vector {
	largest := 0.0
	for _, value := range embedding {
		largest = max(largest, math.Abs(float64(value)))
	}
	if largest == 0 || len(embedding) > longestVector {
		return nil
	}
	direction := make(vector, len(embedding))
	for i, value := range embedding {
		direction[i] = int8(math.Round(float64(value) / largest * math.MaxInt8))
	}
	return direction
}

// bytes returns the vector's form for sealing.
func (v vector) bytes() []byte {
	raw := make([]byte, len(v))
	for i, value := range v {
		raw[i] = byte(value) //nolint:gosec // the same eight bits
	}
	return raw
}

// vectorOf is the reverse of bytes.
func vectorOf(raw []byte) vector {
	direction := make(vector, len(raw))
	for i, value := range raw {
		direction[i] = int8(value) //nolint:gosec // the same eight bits
	}
	return direction
}

// product returns the scalar product of two vectors of the same length.
func (v vector) product(other vector) int64 {
	sum := int32(0) // 4096 times 127 squared fits
	for i, value := range v {
		sum += int32(value) * int32(other[i])
	}
	return int64(sum)
}

// cosine returns the cosine of two vectors, -1 to 1, or 0 if they cannot be compared.
func (v vector) cosine(other vector) float64 {
	if len(v) != len(other) || len(v) == 0 {
		return 0
	}
	return float64(v.product(other)) / math.Sqrt(float64(v.product(v))*float64(other.product(other)))
}

// vectorPlace identifies the document of a vector. A document that has grown has another one.
type vectorPlace struct {
	lane               uuid.UUID
	first, part, after int
}

// about is the associated data of a sealed vector, besides its workspace.
func (p vectorPlace) about(model string) []byte {
	return fmt.Appendf(nil, "vector %s %d %d %d %s", p.lane, p.first, p.part, p.after, model)
}
