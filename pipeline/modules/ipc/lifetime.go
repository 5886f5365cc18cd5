package ipc

import (
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
)

const (
	// fewThreads is how many threads of a kind have to have ended before they say how long one lives.
	fewThreads = 8
	// longestThreads is how many of the longest count where fewer have come as far as this one, and
	// outlivedBy how many times as long as the longest a thread is that is of another kind.
	longestThreads = 3
	outlivedBy     = 1.5
)

// endsSoon is why an epoch is put off that a thread would not live long enough to earn.
const endsSoon = "ends_soon"

// remaining returns how many requests are to be expected behind this one, as threads of the kind lived that
// have ended, and whether those tell: the mean of what those that came as far still had before them.
func remaining(exchange *pipeline.View) (requests float64, known bool) {
	lives, length := exchange.Lives, len(exchange.Digests)
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
	return float64(rest) / float64(len(survivors)) / stride(exchange.Digests), true
}

// stride returns by how many messages the conversation grows with a request.
func stride(digests []conversation.Digest) float64 {
	answers := 0
	for i := range digests {
		if digests[i].Role == conversation.Assistant && (i == 0 || digests[i-1].Role != conversation.Assistant) {
			answers++
		}
	}
	return max(1, float64(len(digests))/float64(max(1, answers)))
}

// outlived reports whether an epoch would not earn its price in the requests that are to be expected. The
// rule of rent or buy needs no forecast, and loses by its nature where a thread ends right after it has
// bought; with one it need not. A gain is what the epoch saves in this request and those behind it.
func (p prediction) outlived(exchange *pipeline.View, read float64) bool {
	requests, known := remaining(exchange)
	if !known {
		return false
	}
	return p.once+float64(p.freed)*read*min(requests, horizon) < 0
}
