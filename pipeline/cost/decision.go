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
	Before    int    // estimate of the prompt in tokens before it
	After     int    // and after it
	Predicted int64  // what it was to save until the next one, in millionths of a US dollar
	Guessed   bool   // there is a Predicted
	Worst     *int64 // what it was to come to if no request followed; nil if not known
	Realized  int64  // what the exchanges under it have saved so far, the one that made it included
	Exchanges int    // under it, in all lanes that took it over
	Reach     int    // of them, those whose own prompt could not have been sent: none of Realized is theirs
}

// AdviceSpan is how far back advice looks.
const AdviceSpan = 7 * 24 * time.Hour

// leastEdited is how many exchanges with a projection it takes to say anything.
const leastEdited = 20

// Advice tells anyone who pays that they would pay less without compression.
type Advice struct {
	Lost      int64 // what compression has cost more than it saved, in millionths of a US dollar; positive
	Without   int64 // what the exchanges would have cost without it
	Exchanges int64 // under a projection
}

// Advise returns advice where exchanges have cost more with compression than they
// would have without it. edited is how many of them had a projection, paid what they
// cost and net what they saved; ok is false where nothing was lost, or where fewer
// than 20 had a projection.
func Advise(edited, paid, net int64) (advice Advice, ok bool) {
	if net >= 0 || edited < leastEdited {
		return Advice{}, false
	}
	return Advice{Lost: -net, Without: paid + net, Exchanges: edited}, true
}

// IsLoss reports whether compression of a lane has lost money, as Balance.IsLoss
// does: net is what the lane has saved in all, decisions are its epochs in order.
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

// What people are told: the kinds of notices, and the warnings in X-Palimpsest-Warning.
const (
	NoticeLoss       = "net-loss"   // compression has cost more than it saved
	NoticeIncomplete = "incomplete" // a compaction lost something that can't be recalled
	NoticeTruncated  = "truncated"  // something left the prompt for which nothing stands
	NoticeEpochs     = "epochs"     // a lane has had many epochs
)

// Notice says that sessions need attention, and names the one that needs it most.
type Notice struct {
	Kind     string
	Sessions int       // that it is about
	Session  uuid.UUID // the one that needs it most
	Title    string    // of that one; may be empty
	Net      int64     // NoticeLoss: what all of them saved, in millionths of a US dollar; negative
	Epochs   int       // NoticeEpochs: of the session's lane with most; NoticeLoss: of the session
}
