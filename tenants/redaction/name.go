package redaction

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"palimpsest/pipeline/expression"
)

// displayName matches a name before an address in angle brackets.
var displayName = expression.New(`(?:"([^"\n]{2,60})"|(\p{Lu}[\p{L}\p{M}'’.-]*(?: [\p{L}\p{M}'’.-]+){0,3})) ?<$`)

// displayNames finds the names before addresses: Ada Lovelace <ada@example.com>.
func displayNames(text string) []span {
	const most = 160 // bytes before an address
	var found []span
	for _, address := range emails(text) {
		before := max(0, address.from-most)
		for before < address.from && !utf8.RuneStart(text[before]) {
			before++
		}
		if !strings.HasSuffix(text[before:address.from], "<") {
			continue
		}
		at := displayName.FindStringSubmatchIndex(text[before:address.from])
		if at == nil {
			continue
		}
		from, to := at[2], at[3]
		if from < 0 {
			from, to = at[4], at[5]
		}
		if name := text[before+from : before+to]; strings.ContainsFunc(name, unicode.IsLetter) {
			found = append(found, span{from: before + from, to: before + to, piece: strings.ToLower(name)})
		}
	}
	return found
}

// namesIn finds the names of the workspace's list, the names before mail addresses, and their other
// occurrences in the message.
func (p *pass) namesIn(text string) []span {
	return append(append(displayNames(text), p.names.in(text)...), p.people.in(text)...)
}

// nameList maps lowercase first letters to names, for a search that ignores case.
type nameList map[rune][]string

func listOf(names []string) nameList {
	list := nameList{}
	for _, name := range names {
		first, _ := utf8.DecodeRuneInString(name)
		first = unicode.ToLower(first)
		list[first] = append(list[first], name)
	}
	for _, alike := range list {
		slices.SortFunc(alike, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // longer names first
	}
	return list
}

// in finds the names that are whole words.
func (l nameList) in(text string) []span {
	if len(l) == 0 {
		return nil
	}
	var ascii [utf8.RuneSelf]bool // first letters of names
	for first := range l {
		if first < utf8.RuneSelf {
			ascii[first] = true
		}
	}
	var found []span
	inWord := false
	for at := 0; at < len(text); {
		letter, size := rune(text[at]), 1
		if letter >= utf8.RuneSelf {
			letter, size = utf8.DecodeRuneInString(text[at:])
		} else if 'A' <= letter && letter <= 'Z' {
			letter += 'a' - 'A'
		}
		if !inWord && (letter >= utf8.RuneSelf || ascii[letter]) {
			if length := l.at(text[at:], unicode.ToLower(letter)); length > 0 {
				found = append(found, span{from: at, to: at + length, piece: strings.ToLower(strings.Join(strings.Fields(text[at:at+length]), " "))})
				size, letter = length, 'x'
			}
		}
		inWord = 'a' <= letter && letter <= 'z' || '0' <= letter && letter <= '9' || letter >= utf8.RuneSelf && isWord(letter)
		at += size
	}
	return found
}

// at returns the length of the longest name at the beginning of a text; 0 if absent.
func (l nameList) at(text string, first rune) int {
	for _, name := range l[first] {
		length := beginsWith(text, name)
		if length == 0 {
			continue
		}
		if after, _ := utf8.DecodeRuneInString(text[length:]); !isWord(after) {
			return length
		}
	}
	return 0
}

// beginsWith returns the length of a name at the beginning of a text, in any case and with any white space
// between its words; 0 if absent.
func beginsWith(text, name string) int {
	at := 0
	for _, wanted := range name {
		if wanted == ' ' {
			from := at
			for at < len(text) && strings.IndexByte(" \t\r\n", text[at]) >= 0 {
				at++
			}
			if at == from {
				return 0
			}
			continue
		}
		letter, size := utf8.DecodeRuneInString(text[at:])
		if size == 0 || letter != wanted && unicode.ToLower(letter) != unicode.ToLower(wanted) {
			return 0
		}
		at += size
	}
	return at
}
