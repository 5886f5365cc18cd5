package patterns

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"palimpsest/pipeline/excerpts"
)

// signatureBytes are how much of a line makes its signature.
const signatureBytes = 160

// Words returns the words that carry the meaning of a text, each once and in the order in which
// they come: in lower case, without endings, filler and punctuation. Names of files and commands
// stay whole. Scripts without spaces come in pairs of characters.
func Words(text string) []string {
	var words []string
	known := map[string]bool{}
	for _, token := range tokens(text) {
		word := stem(token)
		if word == "" || filler[word] || filler[token] || known[word] {
			continue
		}
		known[word] = true
		words = append(words, word)
	}
	return words
}

// Terms returns the words of a text that distinguish requests, at most MaxTerms.
func Terms(text string) []string {
	var terms []string
	for _, word := range Words(text) {
		if !orders[word] && len(word) <= MaxOfTerm && len(terms) < MaxTerms {
			terms = append(terms, word)
		}
	}
	return terms
}

// Forbids reports whether a text forbids something.
func Forbids(text string) bool {
	for _, token := range tokens(text) {
		if denials[token] {
			return true
		}
	}
	return false
}

// Signature returns the common part of all reports of one error: a line in lower case without
// folders, numbers and quotes. It is "" for a line that names no error or is too short to be
// distinctive.
func Signature(line string) string {
	if len(line) > 16*signatureBytes {
		line = excerpts.Bytes(line, 16*signatureBytes)
	}
	line = strings.Join(strings.Fields(line), " ")
	line = strings.ToLower(excerpts.Bytes(line, signatureBytes))
	if !namesError(line) {
		return ""
	}
	var fields []string
	said := 0
	for field := range strings.FieldsFuncSeq(line, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`“”‘’<>‹›()[]{},;|=", r)
	}) {
		field = strings.Trim(field, ".:!*#-→")
		if i := strings.LastIndexAny(field, `/\`); i >= 0 {
			field = field[i+1:]
		}
		if field = withoutNumbers(field); field == "" {
			continue
		}
		fields = append(fields, field)
		if !filler[field] && !generic[field] && strings.IndexFunc(field, unicode.IsLetter) >= 0 {
			said++
		}
	}
	if said < 2 || len(fields) < 3 {
		return ""
	}
	signature := strings.Join(fields, " ")
	return excerpts.Bytes(signature, MaxOfTerm)
}

// namesError reports whether a line in lower case is about a failure.
func namesError(line string) bool {
	for _, word := range []string{
		"error", "exception", "fail", "cannot", "can't", "could not", "couldn't", "not found", "undefined", "unknown", "missing", "no such",
		"denied", "refused", "unable", "invalid", "panic", "fatal", "unexpected", "not defined", "not a ", "timeout", "timed out",
		"mismatch", "conflict", "unsupported", "unresolved", "cyclic", "not allowed", "doesn't exist", "does not exist", "not exported",
		"not used", "must not", "redeclared",
	} {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}

// withoutNumbers replaces each run of digits by a mark, and an address or hash as a whole.
func withoutNumbers(field string) string {
	if len(field) >= 8 && strings.Trim(field, "0123456789abcdefx-") == "" && strings.ContainsAny(field, "0123456789") {
		return "#"
	}
	if !strings.ContainsAny(field, "0123456789") {
		return field
	}
	var out strings.Builder
	digits := false
	for _, r := range field {
		isDigit := r >= '0' && r <= '9'
		switch {
		case isDigit && !digits:
			out.WriteByte('#')
		case !isDigit:
			out.WriteRune(r)
		}
		digits = isDigit
	}
	return out.String()
}

// tokens splits a text in lower case into its words.
func tokens(text string) []string {
	text = strings.ReplaceAll(strings.ToLower(text), "’", "'")
	var all []string
	for field := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./'+#@", r)
	}) {
		field = strings.Trim(field, "-./'+#")
		if field == "" {
			continue
		}
		if unspaced(field) {
			all = append(all, pairs(field)...)
			continue
		}
		all = append(all, field)
	}
	return all
}

// unspaced reports whether a word is in a script without spaces between words.
func unspaced(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return unicode.In(first, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// pairs splits a run of characters into all pairs of neighbors.
func pairs(run string) []string {
	signs := []rune(run)
	if len(signs) < 3 {
		return []string{run}
	}
	all := make([]string, 0, len(signs)-1)
	for i := range len(signs) - 1 {
		all = append(all, string(signs[i:i+2]))
	}
	return all
}

// stem removes the most common endings of a word. A word that looks like a name stays whole.
func stem(word string) string {
	if len(word) < 5 || strings.IndexFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) >= 0 {
		return word
	}
	for _, ending := range []string{"ing", "ed", "es", "s"} {
		short, found := strings.CutSuffix(word, ending)
		if !found || len(short) < 3 || ending == "s" && (strings.HasSuffix(short, "s") || strings.HasSuffix(short, "u")) {
			continue
		}
		if n := len(short); ending != "s" && n > 3 && short[n-1] == short[n-2] && short[n-1] != 's' && short[n-1] != 'l' {
			short = short[:n-1] // committing → commit
		}
		return strings.TrimSuffix(short, "e")
	}
	return strings.TrimSuffix(word, "e")
}

// set makes a set of the words in a line, with and without their endings.
func set(words string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		all[word], all[stem(word)] = true, true
	}
	return all
}

var (
	// filler are words that don't reveal the topic of a text.
	filler = set(`a an the this that these those it its is are was were be been being am do does did doing done have has had having
		i i'm i'll i'd you you're your we we're our us they them their he she his her me my mine of to in on at by for from with without into
		onto as if then than so and or but nor when whenever while where which who whom what how why there here all any some each every
		please just also very really quite too can could would should will shall may might let let's ok okay now again still
		only even more most much many one two up out off over about between before after during through yes hi hello thanks thank sure
		want need like get got go going make sure ensure remember everything something anything nothing thing way time first next und die der das`)

	// denials are words that make an order a prohibition.
	denials = set(`not never don't dont doesn't no without avoid stop nicht niemals kein nunca jamais cannot can't mustn't shouldn't instead`)

	// orders are words that give orders; every second directive has one.
	orders = set(`always never must mustn't not don't dont no avoid stop prefer only instead rather should shouldn't immer niemals nicht
		use using run do keep write add create make change fix update follow ensure whether`)

	// generic are words in many programmers' requests.
	generic = set(`file code test function method class line command error bug issue problem change project repo repository app value name
		type data run build work output input result fail failed failure string list user server api request
		new old same other correct right wrong good bad better commit branch version script folder directory path
		module package comment implement doc text read message check import exit status code`)
)
