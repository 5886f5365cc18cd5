package ledger

import (
	"strings"

	"palimpsest/pipeline/expression"
)

// prefers matches a person's statement of a preference.
var prefers = expression.New(`(?i)\b(?:i|we)(?:['’]d| would)?(?: really| strongly| generally| usually| also| still| always| do| much| tend to)? (?:prefer|favor|favour)\b` +
	`|\b(?:i|we)(?:['’]d| would) (?:rather|sooner)\b|\b(?:my|our)(?: \w+)? preference(?: is| would be|:)|\b(?:my|our) preferred\b|\b(?:i|we)(?: really| also)? (?:like|love) it (?:better|best|when|if)\b` +
	`|\b(?:i|we)(?: really| absolutely| just)? (?:hate|dislike|detest|can['’]t stand|cannot stand)\b` +
	`|\bich bevorzuge\b|\b(?:möchte|hätte|mag) (?:\S+ )?lieber\b|\bje préfère\b|\bprefiero\b|\bpreferisco\b|\bprefiro\b`)

// preferring are words of which each match of prefers has one. The check is worth it because most
// sentences have none of them, and the expression takes many times as long.
var preferring = cuesOf("prefer", "favor", "favour", "rather", "sooner", "preference", "preferred", "like it", "love it",
	"hate", "dislike", "detest", "stand", "bevorzuge", "lieber", "préfère", "prefiero", "preferisco", "prefiro")

// ofMoment matches momentary dislikes: "I hate this bug".
var ofMoment = expression.New(`(?i)^\S+(?: \w+)? (?:hate|dislike|detest|can['’]t stand|cannot stand) (?:this|that|it|to|how|when|you)\b`)

// goesOn matches the point, after a comma or a dash, where a sentence goes on with a question or
// another topic.
var goesOn = expression.New(`(?i)(?:[,;–—]| -) *(?:(?:and|but|so|or|then|also|now|please|though) )*` +
	`(?:(?:can|could|would|will|do|does|did|is|are|am|was|should|shall|may|might|have|has|any|how|what|which|where|when|why|who)\b` +
	`|i['’]m (?:not sure|wondering|looking|trying|struggling|worried|unsure)|i was wondering|help me\b|let me know|show me\b|tell me\b|what do you)`)

// preference returns a person's stated preference in a sentence that may also ask for something:
// "I'm short of space, so I prefer small libraries, can you find one?" holds "I prefer small
// libraries".
func preference(sentence string) (preferred string, found bool) {
	if !preferring.in(lower(sentence)) {
		return "", false
	}
	at := prefers.FindStringIndex(sentence)
	if at == nil {
		return "", false
	}
	preferred = sentence[at[0]:]
	if ofMoment.MatchString(preferred) || strings.HasSuffix(lower(strings.TrimRight(sentence, " .!?")), "prefer that") {
		return "", false
	}
	if end := goesOn.FindStringIndex(preferred); end != nil {
		preferred = preferred[:end[0]]
	}
	preferred = strings.TrimRight(preferred, " ?")
	return preferred, len(preferred) > at[1]-at[0]+1
}

// tasks are words that give an order at the beginning of a sentence, but mostly describe the
// current work within one.
var tasks = cuesOf("make sure", "be sure to", "ensure")

// polite are words before an order.
var polite = []string{"please ", "and ", "but ", "also ", "so ", "then ", "ok, ", "okay, ", "yes, ", "1. ", "2. ", "3. ", "4. ", "5. "}

// isStrong reports whether a directive is more than a wish for the current work. If the directives
// do not all fit, the others go first.
func isStrong(directive string) bool {
	low := withoutAsides(lower(directive))
	if tasks.starts(low) || preferring.in(low) && prefers.MatchString(low) {
		return true
	}
	if strings.HasSuffix(low, "?") || startsWith(low, []string{"i've never", "i have never", "i always", "we've never", "we have never"}) {
		return false
	}
	if !standing.in(low) && !ever.in(low) && !holdsOn(low) && holdsInCase(low) {
		return false
	}
	return !tasks.in(low) || standing.starts(low) || ever.starts(low)
}
