package tokens

import (
	"bytes"
	"encoding/json"
	"iter"
)

// kindOfToken is the kind of a JSON token.
type kindOfToken int

const (
	ended       kindOfToken = iota
	memberName              // a quoted string before a colon
	stringValue             // any other quoted string
	other                   // a bracket, comma or colon, or a number or literal
)

// scanner iterates over the tokens of a JSON value, without white space. Invalid JSON ends it early and does
// no harm.
type scanner struct {
	raw  []byte
	at   int
	name []byte // the last member's, unquoted
}

func (s *scanner) next() (token []byte, kind kindOfToken) {
	for s.at < len(s.raw) && isSpace(s.raw[s.at]) {
		s.at++
	}
	if s.at == len(s.raw) {
		return nil, ended
	}
	start := s.at
	if s.raw[start] != '"' {
		s.at++
		for s.at < len(s.raw) && isLiteral(s.raw[s.at-1]) && isLiteral(s.raw[s.at]) {
			s.at++
		}
		return s.raw[start:s.at], other
	}
	s.at = stringEnd(s.raw, start)
	token = s.raw[start:s.at]
	behind := s.at
	for behind < len(s.raw) && isSpace(s.raw[behind]) {
		behind++
	}
	if behind < len(s.raw) && s.raw[behind] == ':' {
		s.name = token[1 : len(token)-1]
		if bytes.IndexByte(s.name, '\\') >= 0 {
			s.name = []byte(decoded(token))
		}
		return token, memberName
	}
	return token, stringValue
}

// skip skips the value of the member whose name was the last token.
func (s *scanner) skip() {
	depth := 0
	for {
		token, kind := s.next()
		switch {
		case kind == ended:
			return
		case token[0] == ':':
			continue
		case token[0] == '{' || token[0] == '[':
			depth++
		case token[0] == '}' || token[0] == ']':
			depth--
		}
		if depth <= 0 {
			return
		}
	}
}

// elements yields the elements of a list. Invalid JSON ends it early and does no harm.
func elements(raw []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		depth, start := 0, 0
		for i := 0; i < len(raw); {
			switch raw[i] {
			case '"':
				i = stringEnd(raw, i)
				continue
			case '[', '{':
				if depth++; depth == 1 {
					start = i + 1
				}
			case ']', '}':
				if depth--; depth == 0 {
					if element := bytes.TrimSpace(raw[start:i]); len(element) > 0 {
						yield(element)
					}
					return
				}
			case ',':
				if depth == 1 {
					if !yield(bytes.TrimSpace(raw[start:i])) {
						return
					}
					start = i + 1
				}
			}
			i++
		}
	}
}

// stringEnd returns the index after the string that begins at i.
func stringEnd(raw []byte, i int) int {
	for end := i + 1; end < len(raw); {
		quote := bytes.IndexByte(raw[end:], '"')
		if quote < 0 {
			break
		}
		end += quote
		escapes := 0
		for raw[end-1-escapes] == '\\' {
			escapes++
		}
		end++
		if escapes%2 == 0 {
			return end
		}
	}
	return len(raw)
}

// decoded returns the content of a quoted string.
func decoded(quoted []byte) string {
	var text string
	if bytes.IndexByte(quoted, '\\') >= 0 && json.Unmarshal(quoted, &text) == nil {
		return text
	}
	return string(bytes.Trim(quoted, `"`))
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

func isLiteral(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '-' || b == '+' || b == '.' || b == 'E'
}
