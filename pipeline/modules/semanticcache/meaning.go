package semanticcache

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMeaning bounds the texts that are compared by their meaning, in bytes: what is
// longer carries material, not a question.
const maxMeaning = 600

// Meaning returns what a text asks: equal for texts that ask the same in other
// words, by a list of rewordings that never change what is asked, and different for
// all others. ok is false for a text whose very wording may matter: one with line
// breaks, quotes, brackets or code, or that speaks of words.
//
// What is not in the list stays as it is, so that texts that differ in a number, a
// date, a unit, a name, a path, a negation, a comparative or the order of their
// words never have the same meaning.
func Meaning(text string) (meaning string, ok bool) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "’", "'"))
	if len(text) == 0 || len(text) > maxMeaning || !isPlainProse(text) || mentions(text, aboutWords) {
		return "", false
	}
	s := sentence(expand(split(text)))
	s = s.withoutCourtesy()
	s = s.withAdjunctLast().withoutCourtesy()
	s = s.asked()
	s = s.howTo()
	s = s.withoutEnd()
	if len(s) == 0 {
		return "", false
	}
	return strings.Join(s, " "), true
}

// isPlainProse reports whether a text is a line of words in which white space and
// punctuation carry nothing of their own.
func isPlainProse(text string) bool {
	if strings.Contains(text, "  ") || !utf8.ValidString(text) {
		return false
	}
	previous := ' '
	for i, r := range text {
		next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
		switch {
		case r != ' ' && unicode.IsSpace(r), unicode.IsControl(r), strings.ContainsRune("\"“”„‘«»‹›「」`()[]{}<>=|\\^~;", r):
			return false
		case r == '\'' && !(unicode.IsLetter(previous) && unicode.IsLetter(next)):
			return false // a quote, or an unclear possessive
		case r == ':' && !(unicode.IsDigit(previous) && unicode.IsDigit(next)):
			return false // what follows is material; a time of day is not
		}
		previous = r
	}
	return true
}

// sentence is a text cut into words and marks.
type sentence []string

// split cuts a text at its spaces and takes commas and ends of sentences off the
// ends of words. A mark that may be part of what it follows stays: "5!", "a?".
func split(text string) []string {
	var out []string
	for field := range strings.FieldsSeq(text) {
		word := strings.TrimRight(field, ",.?!")
		if !endsPlainly(word) || strings.Contains(field[len(word):], "!") && isFactor(word) {
			out = append(out, field)
			continue
		}
		out = append(out, word)
		for _, mark := range field[len(word):] {
			out = append(out, string(mark))
		}
	}
	return out
}

// endsPlainly reports whether a word's last character is a letter or a digit that a
// mark of punctuation may follow without belonging to it.
func endsPlainly(word string) bool {
	last, _ := utf8.DecodeLastRuneInString(word)
	return unicode.IsLetter(last) || unicode.IsDigit(last)
}

// isFactor reports whether an exclamation mark behind a word may be a factorial's.
func isFactor(word string) bool {
	last, _ := utf8.DecodeLastRuneInString(word)
	return unicode.IsDigit(last) || utf8.RuneCountInString(word) < 2
}

// contractions are written out wherever they stand.
var contractions = map[string][]string{
	"what's": {"what", "is"}, "where's": {"where", "is"},
	"don't": {"do", "not"}, "doesn't": {"does", "not"}, "didn't": {"did", "not"},
	"isn't": {"is", "not"}, "aren't": {"are", "not"}, "wasn't": {"was", "not"}, "weren't": {"were", "not"},
	"can't": {"cannot"}, "couldn't": {"could", "not"}, "won't": {"will", "not"}, "wouldn't": {"would", "not"}, "shouldn't": {"should", "not"},
	"haven't": {"have", "not"}, "hasn't": {"has", "not"}, "i'm": {"I", "am"}, "i'd": {"I", "would"},
}

// expand writes contractions out and folds the case of the words that begin
// requests: those are never names.
func expand(words []string) []string {
	out := make([]string, 0, len(words)+4)
	for i, word := range words {
		lower := strings.ToLower(word)
		if full, short := contractions[lower]; short {
			out = append(out, full...)
			continue
		}
		begins := i == 0 || slices.Contains([]string{",", ".", "!", "?"}, words[i-1])
		switch {
		case lower == "i":
			word = "I"
		case begins:
			word = opened(word)
		}
		out = append(out, word)
	}
	return out
}

// openers are words at the start of a sentence that mean the same in either case.
var openers = phrases(`
	what|how|why|when|where|which|who|is|are|do|does|did|can|could|should|would|will|has|have|was|were|a|an|the|in|using|with|i
	please|hi|hello|hey|thanks|thank|tell|explain|describe|show|give|list|write|create|compare|define|name|find|make|let|outline
`)

// starts reports whether the sentence begins with the words of a phrase.
func (s sentence) starts(phrase string) bool {
	words := strings.Fields(phrase)
	return len(s) >= len(words) && slices.Equal(s[:len(words)], words)
}

// without returns the sentence without a phrase at its start, the first that it
// begins with.
func (s sentence) without(phrases ...string) (rest sentence, found bool) {
	for _, phrase := range phrases {
		if s.starts(phrase) {
			return s[len(strings.Fields(phrase)):], true
		}
	}
	return s, false
}

// withoutCourtesy takes greetings, "please" and thanks off both ends, and "could you"
// in front of what someone is asked to tell.
func (s sentence) withoutCourtesy() sentence {
	return s.withoutThanks().withoutGreeting()
}

func (s sentence) withoutGreeting() sentence {
	for again := true; again; {
		again = false
		if rest, found := s.without("hi ,", "hi !", "hi .", "hello ,", "hello !", "hello .", "hey ,", "hey !", "hi there ,", "hi there !", "hello there ,", "hello there !", "please ,", "please"); found && len(rest) > 0 {
			s, again = rest.opened(), true
		}
		if rest, found := s.without("could you please", "can you please", "would you please", "could you", "can you", "would you", "I would like you to", "I want you to", "I need you to"); found && len(rest) > 0 && told[rest[0]] {
			s, again = rest.asRequest(), true
		}
	}
	return s
}

func (s sentence) withoutThanks() sentence {
	for again := true; again; {
		again = false
		end := s.end()
		for _, thanks := range []string{"please", "thanks", "thank you", "thanks in advance", "thank you in advance", "thanks a lot", "thank you very much"} {
			words := strings.Fields(thanks)
			at := end - len(words)
			// Only behind a mark: "how do I spell please" asks for the word.
			if at > 1 && strings.EqualFold(strings.Join(s[at:end], " "), thanks) && isMark(s[at-1]) {
				s, again = slices.Clip(s[:at]), true
				if s[at-1] == "," {
					s = s[:at-1]
				}
				break
			}
		}
	}
	return s
}

// asRequest takes the question mark off a request that was put as a question.
func (s sentence) asRequest() sentence {
	if end := s.end(); len(s)-end == 1 && s[end] == "?" {
		return s[:end]
	}
	return s
}

// opened folds the case of a sentence's first word.
func (s sentence) opened() sentence {
	if len(s) == 0 {
		return s
	}
	return append(sentence{opened(s[0])}, s[1:]...)
}

// opened folds the case of a word at the start of a sentence if it is one that
// begins requests.
func opened(word string) string {
	lower := strings.ToLower(word)
	if !openers[lower] || lower == "i" || word[1:] != lower[1:] {
		return word // "IS" is an abbreviation
	}
	return lower
}

// told are the verbs in front of which "could you" asks for nothing else.
var told = phrases("tell|explain|show|describe|give|list|define|outline|compare")

func isMark(word string) bool {
	return slices.Contains([]string{",", ".", "?", "!"}, word)
}

// end returns where the marks at the sentence's end begin.
func (s sentence) end() int {
	end := len(s)
	for end > 0 && isMark(s[end-1]) {
		end--
	}
	return end
}

// maxAdjunct is how many words may stand behind "in" in an adjunct that moves.
const maxAdjunct = 3

// withAdjunctLast moves an adjunct from the start to the end: "In Go, how do I …"
// asks what "How do I … in Go" does.
func (s sentence) withAdjunctLast() sentence {
	comma := slices.Index(s, ",")
	if comma < 2 || comma > 1+maxAdjunct || s[0] != "in" && s[0] != "using" {
		return s
	}
	rest := s[comma+1:].opened()
	if len(rest) < 3 || !questions[rest[0]] || slices.ContainsFunc(rest[:rest.end()], isMark) {
		return s
	}
	moved := append(sentence{}, rest[:rest.end()]...)
	moved = append(moved, s[:comma]...)
	return append(moved, rest[rest.end():]...)
}

// questions are words that a question begins with.
var questions = phrases("what|how|why|when|where|which|who|is|are|do|does|did|can|could|should|would|will|has|have|was|were|cannot")

// asked turns a question that is put inside a request into the question itself:
// "tell me what a monad is" into "what is a monad".
func (s sentence) asked() sentence {
	rest, inside := s.without("tell me", "explain to me", "explain", "do you know", "I would like to know", "I want to know", "let me know", "show me")
	if !inside || len(rest) < 3 {
		return s
	}
	if s[0] == "tell" && rest[0] == "the" {
		return append(sentence{"what", "is"}, rest...)
	}
	switch end := rest.end(); {
	case rest.starts("how to"):
		return rest
	case s[0] == "show":
		return s
	case rest[0] == "what" || rest[0] == "who" || rest[0] == "where":
		return rest.turned(end)
	case rest[0] == "how" && rest[end-1] == "works" && !slices.ContainsFunc(rest[:end-1], isVerb):
		turned := append(sentence{"how", "does"}, rest[1:end-1]...)
		return append(append(turned, "work"), "?")
	}
	return s
}

// turned puts the verb of an embedded question behind its first word, where it has
// one verb only, at its end. Any other keeps the order of its words.
func (s sentence) turned(end int) sentence {
	verb := s[end-1]
	if slices.Contains([]string{"is", "are", "was", "were"}, s[1]) {
		return append(slices.Clip(s[:end]), "?")
	}
	if !slices.Contains([]string{"is", "are", "was", "were"}, verb) || end < 3 || slices.ContainsFunc(s[1:end-1], isVerb) {
		return append(slices.Clip(s[:end]), "?")
	}
	turned := append(sentence{s[0], verb}, s[1:end-1]...)
	return append(turned, "?")
}

// isVerb reports whether a word may be the verb of a clause of its own, or joins one.
func isVerb(word string) bool {
	return isMark(word) || verbs[strings.ToLower(word)]
}

var verbs = phrases("is|are|was|were|be|been|do|does|did|has|have|had|can|could|will|would|should|may|might|must|that|which|who|whose|if|when|while|because|and|or|but|works|not|cannot")

// howTo makes one form of the ways to ask how something is done.
func (s sentence) howTo() sentence {
	rest, found := s.without("how do I", "how can I", "how to", "how does one", "how can one")
	if found && len(rest) > 1 && !statives[rest[0]] {
		return append(sentence{"how", "to"}, rest...)
	}
	if rest, found := s.without("what are the differences between", "what is the difference between"); found {
		return append(sentence{"what", "is", "the", "difference", "between"}, rest...)
	}
	if rest, found := s.without("show me an example of", "give me an example of"); found {
		return append(sentence{"give", "me", "an", "example", "of"}, rest...)
	}
	return s
}

// statives are verbs with which "how do I" asks about someone and not for a way.
var statives = phrases("look|feel|sound|seem|appear|smell|compare|rank|fare|differ|do|stand|come|rate|score|be|have|ever|possibly|know|die|perform|react|behave|relate")

// withoutEnd takes the mark off the end where it says nothing: a question is one
// without a question mark too. A statement with a question mark is a question.
func (s sentence) withoutEnd() sentence {
	end := s.end()
	if end == 0 || len(s)-end > 1 {
		return s
	}
	isQuestion := questions[s[0]]
	switch strings.Join(s[end:], "") {
	case "?":
		if !isQuestion {
			return s
		}
	case "!":
		if isQuestion {
			return s // it may be part of what is asked about
		}
	case ",":
		return s
	}
	return s[:end]
}
