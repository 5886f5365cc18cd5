package ledger

import (
	"slices"
	"strings"
)

// Attempt is something that was tried and failed, or was reverted.
type Attempt struct {
	Place

	Text string // in one line
}

// FailedAttempts returns the attempts that failed, and the errors that the model stopped working on.
func (l *Ledger) FailedAttempts() []Attempt {
	var all []Attempt
	for i := range l.Errors {
		if e := &l.Errors[i]; e.GivenUp {
			all = append(all, Attempt{Place: e.Place, Text: e.line()})
		}
	}
	return append(all, l.Attempts...)
}

// maxAttempts bounds how many attempts a ledger has; the oldest go first.
const maxAttempts = 60

// inVain are words of a sentence about a failed attempt.
var inVain = cuesOf(
	"didn't work", "did not work", "doesn't work", "does not work", "won't work", "will not work", "isn't working", "is not working",
	"fails because", "failed because", "broke because", "fails since", "failed since", "is not possible because", "isn't possible because",
	"wasn't enough", "was not enough", "made it worse", "dead end", "gave up on", "giving up on", "let me revert", "i'll revert", "i reverted",
	"reverting", "revert to the", "revert that", "rolled back", "rolling back", "back to the original", "abandoned", "abandoning",
)

// unsure are words that cancel the failure in a sentence.
var unsure = cuesOf(
	"if", "whether", "might", "may", "maybe", "perhaps", "could", "would", "should", "let me check", "let me see", "to see", "in case", "unless",
)

// isAttempt reports whether the model's sentence is about a failed attempt.
func isAttempt(sentence string) bool {
	if len(sentence) < 24 || len(sentence) > decisionCharacters || strings.HasSuffix(sentence, "?") {
		return false
	}
	low := lower(sentence)
	return inVain.in(low) && !unsure.in(low)
}

// addAttempt keeps an attempt; a repeated one moves to its newest place.
func (l *Ledger) addAttempt(place Place, text string) {
	text = oneLine(strings.ReplaceAll(text, "**", ""), decisionCharacters)
	l.Attempts = slices.DeleteFunc(l.Attempts, func(a Attempt) bool { return a.Text == text })
	l.Attempts = append(l.Attempts, Attempt{Place: place, Text: text})
}

// discards returns the command of a call that reverts changes of files, or "".
func discards(call *Call) string {
	if call.runner != "" || !strings.Contains(call.key, "git ") {
		return ""
	}
	for command := range strings.SplitSeq(call.key, "; ") {
		words := strings.Fields(command)
		if len(words) < 3 || words[0] != "git" {
			continue
		}
		rest := words[2:]
		switch words[1] {
		case "checkout":
			if slices.Contains(rest, "--") || slices.Contains(rest, ".") {
				return command
			}
		case "restore":
			if !slices.Contains(rest, "--staged") {
				return command
			}
		case "reset":
			if slices.Contains(rest, "--hard") && !strings.Contains(command, "origin/") && !strings.Contains(command, "upstream") {
				return command
			}
		case "revert":
			if !strings.HasPrefix(rest[0], "--") || rest[0] == "--no-edit" {
				return command
			}
		}
	}
	return ""
}
