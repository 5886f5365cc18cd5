package redaction

import (
	"slices"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/expression"
)

// cards finds numbers of payment cards: with a network's range and length and a valid Luhn check digit, in
// one piece or in the groups printed on cards.
func cards(text string) []span {
	var found []span
	for at := 0; at < len(text); {
		if !isDigit(text[at]) {
			at++
			continue
		}
		groups := digitGroups(text, at)
		if to := cardEnd(text, groups); to > 0 && stands(text, at, to) {
			found = append(found, span{from: at, to: to, piece: digitsOf(text[at:to])})
			at = to
			continue
		}
		at = groups[0][1]
	}
	return found
}

// digitGroups returns the runs of digits from a position, separated by single blanks or dashes, all the same.
func digitGroups(text string, from int) [][2]int {
	const most = 5
	var groups [][2]int
	separator := byte(0)
	for at := from; len(groups) < most; {
		end := at
		for end < len(text) && isDigit(text[end]) {
			end++
		}
		if end == at {
			break
		}
		groups = append(groups, [2]int{at, end})
		if end >= len(text) || text[end] != ' ' && text[end] != '-' || separator != 0 && text[end] != separator {
			break
		}
		separator, at = text[end], end+1
	}
	return groups
}

// cardEnd returns the end of the card number that begins with the first group; 0 if it is not one.
func cardEnd(text string, groups [][2]int) int {
	if isCard(text[groups[0][0]:groups[0][1]]) {
		return groups[0][1]
	}
	for _, sizes := range [][]int{{4, 4, 4, 4, 3}, {4, 4, 4, 4}, {4, 6, 5}, {4, 6, 4}} {
		if len(groups) < len(sizes) {
			continue
		}
		fits := true
		for i, size := range sizes {
			fits = fits && groups[i][1]-groups[i][0] == size
		}
		if to := groups[len(sizes)-1][1]; fits && isCard(digitsOf(text[groups[0][0]:to])) {
			return to
		}
	}
	return 0
}

// cardForm matches the ranges and lengths of the networks: Visa, Mastercard, American Express, Diners Club,
// Discover, JCB and UnionPay.
var cardForm = expression.New(`^(?:4\d{15}|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|2720\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17})$`)

func isCard(digits string) bool {
	if len(digits) < 14 || len(digits) > 19 || !cardForm.MatchString(digits) {
		return false
	}
	sum := 0
	for i := range digits {
		digit := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			digit *= 2
		}
		sum += digit/10 + digit%10
	}
	return sum%10 == 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func digitsOf(text string) string {
	return strings.Map(func(letter rune) rune {
		if '0' <= letter && letter <= '9' {
			return letter
		}
		return -1
	}, text)
}

// stands reports whether a number is separate from longer words and numbers.
func stands(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	if isWord(before) || isWord(after) || strings.ContainsRune("_.-/+=", before) || after == '_' {
		return false
	}
	return after != '.' && after != '-' || to+1 >= len(text) || !isDigit(text[to+1])
}

// The lengths of phone numbers, in digits.
const (
	leastPhone = 7
	mostPhone  = 15 // in E.164
)

// american matches numbers in the North American form.
var american = expression.New(`^(?:\([2-9]\d\d\) ?|[2-9]\d\d[-.])[2-9]\d\d[-.]\d{4}$`)

// phones finds phone numbers: valid ones in international form (+49 30 …, 0049 30 …), valid ones in the North
// American form, and any number after a word such as "phone".
func phones(text string) []span {
	var found []span
	for at := 0; at < len(text); {
		c := text[at]
		if c != '+' && c != '(' && !isDigit(c) {
			at++
			continue
		}
		to, digits := phoneEnd(text, at)
		if piece := phoneOf(text, at, to, digits); piece != "" {
			found = append(found, span{from: at, to: to, piece: piece})
			at = to
			continue
		}
		at++
		for at < len(text) && isDigit(text[at]) { // the rest of the first group
			at++
		}
	}
	return found
}

// phoneEnd returns the end of text written like a phone number, and its number of digits: groups of digits
// with up to two signs between.
func phoneEnd(text string, from int) (to, digits int) {
	to = from
	for at := from; at < len(text) && at-to <= 2 && digits <= mostPhone+len("00"); at++ {
		switch c := text[at]; {
		case isDigit(c):
			digits++
			to = at + 1
		case at == from: // + or (
		case strings.IndexByte(" ()./-", c) < 0:
			return to, digits
		}
	}
	return to, digits
}

// phoneOf returns the phone number in a part of a text, as E.164 if its country is known; "" if it is not
// one.
func phoneOf(text string, from, to, digits int) string {
	if digits < leastPhone || digits > mostPhone+len("00") || !stands(text, from, to) {
		return ""
	}
	form, number := text[from:to], digitsOf(text[from:to])
	switch {
	case form[0] == '+':
		return validPhone(number)
	case strings.HasPrefix(form, "00") && strings.ContainsAny(form, " -/"):
		if valid := validPhone(number[len("00"):]); valid != "" {
			return valid
		}
	case american.MatchString(form):
		if valid := validPhone("1" + number); valid != "" {
			return valid
		}
	}
	if digits <= mostPhone && isCalledPhone(text[:from]) {
		return number
	}
	return ""
}

// isCalledPhone reports whether a text ends with a word that introduces phone numbers, optionally followed by
// a word such as "number".
func isCalledPhone(before string) bool {
	word, before := lastWord(before)
	if slices.Contains([]string{"number", "no", "nr", "is", "at"}, word) {
		word, _ = lastWord(before)
	}
	return slices.Contains([]string{
		"phone", "telephone", "tel", "mobile", "cell", "fax", "whatsapp", "call",
		"telefon", "telefonnummer", "rufnummer", "mobil", "handy", "handynummer", "téléphone", "portable", "teléfono", "telefono", "móvil", "celular",
	}, word)
}

// lastWord returns the last word of a text in lowercase, if it is close to the end and on the same line, and
// the text before it.
func lastWord(text string) (word, before string) {
	const most = 12 // bytes behind the word, and of signs
	end := len(text)
	for end > 0 && len(text)-end < most && text[end-1] != '\n' && text[end-1] < utf8.RuneSelf && !isLetter(text[end-1]) && !isDigit(text[end-1]) {
		end--
	}
	from := end
	for from > 0 && end-from < 4*most && (text[from-1] >= utf8.RuneSelf || isLetter(text[from-1])) {
		from--
	}
	return strings.ToLower(text[from:end]), text[:from]
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
