package rehydrator

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"palimpsest/pipeline/expression"
)

// The words of phrases. A phrase means that something was said, seen or done; the words before and
// earlier alone do not.
const (
	person = `(?:you|we|i|they|claude|it)`

	past = `(?:ran|run|said|told|read|saw|seen|looked(?: at| into| up)?|found|wrote|written|tried|discussed|talked(?: about)?|mentioned|decided(?: on)?|` +
		`agreed(?: on| to)?|used|showed|shown|printed|got|gotten|posted|pasted|sent|gave|given|opened|edited|created|changed|fixed|made|did|done|tested|suggested|proposed|` +
		`recommended|planned|listed|named|called|checked|reviewed|quoted|reported|returned|explained|described|computed|measured|came up with|settled on|wanted|asked(?: for)?|` +
		`had|went (?:over|through|with)|stored|added|removed|noted|worked on|chose|picked|ruled out)`

	base = `(?:run|say|tell|read|see|look at|find|write|try|discuss|mention|decide|agree|use|show|print|get|post|open|edit|create|change|fix|make|do|test|suggest|` +
		`propose|recommend|plan|list|name|call|check|review|quote|report|return|explain|describe|measure|come up with|settle on|output|conclude|answer|choose|pick|rule out|want)`

	earlier = `(?:earlier|previously|a (?:while|moment) (?:ago|back)|some time ago|at the (?:very )?(?:start|beginning)|in the beginning|originally|initially|the (?:first|last) time|last time|yesterday|` +
		`(?:in|from|during) (?:an|the|my|our|your) (?:earlier|previous|last|first|other) (?:session|conversation|message|turn|run|attempt|test run|answer|reply))`

	record = `(?:errors?|outputs?|results?|commands?|logs?|traces?|stack traces?|plans?|lists?|answers?|runs?|attempts?|suggestions?|proposals?|ideas?|approach|approaches|` +
		`sessions?|conversations?|discussions?|reports?|summary|summaries|reviews?|designs?|findings?|measurements?|decisions?)`
)

// phrases are the ways in which people refer to earlier turns; each is one sentence's.
var phrases = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		// "earlier you ran a command", "the number you told me at the beginning"
		regexp.MustCompile(`\b` + earlier + `\b.{0,60}\b` + person + `(?:'d|'ve| had| have| has| also| already)* ` + past + `\b`),
		regexp.MustCompile(`\b` + person + `(?:'d|'ve| had| have| has| also| already| just)* ` + past + `\b.{0,80}\b` + earlier + `\b`),
		regexp.MustCompile(`\b(?:you|we|i)(?:'d|'ve| had| have| also| already)* (?:ran|said|told|read|saw|looked at|found|wrote|tried|discussed|mentioned|decided|agreed|showed|printed|posted|pasted|suggested|proposed)\b.{0,60}\bbefore\s*[?.!]*$`),
		// "what did the migration test print", "which port did we settle on"
		regexp.MustCompile(`\b(?:what|which|how|where|why|who|when)\b.{0,40}\b(?:did|was|were|had|have|has)\b.{0,80}\b(?:` + past[3:len(past)-1] + `|` + base[3:len(base)-1] + `)\b`),
		regexp.MustCompile(`\bwhat(?:'s| is| was| were)\b.{0,60}\b` + earlier + `\b`),
		// "the config we looked at", "those numbers you gave me"
		regexp.MustCompile(`\b(?:the|that|those|this|these)(?: [\w./'-]+){1,5}?(?: that| which)? (?:you|we|i)(?:'d|'ve| had| have| just| already| first)* ` + past + `\b`),
		// "do you remember", "as we agreed", "back to the plan"
		regexp.MustCompile(`\b(?:do|can|did|don't) you (?:still )?(?:remember|recall)\b`),
		regexp.MustCompile(`\b(?:remember|recall) (?:when|how|what|which|where|the|our)\b`),
		regexp.MustCompile(`\bremind me\b.{0,20}\b(?:what|which|how|of|where|who|why)\b`),
		regexp.MustCompile(`\b(?:as|like) (?:we|you|i)(?:'d|'ve| had| have)? (?:already )?(?:said|discussed|agreed|decided|mentioned|described|planned|noted|suggested|proposed|talked about)\b`),
		regexp.MustCompile(`\b(?:go|going|come|coming|get|getting|refer|referring|scroll|switch|return|returning) back to (?:the|what|when|where|your|our|that)\b`),
		// "did we fix the logger.go comment?"
		regexp.MustCompile(`\b(?:did|didn't|have|haven't) (?:we|you|i)\b(?: ever| already| not| actually| really)* (?:` + base[3:len(base)-1] + `|` + past[3:len(past)-1] + `)\b.*\?`),
		// "the error from the first run", "your previous suggestion"
		regexp.MustCompile(`\b(?:the|that|your|our|my) (?:earlier|previous|original|initial|very first) (?:\w+ ){0,2}` + record + `\b`),
		regexp.MustCompile(`\b(?:the|that|those|which) ` + record + ` (?:from|of|in) (?:the |your |our )?(?:earlier|before|first|beginning|start|previous|last time|yesterday)\b`),
	}
})

// orders match sentences that ask to keep something in mind.
var orders = expression.New(`^(?:please )?(?:always |never )?(?:remember|recall|note|keep in mind|don't forget)(?: to\b| that\b|:|,)`)

const (
	maxTyped    = 4 << 10 // bytes of a typed text that are searched, at its beginning and at its end
	maxSentence = 400     // bytes; longer ones are pasted
)

// refers returns the sentences of a typed text that refer to earlier turns; extra are further
// phrases, in lower case.
func refers(typed string, extra []string) []string {
	var found []string
	for _, sentence := range sentences(typed) {
		low := strings.ToLower(strings.ReplaceAll(sentence, "’", "'"))
		if isReference(low, extra) {
			found = append(found, sentence)
		}
	}
	return found
}

func isReference(low string, extra []string) bool {
	for _, phrase := range extra {
		if phrase != "" && strings.Contains(low, strings.ToLower(phrase)) {
			return true
		}
	}
	if !isCued(low) || orders.MatchString(low) {
		return false
	}
	for _, phrase := range phrases() {
		if phrase.MatchString(low) {
			return true
		}
	}
	return false
}

// isCued reports whether a sentence holds a cue word. Each phrase has at least one of them. The
// check is worth it because most sentences hold no cue and the phrases take a hundred times as
// long.
func isCued(low string) bool {
	for word := range strings.FieldsFuncSeq(low, func(r rune) bool { return r < 'a' || r > 'z' }) {
		switch word {
		case "you", "we", "i", "did", "was", "were", "had", "have", "has", "remember", "recall", "remind",
			"earlier", "previously", "previous", "originally", "original", "initially", "initial", "first", "last", "other",
			"before", "ago", "back", "start", "beginning", "time", "yesterday":
			return true
		}
	}
	return false
}

// sentences returns the sentences that a person wrote in a text, without code, quotations and logs.
func sentences(typed string) []string {
	var found []string
	fenced := false
	for line := range strings.Lines(ends(typed)) {
		text := strings.TrimSpace(line)
		if strings.HasPrefix(text, "```") {
			fenced = !fenced
			continue
		}
		if fenced || text == "" || strings.HasPrefix(text, ">") || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t") {
			continue
		}
		for text != "" {
			end := sentenceEnd(text)
			if sentence := strings.TrimSpace(text[:end]); sentence != "" && len(sentence) <= maxSentence {
				found = append(found, sentence)
			}
			text = text[end:]
		}
	}
	return found
}

// ends returns the beginning and the end of a long text.
func ends(text string) string {
	if len(text) <= 2*maxTyped {
		return text
	}
	return strings.ToValidUTF8(text[:maxTyped], "") + "\n" + strings.ToValidUTF8(text[len(text)-maxTyped:], "")
}

// sentenceEnd returns the end of the first sentence of a line.
func sentenceEnd(text string) int {
	for i, r := range text {
		next := i + utf8.RuneLen(r)
		switch r {
		case '.', '!', '?', '؟':
			if next < len(text) && text[next] == ' ' {
				return next
			}
		case '。', '！', '？':
			return next
		}
	}
	return len(text)
}
