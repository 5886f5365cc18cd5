package ipc

import (
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
)

const (
	// fewThreads is how many threads of a kind must have ended to predict how long one lives.
	fewThreads = 8
	// longestThreads is how many of the longest count if fewer have come as far as this one.
	// outlivedBy is how many times as long as the longest a thread must be to count as another
	// kind.
	longestThreads = 3
	outlivedBy     = 1.5
)

// endsSoon is the reason for putting off an epoch that the thread would not live long enough to
// earn.
const endsSoon = "ends_soon"

// remaining returns how many more requests to expect after this one, judged by threads of the kind
// that have ended: the mean of the rest of those that came as far. known is false if they can't
// tell.
func remaining(exchange *pipeline.View) (requests float64, known bool) {
	lives, length := exchange.Lane.Lives, len(exchange.Conversation.Digests)
	if len(lives) < fewThreads {
		return 0, false
	}
	if float64(length) > outlivedBy*float64(lives[len(lives)-1]) {
		return 0, false
	}
	from, _ := slices.BinarySearch(lives, length)
	survivors := lives[min(from, len(lives)-longestThreads):]
	rest := 0
	for _, life := range survivors {
		rest += max(0, life-length)
	}
	return float64(rest) / float64(len(survivors)) / stride(exchange.Conversation.Digests), true
}

// stride returns by how many messages the conversation grows per request.
func stride(digests []conversation.Digest) float64 {
	answers := 0
	for i := range digests {
		if digests[i].Role == conversation.Assistant && (i == 0 || digests[i-1].Role != conversation.Assistant) {
			answers++
		}
	}
	return max(1, float64(len(digests))/float64(max(1, answers)))
}

// outlived reports whether an epoch would not earn its price in the requests that are still
// expected. The gain is the savings in this request and the expected ones. It only counts at the
// target: by break-even, the forecast cost more than it saved with real subagents.
func (p prediction) outlived(exchange *pipeline.View, read float64) bool {
	requests, known := remaining(exchange)
	if !known {
		return false
	}
	return p.once+float64(p.freed)*read*min(requests, horizon) < 0
}
