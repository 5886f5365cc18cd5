package ledger

import (
	"slices"
	"strings"

	"palimpsest/pipeline/expression"
)

// lasting are the words that say for how long, or how often, a request applies.
var lasting = cuesOf(
	"from here on", "from this point", "from today on", "henceforth", "moving forward", "in general",
	"for the rest of", "for the remainder of", "until i say", "until i tell", "until told otherwise", "until further notice", "unless i say", "unless i tell", "unless told otherwise",
	"starting today", "starting now", "as of now", "as of today", "as long as", "whenever", "every time", "each time", "any time", "anytime", "habit",
)

// futureOn matches "in future" if it says since when something applies.
var futureOn = expression.New(`\bin (?:the )?future(?:[,.!;:]|$| (?:please|use|do|don't|always|never|make|only|you|we|i)\b)`)

// ownActs matches a sentence about each thing of a kind that its reader does: "after each change
// you make", "in anything you write".
var ownActs = expression.New(`\b(?:(?:each|every|any) [\w-]+(?: [\w-]+)?|anything|everything|whatever) (?:that )?you(?: [a-z']+|\b)`)

// general are the words of an opening phrase that apply a request to each case, by the first word
// of the phrase: "in every answer, …", "when you write SQL, …".
var general = map[string][]string{
	"for": eachOf, "in": eachOf, "at": eachOf, "on": eachOf, "with": eachOf,
	"when": eachCase, "if": eachCase, "before": eachCase, "after": eachCase, "once": eachCase, "while": eachCase, "as": eachCase,
}

var (
	eachOf   = []string{"each", "every", "any", "all"}
	eachCase = []string{"each", "every", "any", "you", "your", "we", "a", "an", "something", "anything", "doubt", "possible", "necessary", "needed", "unsure"}
)

// choosing are the words after "if you" in advice.
var choosing = []string{"want", "wish", "need", "like", "would", "prefer", "look", "can"}

// mustBe matches rules about results: "every commit should …", "your answers have to …".
var mustBe = expression.New(`^(?:(?:please|and|also|but), |(?:please|and|also|but) )?(?:every|each|all|any|no|your)(?: [\w'-]+){1,4}? (?:should|must|shall|needs?|(?:has|have|ought) to|(?:is|are) to)\b`)

// ruled matches a person's statement of a rule: "our policy is …", "you are not allowed to …".
var ruled = expression.New(`\b(?:my|our) (?:[\w'-]+ )?(?:rules?|policy|conventions?|guidelines?|standards?|habits?)(?: [\w'-]+){0,3}? (?:is|are)\b` +
	`|\byou(?:'re| are) (?:not (?:allowed|permitted)|only to|to)\b|\bwithout my\b|\b(?:forbidden|off limits)\b`)

// wantsAll matches wishes for everything of a kind: "I want all new endpoints to …".
var wantsAll = expression.New(`\b(?:i|we)(?:'d| would)? (?:want|need|expect|like) (?:all|every|each|any|no)\b`)

// ruling are words of which each match of ruled and wantsAll has one. The check is worth it because
// most sentences have none of them, and the expressions take many times as long.
var ruling = cuesOf(
	"rule", "rules", "policy", "convention", "conventions", "guideline", "guidelines", "standard", "standards", "habit", "habits",
	"you're", "you are", "without my", "forbidden", "off limits", "want", "need", "expect", "like",
)

// whenYou are the words after an imperative that apply it to each case.
var whenYou = cuesOf(
	"before you", "after you", "when you", "whenever you", "while you", "if you", "unless you", "once you", "unless i", "until i",
	"after each", "after every", "before each", "before every", "before any", "in all", "in every", "your answers", "your replies", "your responses",
)

// wishes matches polite wishes about the reader's actions: "I'd appreciate it if you …".
var wishes = expression.New(`\b(?:i|we|it)(?:'d| would)(?: [a-z]+){1,3} if you\b`)

// doing matches the action that an imperative must precede: "ask before installing …".
var doing = expression.New(`\bbefore [a-z]+ing\b`)

// longestOrder limits the sentences that are examined for their duration, in bytes, because a
// longer one is pasted.
const longestOrder = 400

// holdsOn reports whether a sentence in lower case asks for something and says that it applies
// from then on, or in each case of a kind.
func holdsOn(low string) bool {
	if len(low) > longestOrder {
		return false
	}
	if mustBe.MatchString(low) || ruling.in(low) && (wantsAll.MatchString(low) || ruled.MatchString(low)) {
		return true
	}
	holds := lasting.in(low) || strings.Contains(low, "future") && futureOn.MatchString(low)
	if !holds && strings.Contains(low, " you") {
		act := ownActs.FindString(low)
		holds = act != "" && !slices.Contains(choosing, act[strings.LastIndexByte(act, ' ')+1:])
	}
	return holds && requested(low)
}

// holdsInCase reports whether a sentence in lower case gives an order for a case that may come
// again, or for one thing over another.
func holdsInCase(low string) bool {
	if len(low) > longestOrder {
		return false
	}
	if opening, rest, found := strings.Cut(low, ", "); found && isGeneral(opening) && isImperative(rest) {
		return true
	}
	if strings.Contains(low, " if you ") && wishes.MatchString(low) {
		return true
	}
	return isImperative(low) && (whenYou.in(low) || doing.MatchString(low) || strings.Contains(low, ", not "))
}

// isGeneral reports whether an opening phrase applies the rest to each case.
func isGeneral(opening string) bool {
	words := strings.Fields(opening)
	if len(words) < 2 {
		return false
	}
	if words[0] == "please" || words[0] == "and" || words[0] == "also" || words[0] == "but" {
		words = words[1:]
	}
	among := general[words[0]]
	if at := slices.Index(words, "you"); at > 0 && at+1 < len(words) && slices.Contains(choosing, words[at+1]) {
		return false
	}
	return slices.ContainsFunc(words[1:min(3, len(words))], func(word string) bool { return slices.Contains(among, word) })
}

// requests are the words in which a sentence asks its reader for something.
var requests = cuesOf(
	"please", "i want", "i'd like", "i would like", "we want", "i need", "i expect", "you should", "you have to", "you need to", "you can",
	"let's", "can you", "could you", "would you", "will you",
)

// requested reports whether a sentence in lower case asks its reader for something.
func requested(low string) bool {
	if requests.in(low) {
		return true
	}
	for clause := range strings.FieldsFuncSeq(low, func(r rune) bool { return strings.ContainsRune(",;:–—", r) }) {
		if isImperative(clause) {
			return true
		}
	}
	return isImperative(low[lasting.end(low):]) // "henceforth use tabs"
}

// leading are words before an imperative.
var leading = []string{"please", "also", "and", "but", "so", "then", "just", "kindly", "always", "never", "ok", "okay", "now", "only", "instead", "try to", "make sure to", "do me a favor and", "if possible"}

// isImperative reports whether a clause in lower case begins with an imperative: with a word
// that looks like a verb, doesn't begin a statement or a question, and isn't a noun before its
// verb.
func isImperative(clause string) bool {
	clause = strings.TrimSpace(clause)
	for cut := true; cut; {
		cut = false
		for _, word := range leading {
			if rest, has := strings.CutPrefix(clause, word); has && (strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, ", ")) {
				clause, cut = strings.TrimLeft(rest, ", "), true
			}
		}
	}
	verb, rest, _ := strings.Cut(clause, " ")
	next, _, _ := strings.Cut(rest, " ")
	if verb = strings.TrimRight(verb, ".!"); !isVerbLike(verb) {
		return false
	}
	switch verb {
	case "do", "have":
		return !startsNoOrder[next]
	}
	return !startsNoOrder[verb] && !finite[next]
}

// isVerbLike reports whether a word may be a verb in its plain form.
func isVerbLike(word string) bool {
	for i := range len(word) {
		if (word[i] < 'a' || word[i] > 'z') && word[i] != '-' {
			return false
		}
	}
	switch {
	case len(word) < 2, strings.HasSuffix(word, "ing") && word != "bring", strings.HasSuffix(word, "ed") && !strings.HasSuffix(word, "eed") && word != "embed":
		return false
	case strings.HasSuffix(word, "s"):
		return strings.HasSuffix(word, "ss") || word == "focus"
	case strings.HasSuffix(word, "ly"):
		return strings.HasSuffix(word, "ply") || word == "rely"
	}
	return true
}

// startsNoOrder are words at the beginning of a statement or a question.
var startsNoOrder = setOf(`whenever wherever whatever anytime i you he she it we they me us this that these those there here who what which where when why how whose a an the my your his her its our their each
	every any all some no none both either neither many much few most several another other such in on at by for from to with without about under over after before during since until of
	off up down out into onto through between among as per if while because although though unless whether and or but so then than once is are was were am been has had does did will would
	can could should shall may might must yes not ok okay thanks thank maybe perhaps well hi hello hey sorry great good nice sure right very too also still just even first last next one two
	three today tomorrow yesterday everything anything something nothing everyone someone nobody people again later it's i'm i'd i'll i've you're you'd we're we've we'd that's there's
	he's she's they're what's don't won't can't couldn't didn't doesn't isn't aren't wasn't let's`)

// finite are words after a noun that begins a statement.
var finite = setOf(`is are was were has had have will would can could should shall may might must does do did never always seems seem looks look isn't aren't wasn't doesn't don't didn't won't can't`)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// idioms begin sentences that look like a prohibition but aren't.
var idioms = []string{"never mind", "nevermind", "don't worry", "do not worry", "dont worry", "no worries"}

// describes reports whether a sentence in lower case with the word always or never describes a
// present or past state: "it always fails", "the cache is never filled".
func describes(low string) bool {
	before, behind, word := "", "", ""
	words := strings.Fields(low)
	for i := range words {
		if words[i] != "always" && words[i] != "never" {
			continue
		}
		if word != "" {
			return false
		}
		word = words[i]
		if i > 0 {
			before = words[i-1]
		}
		if i+1 < len(words) {
			behind = strings.Trim(words[i+1], ".,;:!")
		}
	}
	switch {
	case word == "" || before == "":
		return false
	case slices.Contains([]string{"is", "are", "was", "were", "has", "had", "been", "it's"}, before):
		return behind != "to" && behind != "ok" && behind != "okay"
	}
	return strings.HasSuffix(behind, "s") && !strings.HasSuffix(behind, "ss") && !strings.HasSuffix(behind, "us") ||
		strings.HasSuffix(behind, "ed") && !strings.HasSuffix(behind, "eed") && behind != "embed"
}
