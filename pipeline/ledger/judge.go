package ledger

// IsDirective reports whether a sentence that a person typed is a standing order, as
// the ledger judges it.
func IsDirective(sentence string) bool { return isDirective(sentence) }

// IsDecision reports whether a sentence decides something, as the ledger judges it.
func IsDecision(sentence string) bool { return isDecision(sentence) }
