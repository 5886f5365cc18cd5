package extract

import (
	"strings"
	"unicode/utf8"
)

// A name is a token that identifies something in a text: a path, a URL, a symbol, an id, an error
// code, a number of three digits or more. Plain words are not names.

// Kinds of bytes.
const (
	isLower = 1 << iota
	isUpper
	isDigit
	isUnder
	isSlash
	isDot
	isDash  // joins the parts of a name, like a slash or a dot
	isCamel // not a property of one byte: a capital after a small letter or digit

	isLetter = isLower | isUpper
	isGlue   = isSlash | isDot | isDash
)

// Bounds of a name, in bytes.
const (
	ShortestName = 3
	LongestName  = 120
)

// KindOf is the kind of each byte; 0 ends a name. The bytes of two-byte letters of
// European scripts count as small letters.
var KindOf = func() (kinds [256]uint8) {
	for b := range kinds {
		switch {
		case b >= 'a' && b <= 'z', b >= 0x80 && b <= 0xbf, b >= 0xc3 && b <= 0xd4:
			kinds[b] = isLower
		case b >= 'A' && b <= 'Z':
			kinds[b] = isUpper
		case b >= '0' && b <= '9':
			kinds[b] = isDigit
		}
	}
	kinds['_'], kinds['/'], kinds['.'], kinds['-'], kinds['@'], kinds['~'] = isUnder, isSlash, isDot, isDash, isDash, isDash
	return kinds
}()

// Names reads the names of a text one after the other.
type Names struct {
	Text    string
	Escaped bool  // the text is JSON: escape sequences do not belong to names
	Among   *Uses // only names that it may contain; nil means all

	From, To int // the last name found
	Hash     uint64
	next     int // where to go on
	hasPart  bool
}

// Scan finds the next name and reports whether there is one. A path is followed by its last
// element, a dotted name by its last part.
func (n *Names) Scan() bool {
	for {
		if n.hasPart {
			n.hasPart = false
			n.From = lastPart(n.Text, n.From, n.To)
			if n.isOne() {
				return true
			}
		}
		if n.next >= len(n.Text) {
			return false
		}
		from, to, found := n.run()
		if to-from < ShortestName || found == isLower || found == isUpper|isLower || n.Escaped && isMember(n.Text, from, to) {
			continue
		}
		n.From, n.To = trim(n.Text, from, to)
		n.hasPart = found&(isSlash|isDot) != 0 && lastPart(n.Text, n.From, n.To) > n.From
		if n.isOne() {
			return true
		}
	}
}

// isOne reports whether the run that was found is a name, and computes its hash.
func (n *Names) isOne() bool {
	text := n.Text[n.From:n.To]
	if len(text) < ShortestName || len(text) > LongestName || n.Among != nil && !n.Among.Has(ShapeOf(text)) || !isName(text) {
		return false
	}
	n.Hash = HashOf(text)
	return true
}

// ShapeOf is a fast fingerprint of most names: length, first and last byte.
func ShapeOf(text string) uint16 {
	return uint16(len(text))*2657 + uint16(text[0])*131 + uint16(text[len(text)-1])*17 //nolint:gosec // it may wrap around
}

// run finds the next run of bytes that may be a name and isn't a plain word.
func (n *Names) run() (from, to int, found uint8) {
	text, i := n.Text, n.next
	for i < len(text) {
		i = n.skip(i)
		from = i
		if i < len(text) && KindOf[text[i]] == isUpper {
			i++
		}
		for i < len(text) && KindOf[text[i]] == isLower {
			i++
		}
		if i < len(text) && (KindOf[text[i]] != 0 || text[i] == ':') {
			i, found = n.rest(from)
			n.next = i
			return from, i, found
		}
	}
	n.next = len(text)
	return len(text), len(text), 0
}

// skip returns the position of the next byte that can begin a name.
func (n *Names) skip(i int) int {
	text := n.Text
	for i < len(text) && KindOf[text[i]]&^isDash == 0 {
		switch {
		case text[i] == '\\' && n.Escaped && i+1 < len(text) && text[i+1] < utf8.RuneSelf:
			i += 2
		case text[i] < utf8.RuneSelf:
			i++
		default: // a character that can't be part of a name
			for i++; i < len(text) && !utf8.RuneStart(text[i]); {
				i++
			}
		}
	}
	return min(i, len(text))
}

// rest returns the end of the run that begins at i, and the kinds of its bytes.
func (n *Names) rest(i int) (end int, found uint8) {
	text, last := n.Text, uint8(0)
	for ; i < len(text); i++ {
		kind := KindOf[text[i]]
		if kind == 0 {
			if text[i] != ':' || i+2 >= len(text) || text[i+1] != '/' || text[i+2] != '/' {
				break
			}
			found |= isSlash
		}
		if kind == isUpper && last&(isLower|isDigit) != 0 {
			found |= isCamel
		}
		found |= kind
		last = kind
	}
	return i, found
}

// isMember reports whether a run in JSON is a member's name.
func isMember(text string, from, to int) bool {
	if from == 0 || text[from-1] != '"' || to == len(text) || text[to] != '"' {
		return false
	}
	rest := strings.TrimLeft(text[to+1:], " \t\r\n")
	return rest != "" && rest[0] == ':'
}

// trim removes bytes at the ends of a run that don't belong to a name.
func trim(text string, from, to int) (int, int) {
	for to > from && KindOf[text[to-1]]&isGlue != 0 {
		to--
	}
	for from < to && (text[from] == '.' || text[from] == '-' || text[from] == '@') {
		if text[from] == '.' && from+1 < to && KindOf[text[from+1]]&isLetter != 0 {
			break // .gitignore
		}
		if text[from] == '.' && text[from+1] == '/' {
			from++ // ./a and ../a are a
		}
		from++
	}
	return from, to
}

// lastPart returns where the last element of a path or dotted name begins.
func lastPart(text string, from, to int) int {
	isPath := false
	for i := from; i < to; i++ {
		isPath = isPath || text[i] == '/'
	}
	for i := to - 1; i > from; i-- {
		if text[i] == '/' || text[i] == '.' && !isPath {
			return i + 1
		}
	}
	return from
}

// isName reports whether a run looks like a name.
func isName(text string) bool {
	if len(text) < ShortestName {
		return false
	}
	found, last := uint8(0), uint8(0)
	for i := range len(text) {
		kind := KindOf[text[i]]
		if kind == isUpper && last&(isLower|isDigit) != 0 {
			found |= isCamel
		}
		found |= kind
		last = kind
	}
	switch {
	case found&(isLetter|isDigit) == 0:
		return false
	case found&isSlash != 0:
		return len(text) >= 6 || text[0] == '/' && len(text) >= 4
	case found&isLetter == 0:
		return found&(isDot|isDash) == 0 || len(text) >= 5
	case found&(isUnder|isCamel|isDigit) != 0:
		return true
	case found&isDot != 0:
		return len(text) >= 5
	}
	return found == isUpper && len(text) >= 4
}

// HashOf is FNV-1a.
func HashOf(text string) uint64 { return HashOn(14695981039346656037, text) }

// HashOn continues a hash with another text.
func HashOn(hash uint64, text string) uint64 {
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * 1099511628211
	}
	return hash
}
