package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible spells out characters that hide, reorder or control text: control characters as their pictures
// (U+2400…), and marks of direction, of no width and of tags as ⟦U+202E⟧. Invalid UTF-8 becomes U+FFFD. Line
// ends become "\n". Tabs stay, and so do joiners between the parts of one emoji.
func Visible(text string) string {
	if !needsMarks(text) {
		return text
	}
	var out strings.Builder
	out.Grow(len(text) + len(text)/8)
	previous := rune(0)
	for i, r := range text {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError && text[i] != "\uFFFD"[0] {
			size = 1
		}
		next, _ := utf8.DecodeRuneInString(text[i+size:])
		switch {
		case r == '\r' && next == '\n': // the line ends with it
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r < ' ':
			out.WriteRune('\u2400' + r)
		case r == 0x7f:
			out.WriteRune('\u2421')
		case r == '\u200D' && isEmoji(previous) && isEmoji(next):
			out.WriteRune(r)
		case isHidden(r):
			fmt.Fprintf(&out, "⟦U+%04X⟧", r)
		default:
			out.WriteRune(r)
		}
		previous = r
	}
	return out.String()
}

func needsMarks(text string) bool {
	if !utf8.ValidString(text) {
		return true
	}
	for _, r := range text {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || isHidden(r) {
			return true
		}
	}
	return false
}

// isHidden reports whether a character is invisible or changes the position of others: format characters,
// among them those of direction, controls, and separators and fillers without ink. A variation selector after
// an emoji is part of it and stays.
func isHidden(r rune) bool {
	switch {
	case r < 0x7f:
		return false
	case unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs):
		return true
	case r == '\u034F', r == '\u115F', r == '\u1160', r == '\u17B4', r == '\u17B5', r == '\u3164', r == '\uFFA0', r == '\u2800':
		return true
	default:
		return r >= 0xE0000 && r <= 0xE0FFF || r >= 0xFE00 && r <= 0xFE0D
	}
}

func isEmoji(r rune) bool {
	return unicode.Is(unicode.So, r) || r == '\uFE0F' || r >= 0x1F3FB && r <= 0x1F3FF
}
