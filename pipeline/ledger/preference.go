package ledger

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
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
	if !orderCues.in(low) && !ever.in(low) && !holdsOn(low) && holdsInCase(low) {
		return false
	}
	return !tasks.in(low) || orderCues.starts(low) || ever.starts(low)
}

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

// cues are words that reveal the kind of a sentence.
type cues struct {
	byFirst map[string][]string // by their first word
	lengths [256]uint64         // by the first byte: a bit for each length of a first word
}

// cuesOf makes cues of words in lower case.
func cuesOf(list ...string) *cues {
	c := &cues{byFirst: map[string][]string{}}
	for _, words := range list {
		first := words[:wordEnd(words, 0)]
		c.byFirst[first] = append(c.byFirst[first], words)
		c.lengths[words[0]] |= bit(len(first))
	}
	return c
}

// bit is the bit for a length of a word; long ones share one.
func bit(length int) uint64 { return 1 << min(length, 63) }

// in reports whether a text in lower case holds any of the words, as words.
func (c *cues) in(low string) bool {
	for at := 0; at < len(low); {
		if !isWordByte(low[at]) {
			at++
			continue
		}
		end := wordEnd(low, at)
		if c.after(low[at:], end-at) > 0 {
			return true
		}
		at = end
	}
	return false
}

// starts reports whether a text in lower case begins with any of the words.
func (c *cues) starts(low string) bool { return c.end(low) > 0 }

// end returns the position after the words that a text in lower case begins with; 0 if it
// doesn't begin with any.
func (c *cues) end(low string) int { return c.after(low, wordEnd(low, 0)) }

// after is end for a text whose first word has a known length. It rejects most words at once,
// because no cue with the same first byte has their length.
func (c *cues) after(low string, first int) int {
	if low == "" || c.lengths[low[0]]&bit(first) == 0 {
		return 0
	}
	for _, words := range c.byFirst[low[:first]] {
		if strings.HasPrefix(low, words) && (len(low) == len(words) || !isWordByte(low[len(words)]) || !isWordByte(words[len(words)-1])) {
			return len(words)
		}
	}
	return 0
}

// wordEnd returns the end of the word that begins at from.
func wordEnd(text string, from int) int {
	for from < len(text) && isWordByte(text[from]) {
		from++
	}
	return from
}

// hasWords returns the position of words in a text, as whole words; -1 if absent.
func hasWords(text, words string) int {
	for at := 0; ; {
		i := strings.Index(text[at:], words)
		if i < 0 {
			return -1
		}
		i += at
		end := i + len(words)
		if (i == 0 || !isWordByte(text[i-1])) && (end == len(text) || !isWordByte(text[end])) {
			return i
		}
		at = end
	}
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '\''
}
