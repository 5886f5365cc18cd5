package cost

import "palimpsest/pipeline/tokens"

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
