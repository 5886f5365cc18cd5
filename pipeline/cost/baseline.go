package cost

// SelfCompacts is the share of the window above which a client that compacts its own
// history has it summarized, and SelfSummary the tokens of the summary: what is observed
// of coding agents.
const (
	SelfCompacts = 0.92
	SelfSummary  = 8_000
)

// Baseline returns the size of the prompt that savings are counted against. sent is the
// prompt as the client sent it, ahead the part before its messages, limit what the model
// takes; 0 means unknown. fits is false if the provider would have refused the prompt:
// savings have no baseline then.
//
// Above SelfCompacts of the limit a client would have replaced its history with a summary.
// Where that is shorter than what it sent, it is the baseline. What the summary costs to
// write is not added: the baseline is the cheaper of both.
func Baseline(sent, ahead, limit int) (size int, fits bool) {
	if limit <= 0 {
		return sent, true
	}
	if sent > limit {
		return 0, false
	}
	above := sent - int(SelfCompacts*float64(limit))
	if above <= 0 {
		return sent, true
	}
	return min(sent, ahead+SelfSummary+above), true
}
