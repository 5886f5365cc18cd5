package certificate

import (
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"palimpsest/pipeline/session"
)

// sent is the content that a projection puts into the prompt.
type sent struct {
	covers   int
	original []bool // by message: it is sent unchanged
	pointed  []bool // by message: the prompt has its number, by which it can be recalled
	text     string // the rest of the projection's text, in lines
	flat     string // the same with single spaces
}

func newSent(projection *session.Projection) *sent {
	s := &sent{covers: projection.Covers, original: make([]bool, projection.Covers), pointed: make([]bool, projection.Covers)}
	var said strings.Builder
	for i := range projection.Parts {
		part := &projection.Parts[i]
		if part.Raw != nil {
			stringsOf(&said, part.Raw)
			continue
		}
		for message := part.From; message < part.To; message++ {
			s.original[message] = true
		}
	}
	s.text = said.String()
	s.flat = flat(s.text)
	s.readPointers()
	return s
}

// isOriginal reports whether a message is sent unchanged, as all messages after the projection are.
func (s *sent) isOriginal(message int) bool { return message >= s.covers || s.original[message] }

// points reports whether the prompt has the number of a message.
func (s *sent) points(message int) bool { return message < s.covers && s.pointed[message] }

// holds reports whether the projection contains a text, apart from white space. A text shortened by
// the ledger ends with an ellipsis, which does not count.
func (s *sent) holds(text string) bool {
	return strings.Contains(s.flat, strings.TrimSuffix(flat(text), "…"))
}

// flat returns a text with single spaces.
func flat(text string) string {
	flat := make([]byte, 0, len(text))
	for i := range len(text) {
		c := text[i]
		if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			if len(flat) > 0 && flat[len(flat)-1] != ' ' {
				flat = append(flat, ' ')
			}
			continue
		}
		flat = append(flat, c)
	}
	return strings.TrimSuffix(string(flat), " ")
}

// readPointers notes the messages that the text names: "#12", or "#12–#40". It ignores the sentence
// that explains such numbers.
func (s *sent) readPointers() {
	text := s.text
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '#')
		if i < 0 {
			return
		}
		start := at + i
		from, end := number(text, start+1)
		at = max(end, start+1)
		if from < 0 || start > 0 && isWord(text[start-1]) || strings.HasPrefix(text[end:], " is message ") {
			continue
		}
		to := from
		for _, dash := range []string{"–#", "-#", "–", " to #"} {
			if rest, has := strings.CutPrefix(text[end:], dash); has {
				if last, next := number(rest, 0); last >= 0 {
					to, at = last, end+len(dash)+next
				}
				break
			}
		}
		for message := from; message <= to && message < s.covers; message++ {
			s.pointed[message] = true
		}
	}
}

// number reads the number at a place of a text; -1 if absent.
func number(text string, at int) (value, end int) {
	for end = at; end < len(text) && end < at+9 && text[end] >= '0' && text[end] <= '9'; end++ {
		value = 10*value + int(text[end]-'0')
	}
	if end == at {
		return -1, at
	}
	return value, end
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '&'
}

// stringsOf adds the strings of a piece of JSON to a text, decoded, each in its own line.
func stringsOf(text *strings.Builder, raw json.RawMessage) {
	text.Grow(len(raw))
	for at := 0; at < len(raw); at++ {
		if raw[at] != '"' {
			continue
		}
		at = decode(text, raw, at+1)
		text.WriteByte('\n')
	}
}

// decode adds the string that begins at a place, and returns its end.
func decode(text *strings.Builder, raw []byte, at int) int {
	for start := at; at < len(raw); at++ {
		switch raw[at] {
		case '"':
			text.Write(raw[start:at])
			return at
		case '\\':
			text.Write(raw[start:at])
			at = unescape(text, raw, at+1)
			start = at + 1
		}
	}
	return at
}

// unescape adds the character of an escape, and returns the escape's end.
func unescape(text *strings.Builder, raw []byte, at int) int {
	if at >= len(raw) {
		return at
	}
	switch raw[at] {
	case 'n':
		text.WriteByte('\n')
	case 't':
		text.WriteByte('\t')
	case 'r', 'b', 'f':
		text.WriteByte(' ')
	case 'u':
		first := hex(raw, at+1)
		at += 4
		if utf16.IsSurrogate(first) && at+6 < len(raw) && raw[at+1] == '\\' && raw[at+2] == 'u' {
			if both := utf16.DecodeRune(first, hex(raw, at+3)); both != utf8.RuneError {
				text.WriteRune(both)
				return at + 6
			}
		}
		text.WriteRune(first)
	default:
		text.WriteByte(raw[at])
	}
	return at
}

// hex returns the character of four hexadecimal digits.
func hex(raw []byte, at int) rune {
	var value rune
	for i := at; i < at+4 && i < len(raw); i++ {
		c := raw[i] | 0x20
		value <<= 4
		switch {
		case c >= '0' && c <= '9':
			value += rune(c - '0')
		case c >= 'a' && c <= 'f':
			value += rune(c-'a') + 10
		}
	}
	return value
}
