package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// longestRun is the maximum length of a run that is split into terms, in bytes. Longer ones are data.
	longestRun = 256
	// suffixes is how many ends of a path are separate terms.
	suffixes = 6
	// shortHash is the usual number of digits in a shortened hash.
	shortHash = 7
)

// run is a piece of text without spaces that may be a word, a path or an identifier.
type run struct {
	text string // as written, without punctuation around it
	kind kind
}

// kind is the kind of a run.
type kind int

const (
	between  kind = iota // not searchable
	ofWord               // a word, a path or an identifier
	ideogram             // a text of a script without spaces between words
	emoji                // a single emoji
)

// eachRun calls visit with the runs of a text, in order.
func eachRun(text string, visit func(run)) {
	start, open := 0, between
	flush := func(end int) {
		if open == between {
			return
		}
		if piece := strings.Trim(text[start:end], `./-~@\`); piece != "" {
			visit(run{text: piece, kind: open})
		}
	}
	for i, r := range text {
		if here := kindOf(r, open); here != open || here == emoji {
			flush(i)
			start, open = i, here
		}
	}
	flush(len(text))
}

// kindOf returns the kind of run that a rune belongs to after a run of kind before.
func kindOf(r rune, before kind) kind {
	switch {
	case r < utf8.RuneSelf:
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '/' || r == '.' || r == '-' || r == '~' || r == '@' || r == '\\' {
			return ofWord
		}
		return between
	case r >= firstEmoji && r <= lastEmoji:
		return emoji
	case isIdeogram(r):
		return ideogram
	case unicode.IsMark(r) && before != between:
		return before
	case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
		return ofWord
	}
	return between
}

// Emoji for things, which people search for.
const firstEmoji, lastEmoji = 0x1F300, 0x1FAFF

// isIdeogram reports whether a rune belongs to a script without spaces between words. The Japanese long vowel
// marks are listed separately, because they belong to no script in Unicode.
func isIdeogram(r rune) bool {
	const firstOfThem, longVowel, halfLongVowel = 0x0E00, 'ー', 'ｰ'
	return r >= firstOfThem && (r == longVowel || r == halfLongVowel ||
		unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

// eachTerm calls visit with the terms of a text, in order and including duplicates: words folded and without
// their endings, paths with their ends and elements, identifiers with their parts, pairs of ideograms.
func eachTerm(text string, visit func(term string)) {
	eachRun(text, func(r run) { r.terms(visit) })
}

// terms calls visit with the terms of one run.
func (r run) terms(visit func(term string)) {
	if !isASCII(r.text) {
		r.text = plainLetters(r.text)
	}
	switch {
	case r.kind == emoji:
		visit(r.text)
	case r.kind == ideogram:
		pairs(r.text, visit)
	case len(r.text) > longestRun:
		return
	case r.isPath():
		r.path(visit)
	default:
		identifier(r.text, visit)
	}
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// plainLetters returns a text without accents and other marks, which people omit or write as separate runes,
// and with letters of one width.
func plainLetters(text string) string {
	const firstAccent, lastAccent, variant = 0x0300, 0x036F, 0xFE0F
	text = strings.Map(func(r rune) rune {
		if r >= firstAccent && r <= lastAccent || r == variant {
			return -1
		}
		return r
	}, norm.NFKD.String(text))
	return norm.NFC.String(strings.ReplaceAll(text, "ß", "ss"))
}

// isPath reports whether the run has several elements.
func (r run) isPath() bool { return strings.ContainsAny(r.text, `/\`) }

// namesFile reports whether a run looks like a file: it has elements or an extension.
func (r run) namesFile() bool {
	if r.kind != ofWord || len(r.text) > longestRun {
		return false
	}
	if r.isPath() {
		return true
	}
	dot := strings.LastIndexByte(r.text, '.')
	if dot <= 0 || len(r.text)-dot > 8 {
		return false
	}
	ending := r.text[dot+1:]
	return ending != "" && !strings.ContainsFunc(ending, func(c rune) bool { return !isASCIILetter(c) && (c < '0' || c > '9') }) &&
		isASCIILetter(rune(ending[0]))
}

// folded returns a path in its form for comparison: lower case, slashes, trimmed.
func folded(path string) string {
	if !isASCII(path) {
		path = plainLetters(path)
	}
	path = strings.ToLower(strings.ReplaceAll(path, `\`, "/"))
	return strings.Trim(strings.TrimPrefix(path, "./"), "/.~")
}

// ends calls visit with a folded path and its ends of up to suffixes elements.
func ends(path string, visit func(end string)) {
	if path == "" {
		return
	}
	visit(path)
	for cut, n := len(path), 0; n < suffixes; n++ {
		cut = strings.LastIndexByte(path[:cut], '/')
		if cut < 0 {
			return
		}
		visit(path[cut+1:])
	}
}

func (r run) path(visit func(term string)) {
	path := folded(r.text)
	ends(path, func(end string) {
		if strings.Contains(end, "/") {
			visit(end)
		}
	})
	for element := range strings.SplitSeq(strings.ReplaceAll(r.text, `\`, "/"), "/") {
		if element = strings.Trim(element, ".-~@"); element != "" {
			identifier(element, visit)
		}
	}
}

// identifier calls visit with an identifier as a whole and with its parts.
func identifier(text string, visit func(term string)) {
	whole := strings.ToLower(text)
	parts := 0
	part := func(piece string) {
		parts++
		if utf8.RuneCountInString(piece) > 1 && len(piece) < len(whole) {
			visit(stem(strings.ToLower(piece)))
		}
	}
	for dotted := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '.' || r == '@' || r == '~' }) {
		before := parts
		for word := range strings.FieldsFuncSeq(dotted, func(r rune) bool { return r == '_' || r == '-' }) {
			humps(word, part)
		}
		if parts-before > 1 && len(dotted) < len(text) {
			visit(strings.ToLower(dotted))
		}
	}
	if parts <= 1 {
		visit(stem(whole))
		if len(whole) > shortHash && isHex(whole) {
			visit(whole[:shortHash])
		}
		return
	}
	visit(whole)
}

// humps calls visit with the parts of a word in camelCase.
func humps(word string, visit func(part string)) {
	start := 0
	for i := 1; i < len(word); i++ {
		before, here := word[i-1], word[i]
		lowerToUpper := isUpper(here) && !isUpper(before)
		endOfCapitals := isUpper(here) && isUpper(before) && i+1 < len(word) && isLower(word[i+1])
		if lowerToUpper || endOfCapitals {
			visit(word[start:i])
			start = i
		}
	}
	visit(word[start:])
}

// pairs calls visit with each pair of adjacent runes, with each Chinese character, since it may be a word,
// and with a rune that is alone.
func pairs(text string, visit func(term string)) {
	runes := []rune(text)
	for i, r := range runes {
		if len(runes) == 1 || unicode.Is(unicode.Han, r) {
			visit(string(r))
		}
		if i > 0 {
			visit(string(runes[i-1 : i+1]))
		}
	}
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

func isASCIILetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// isHex reports whether a word may be a hash or an id: hexadecimal, with a digit.
func isHex(word string) bool {
	digit := false
	for i := range len(word) {
		c := word[i]
		if c >= '0' && c <= '9' {
			digit = true
		} else if c < 'a' || c > 'f' {
			return false
		}
	}
	return digit
}
