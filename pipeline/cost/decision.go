package cost

import (
	"time"

	"github.com/google/uuid"
)

// Decision is an epoch with what came of it.
type Decision struct {
	Lane      uuid.UUID // that made it
	Number    int       // of its projection
	Reason    string    // why it happened
	At        time.Time
	Before    int   // estimate of the prompt in tokens before it
	After     int   // and after it
	Predicted int64 // what it was to save until the next one, in millionths of a US dollar
	Guessed   bool  // there is a prediction
	Realised  int64 // what the exchanges under it have saved so far, the one that made it included
	Exchanges int   // under it, in all lanes that took it over
}

// Sums adds up what exchanges saved and missed.
type Sums struct {
	Exchanges int64 // that reached a provider
	Edited    int64 // of them, those with a projection
	Cost      int64 // in millionths of a US dollar
	Net       int64 // can be negative
	Misses    []MissSum
}

// MissSum is what was missed for one cause.
type MissSum struct {
	Cause  Cause
	Count  int64
	Tokens int64
}

// AdviceSpan is how far back advice looks.
const AdviceSpan = 7 * 24 * time.Hour

// leastEdited is how many exchanges with a projection it takes to say anything.
const leastEdited = 20

// Advice tells whoever pays that they would pay less without compression.
type Advice struct {
	Lost      int64 // what compression has cost more than it saved, in millionths of a US dollar; positive
	Without   int64 // what the exchanges would have cost without it
	Exchanges int64 // under a projection
}

// Advise returns advice where compression has cost more than it saved; ok is false
// where it has not, or where fewer than 20 exchanges had a projection.
func Advise(sums Sums) (advice Advice, ok bool) {
	if sums.Net >= 0 || sums.Edited < leastEdited {
		return Advice{}, false
	}
	return Advice{Lost: -sums.Net, Without: sums.Cost + sums.Net, Exchanges: sums.Edited}, true
}
