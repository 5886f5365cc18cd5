package ledger

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// deciding are the words of a sentence that decides, or that names a discovered cause.
var deciding = cuesOf(
	"we'll use", "we will use", "i'll go with", "let's go with", "we'll go with", "going with", "let's use", "we'll keep", "let's keep",
	"decided to", "decided on", "decided that", "decided against", "decision:", "the decision is", "opted for", "opting for", "i chose", "we chose",
	"we agreed", "agreed to", "settled on", "we're using", "we should use", "is the right approach", "the right fix is", "the best approach is",
	"the issue was", "the problem was", "the bug was", "the cause was", "the cause is", "root cause", "the real issue", "the actual issue",
	"the issue is that", "the problem is that", "the bug is that", "the fix is", "the fix was", "the solution is", "turned out to be", "turned out that",
)

// doubting are words that cancel the decision in a sentence.
var doubting = cuesOf(
	"should we", "would you", "could we", "do you want", "if you", "might be", "may be", "maybe", "not sure", "let me check", "let me see",
	"could be", "option a", "alternatively", "whether", "either", "unless", "before we", "we could", "investigate", "understand the root cause",
	"find the root cause", "identify the root cause", "to see if", "the root cause of the", "perhaps", "probably",
)

// isDecision reports whether a sentence decides something. It prefers false negatives, because
// models write much and decide little of it.
func isDecision(sentence string) bool {
	if len(sentence) < 36 || len(sentence) > decisionCharacters || strings.HasSuffix(sentence, "?") || strings.HasSuffix(sentence, ":") {
		return false
	}
	low := lower(sentence)
	return (deciding.in(low) || replaces(low)) && !doubting.in(low)
}

// replaces reports whether a sentence replaces one thing by another.
func replaces(low string) bool {
	if !strings.Contains(low, " instead of ") && !strings.Contains(low, " rather than ") {
		return false
	}
	return !strings.HasPrefix(low, "let's try ") && startsWith(low, []string{
		"use ", "using ", "i'll use", "i will use", "i'm using", "i used", "we use ", "we'll ", "we now ", "let's ", "now uses", "it now ",
		"this now ", "changed ", "i changed", "switched ", "i switched", "replaced ", "i replaced", "chose ",
	})
}

// addDecision keeps a decision; a repeated one moves to its newest place.
func (l *Ledger) addDecision(decision Decision) {
	decision.Text = oneLine(strings.ReplaceAll(decision.Text, "**", ""), decisionCharacters)
	l.Decisions = slices.DeleteFunc(l.Decisions, func(d Decision) bool { return d.Text == decision.Text })
	l.Decisions = append(l.Decisions, decision)
}

// addAnswers keeps a person's choices in the client's own dialogue.
func (l *Ledger) addAnswers(place Place, result *conversation.Block) {
	answers, found := strings.CutPrefix(strings.TrimSpace(result.Text), "User has answered your questions: ")
	if !found {
		return
	}
	answers, _, _ = strings.Cut(answers, ". You can now continue")
	l.addDecision(Decision{Place: place, Role: conversation.User, Text: oneLine("Answered: "+answers, decisionCharacters)})
}
