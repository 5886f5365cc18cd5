package cost

import (
	"time"

	"github.com/google/uuid"
)

// Decision is an epoch and its result.
type Decision struct {
	Lane      uuid.UUID // that the epoch belongs to
	Number    int       // of its projection
	Reason    string    // why it happened
	At        time.Time
	Before    int    // estimate of the prompt in tokens before it
	After     int    // and after it
	Predicted int64  // predicted savings until the next epoch, in millionths of a US dollar
	Guessed   bool   // Predicted is set
	Worst     *int64 // worst case: the savings if no request followed; nil if unknown
	Realized  int64  // savings of the exchanges under it so far, including the one that made it
	Exchanges int    // under it, in all lanes that took it over
	Reach     int    // of them, those whose own prompt could not have been sent; they add nothing to Realized
}

// AdviceSpan is the period that advice covers.
const AdviceSpan = 7 * 24 * time.Hour

// leastEdited is the minimum number of exchanges with a projection for advice.
const leastEdited = 20

// Advice tells customers that they would pay less without compression.
type Advice struct {
	Lost      int64 // net loss from compression, in millionths of a US dollar; positive
	Without   int64 // cost of the exchanges without compression
	Exchanges int64 // under a projection
}

// Advise returns advice if exchanges have cost more with compression than without. edited is how many of them
// had a projection, paid their cost and net their savings. ok is false without a loss, or if fewer than 20
// had a projection.
func Advise(edited, paid, net int64) (advice Advice, ok bool) {
	if net >= 0 || edited < leastEdited {
		return Advice{}, false
	}
	return Advice{Lost: -net, Without: paid + net, Exchanges: edited}, true
}

// IsLoss reports whether compression of a lane has lost money, as Balance.IsLoss does. net is the lane's
// total savings, and decisions are its epochs in order.
func IsLoss(net int64, decisions []Decision) bool {
	if net >= 0 {
		return false
	}
	for i, decision := range decisions {
		if decision.Realized < 0 && (i < len(decisions)-1 || decision.Exchanges >= patience) {
			return true
		}
	}
	return false
}

// The kinds of notices, and the warnings in X-Palimpsest-Warning.
const (
	NoticeLoss       = "net-loss"   // compression has cost more than it saved
	NoticeIncomplete = "incomplete" // a compaction lost something that can't be recalled
	NoticeTruncated  = "truncated"  // content left the prompt without a replacement
	NoticeEpochs     = "epochs"     // a lane has had many epochs
)

// Notice reports sessions that need attention, and names the most urgent one.
type Notice struct {
	Kind     string
	Sessions int       // affected sessions
	Session  uuid.UUID // the most urgent one
	Title    string    // its title; may be empty
	Net      int64     // NoticeLoss: total savings of the sessions, in millionths of a US dollar; negative
	Epochs   int       // NoticeEpochs: of the session's lane with the most; NoticeLoss: of the session
}
