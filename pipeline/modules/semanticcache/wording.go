package semanticcache

import (
	"slices"
	"strings"
	"unicode"
)

// The lists here hold single words in lower case, and phrases with a space between their words. A
// word missing from volatileWords can cause a wrong hit; an unnecessary one only costs hits.

// volatileWords make an answer depend on its time, or ask for another one each time, or for one
// that no one else may get.
var volatileWords = phrases(`
	today|tonight|now|current|currently|latest|recent|recently|newest|upcoming|yesterday|tomorrow|nowadays|ago|live|trending|breaking
	this week|this month|this year|this morning|this afternoon|this evening|this weekend|this season|next week|next month|next year
	last week|last month|last year|last night|so far|at the moment|as of|up to date|these days|what time|what day|what date|time is it
	days left|days until|weather|how long until|forecast|news|headlines|stock price|share price|exchange rate|price of|still|yet|anymore|already
	random|randomly|uuid|guid|password|passwords|passphrase|passcode|nonce|dice|coin|shuffle|lottery|another|again|regenerate|retry|surprise|joke|jokes
	pick a number|choose a number|think of a number|secret key|api key|access token
	heute|jetzt|aktuell|aktuelle|morgen|gestern|gerade|derzeit|wetter|hoy|ahora|mañana|ayer|actual|actualmente|tiempo hace
	aujourd|maintenant|demain|hier|actuellement|météo|oggi|adesso|domani|ieri|hoje|agora|amanhã|ontem|сегодня|сейчас|завтра|вчера
`)

// volatilePieces are the same in scripts without spaces between words.
var volatilePieces = []string{"今日", "今天", "现在", "現在", "明天", "明日", "昨天", "昨日", "最新", "오늘", "지금", "내일", "어제"}

// phrases reads a list.
func phrases(list string) map[string]bool {
	set := map[string]bool{}
	for line := range strings.Lines(list) {
		for phrase := range strings.SplitSeq(strings.TrimSpace(line), "|") {
			if phrase != "" {
				set[phrase] = true
			}
		}
	}
	return set
}

// longestPhrase is how many words the phrases of the lists have at most.
const longestPhrase = 4

// mentions reports whether a text holds one of the phrases.
func mentions(text string, phrases map[string]bool) bool {
	words := strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(text, "’", "'")), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
	for i := range words {
		for n := 1; n <= longestPhrase && i+n <= len(words); n++ {
			if phrases[strings.Join(words[i:i+n], " ")] {
				return true
			}
		}
	}
	return false
}

// isVolatile reports whether a user's question must not be answered from a cache.
func isVolatile(texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return mentions(text, volatileWords) || slices.ContainsFunc(volatilePieces, func(piece string) bool { return strings.Contains(text, piece) })
	})
}
