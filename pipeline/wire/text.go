package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// String returns the text of a JSON string; ok is false if raw is not one.
// Broken UTF-8 and lone surrogates become U+FFFD.
func String(raw []byte) (text string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), true
	}
	decoded, ok := AppendText(make([]byte, 0, len(inner)), raw)
	return string(decoded), ok
}

// AppendText appends the text of a JSON string; ok is false if raw is not one.
func AppendText(dst, raw []byte) (text []byte, ok bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return dst, false
	}
	inner := raw[1 : len(raw)-1]
	if !utf8.Valid(inner) {
		inner = appendValid(make([]byte, 0, len(inner)+16), inner)
	}
	dst = slices.Grow(dst, len(inner))
	for i := 0; i < len(inner); {
		if i+wordSize <= len(inner) && !hasBackslash(inner[i:]) {
			dst = append(dst, inner[i:i+wordSize]...)
			i += wordSize
			continue
		}
		if c := inner[i]; c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		var size int
		if dst, size = appendEscaped(dst, inner[i:]); size == 0 {
			return dst, false
		}
		i += size
	}
	return dst, true
}

// wordSize is how many bytes of a text are checked in one step.
const wordSize = 8

// hasBackslash reports whether one of the next wordSize bytes is a backslash.
func hasBackslash(b []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	word := binary.LittleEndian.Uint64(b) ^ ones*'\\'
	return (word-ones)&^word&highs != 0
}

// appendEscaped appends the character of the escape at the start of b and returns the escape's length; 0 if
// the bytes are not an escape.
func appendEscaped(dst, b []byte) (text []byte, size int) {
	if len(b) < 2 {
		return dst, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return append(dst, b[1]), 2
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'n':
		return append(dst, '\n'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 't':
		return append(dst, '\t'), 2
	}
	first, ok := codeUnit(b)
	if !ok {
		return dst, 0
	}
	if !utf16.IsSurrogate(first) {
		return utf8.AppendRune(dst, first), 6
	}
	if second, ok := codeUnit(b[6:]); ok {
		if both := utf16.DecodeRune(first, second); both != utf8.RuneError {
			return utf8.AppendRune(dst, both), 12
		}
	}
	return utf8.AppendRune(dst, utf8.RuneError), 6
}

// codeUnit reads the \uXXXX at the start of b.
func codeUnit(b []byte) (unit rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		unit = unit<<4 | rune(c)
	}
	return unit, true
}

// appendValid appends b with U+FFFD in place of each invalid UTF-8 byte.
func appendValid(dst, b []byte) []byte {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		dst = utf8.AppendRune(dst, r)
		b = b[size:]
	}
	return dst
}

// Quote returns text as a JSON string: valid UTF-8, with as few escapes as possible, and deterministic.
func Quote(text string) json.RawMessage {
	return AppendQuote(nil, text)
}

// AppendQuote appends text as Quote writes it.
func AppendQuote(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(slices.Grow(dst, len(text)+len(text)/16+2), '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, text[start:i]...)
				dst = utf8.AppendRune(dst, r)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, text[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, text[start:]...), '"')
}

// AppendInside appends a JSON string without its quotes and with its escapes unchanged. The results for
// several pieces of one text can be joined inside one string.
func AppendInside(dst, raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return dst
	}
	return append(dst, raw[1:len(raw)-1]...)
}

// Int returns the value of a whole number; ok is false for any other raw.
func Int(raw []byte) (number int, ok bool) {
	number, err := strconv.Atoi(string(raw))
	if err == nil {
		return number, true
	}
	float, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || float != float64(int(float)) || float > 1<<53 || float < -1<<53 {
		return 0, false
	}
	return int(float), true
}

// Count returns the value of a count, which some servers write as a string. ok is false for anything else and
// below zero.
func Count(raw []byte) (number int, ok bool) {
	if text, is := String(raw); is {
		raw = []byte(text)
	}
	number, ok = Int(raw)
	return number, ok && number >= 0
}

// IsNull reports whether raw is missing or null.
func IsNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }
