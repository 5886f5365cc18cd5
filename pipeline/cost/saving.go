package cost

import (
	"math"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/tokens"
)

// Money is the cost and savings of an exchange at list prices, in millionths of a US dollar. Net can be
// negative. It is input not sent, plus Unread (cached input not read), minus Rewritten (the cache that our
// change rewrote). All three are 0 if the client's prompt could not have been sent.
type Money struct {
	Cost, Net         int64
	Unread, Rewritten int64
	Reach             bool // the provider would have rejected the client's prompt, but answered ours
	Miss              Miss
}

// Money returns the cost and savings of the exchange. before is the lane's previous prompt; nil if unknown.
// If the provider reported no prompt, only the estimated payment is counted.
func (e *Exchange) Money(before *Cached) Money {
	usage := e.Usage
	var money Money
	if usage.Reported && usage.Prompt() > 0 {
		miss := e.Miss(before)
		if baseline := e.baseline(); baseline.Fits() {
			money = e.cheaper(baseline, before, miss)
		} else {
			money.Reach = e.After <= e.Limit
		}
		money.Miss = miss
	}
	money.Cost = e.costs(e.Price)
	return money
}

// costs returns the cost of prompt and answer at a price, in millionths of a US dollar.
func (e *Exchange) costs(price tokens.Price) int64 {
	usage := e.Usage
	return price.MicroUSD(usage.Input, usage.CacheRead, usage.CacheWrite-usage.CacheWrite1h, usage.CacheWrite1h, usage.Output)
}

func (e *Exchange) baseline() Baseline {
	return Baseline{Sent: e.Before, Ahead: e.Ahead, Grown: e.Fresh, Limit: e.Limit}
}

// cheaper returns the savings against the cheaper of the client's prompt and that of a client that compacts
// itself.
func (e *Exchange) cheaper(baseline Baseline, before *Cached, miss Miss) Money {
	money := e.saved(e.Before, before, miss)
	isCached := e.Marked || e.Implicit || e.Usage.CacheRead+e.Usage.CacheWrite > 0
	if size, summary, ok := baseline.Compacted(e.Price, isCached); ok {
		other := e.saved(size, before, miss)
		other.Net += int64(math.Round(summary))
		if other.Net < money.Net {
			return other
		}
	}
	return money
}

// saved returns the savings against a prompt of some size, as the package comment explains. Text added to a
// prompt reduces them.
func (e *Exchange) saved(size int, before *Cached, miss Miss) Money {
	notSent := float64(size - e.After)
	known := before != nil && before.Tokens > 0
	price := e.Price.Of(size)
	dearer := e.costs(price) - e.costs(e.Price) // of the whole request, which a longer prompt makes dearer
	if e.Usage.CacheRead+e.Usage.CacheWrite == 0 && !known {
		return Money{Net: int64(math.Round(notSent*price.Input)) + dearer}
	}
	written, read := e.written(price), price.CacheRead
	share := e.readShare(miss)
	unread, rewritten := notSent*share*read, 0.0
	if miss.Cause == PrefixChangeOurs {
		paid := e.Price.Of(e.Usage.Prompt())
		rewritten = float64(miss.Tokens) * (e.written(paid) - paid.CacheRead)
	}
	return Money{
		Net:    int64(math.Round(unread+notSent*(1-share)*written-rewritten)) + dearer,
		Unread: int64(math.Round(unread)), Rewritten: int64(math.Round(rewritten)),
	}
}

// readShare returns which part of the input not sent would have been read from the cache.
func (e *Exchange) readShare(miss Miss) float64 {
	if miss.Cause == PrefixChangeOurs || e.Replayed <= 0 {
		return 1
	}
	return min(1, float64(e.Usage.CacheRead)/float64(e.Replayed))
}

// written returns the mean price of the tokens that the provider did not read from its cache in this
// exchange, in US dollars for a million tokens, given the price of each kind.
func (e *Exchange) written(price tokens.Price) float64 {
	usage := e.Usage
	size := usage.Input + usage.CacheWrite
	if size == 0 {
		return price.Input
	}
	hour := float64(usage.CacheWrite1h)
	paid := float64(usage.Input)*price.Input + (float64(usage.CacheWrite)-hour)*price.CacheWrite + hour*price.CacheWrite1h
	return paid / float64(size)
}

// SelfCompacts is the share of a model's limit above which a client replaces its history with its own
// summary, and SelfSummary the size of that summary, as observed in coding agents.
const (
	SelfCompacts = 0.92
	SelfSummary  = 8_000
)

// Baseline is a prompt as the client sent it, in tokens, to which savings are compared.
type Baseline struct {
	Sent  int
	Ahead int // of Sent, the part before the messages
	Grown int // of Sent, the part that the previous prompt lacked
	Limit int // the model's limit; 0 if unknown
}

// Fits reports whether the provider would have accepted the prompt's length.
func (b Baseline) Fits() bool { return b.Limit <= 0 || b.Sent <= b.Limit }

// Compacted returns the prompt of a client that compacted its own history above SelfCompacts of the limit,
// and its cost for the summary, in millionths of a US dollar: reading the history, cached or not, and writing
// the summary twice, once as an answer and once into the next prompt. The cost is spread in proportion to the
// prompt's growth, so that it is fully paid when the limit is reached. ok is false below SelfCompacts, and if
// the summary would not make the prompt shorter.
func (b Baseline) Compacted(price tokens.Price, isCached bool) (size int, summary float64, ok bool) {
	if b.Limit <= 0 {
		return 0, 0, false
	}
	from := int(SelfCompacts * float64(b.Limit))
	above := b.Sent - from
	size = b.Ahead + SelfSummary + above
	if above <= 0 || size >= b.Sent {
		return 0, 0, false
	}
	price = price.Of(b.Sent)
	read, write := price.Input, price.Input
	if isCached {
		read, write = price.CacheRead, price.CacheWrite
	}
	share := float64(min(max(b.Grown, 0), above)) / float64(b.Limit-from)
	return size, share * (float64(from)*read + SelfSummary*(price.Output+write)), true
}

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
