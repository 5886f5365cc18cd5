// Package extract takes the parts of texts that a shortened prompt keeps: names and where they are used, sentences,
// excerpts of tool results, the files that a call changed, and texts cut at whole characters.
package extract

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
)

// JoinNonEmpty joins the texts that are not empty.
func JoinNonEmpty(separator string, texts ...string) string {
	kept := texts[:0:0]
	for _, text := range texts {
		if text != "" {
			kept = append(kept, text)
		}
	}
	return strings.Join(kept, separator)
}

// CutAt returns the length in bytes of the first characters of text. It is shorter if the cut would
// split a grapheme cluster.
func CutAt(text string, characters int) int {
	end := 0
	for range characters {
		if end == len(text) {
			return end
		}
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return startOf(text, end)
}

// CutFrom returns the position of the last characters of text. It is later if the cut would split a
// grapheme cluster.
func CutFrom(text string, characters int) int {
	start := len(text)
	for range characters {
		if start == 0 {
			return start
		}
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	for start < len(text) && Joins(text, start) {
		_, size := utf8.DecodeRuneInString(text[start:])
		start += size
	}
	return start
}

// startOf moves a cut back to the start of the character that it splits.
func startOf(text string, cut int) int {
	for cut > 0 && Joins(text, cut) {
		_, size := utf8.DecodeLastRuneInString(text[:cut])
		cut -= size
	}
	return cut
}

// Joins reports whether the runes on both sides of a cut make one grapheme cluster: combining
// marks, joiners, skin tones, halves of flags, syllables, line ends.
func Joins(text string, cut int) bool {
	if cut <= 0 || cut >= len(text) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(text[:cut])
	after, _ := utf8.DecodeRuneInString(text[cut:])
	const joiner = '\u200d'
	switch {
	case before == '\r' && after == '\n':
		return true
	case unicode.Is(unicode.M, after), after == joiner, before == joiner:
		return true
	case after >= 0x1f3fb && after <= 0x1f3ff, after >= 0xe0020 && after <= 0xe007f:
		return true
	case isFlagHalf(before) && isFlagHalf(after):
		return flagHalvesBefore(text[:cut])%2 == 1
	case after >= 0x1160 && after <= 0x11ff:
		return true
	}
	return false
}

func isFlagHalf(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// flagHalvesBefore counts the halves of flags at the end of text.
func flagHalvesBefore(text string) int {
	n := 0
	for len(text) > 0 {
		r, size := utf8.DecodeLastRuneInString(text)
		if !isFlagHalf(r) {
			break
		}
		text = text[:len(text)-size]
		n++
	}
	return n
}

// Shorten returns text in one line of at most so many characters.
func Shorten(text string, characters int) string {
	if isPlain(text, characters) {
		if len(text) <= characters {
			return text
		}
		return strings.TrimSpace(text[:characters]) + "…"
	}
	if bytes := characters * 8; len(text) > bytes {
		text = text[:CutAt(text[:bytes], characters*2)] // enough, however long the text is
	}
	text = strings.Join(strings.Fields(text), " ")
	cut := CutAt(text, characters)
	if cut == len(text) {
		return text
	}
	return strings.TrimSpace(text[:cut]) + "…"
}

// isPlain reports whether the first characters of a text and the one after them are plain letters
// in one line, so that a cut can't split a grapheme cluster.
func isPlain(text string, characters int) bool {
	for i := range min(len(text), characters+1) {
		isSpace := text[i] == ' '
		if text[i] < ' ' || text[i] >= utf8.RuneSelf || isSpace && (i == 0 || i == characters || i+1 == len(text) || text[i-1] == ' ') {
			return false
		}
	}
	return len(text) <= characters+1 || text[characters+1] < utf8.RuneSelf
}

// Sentence returns the beginning of a text: its first sentence, and the next ones as long as the
// result is tiny ("Sure."), in at most so many characters, and the rest of the text. Injected
// reminders are left out.
func Sentence(text string, characters int) (first, rest string) {
	const little = 24
	text = strings.TrimSpace(conversation.WithoutReminders(text))
	end := 0
	for end < len(text) && end < characters*utf8.UTFMax {
		end += SentenceEnd(text[end:])
		if len(strings.TrimSpace(text[:end])) > little {
			break
		}
	}
	return Shorten(text[:end], characters), text[end:]
}

// SentenceEnd returns the length of the first sentence of text, its end included.
func SentenceEnd(text string) int {
	for i, r := range text {
		next := i + utf8.RuneLen(r)
		switch r {
		case '\n':
			return next
		case '。', '！', '？':
			return next
		case '.', '!', '?':
			if next == len(text) || text[next] == ' ' || text[next] == '\n' {
				return next
			}
		}
	}
	return len(text)
}

// Thousands returns a number with commas.
func Thousands(number int) string {
	digits := strconv.Itoa(number)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Archived names the original of a message.
func Archived(index int) string { return "#" + strconv.Itoa(index) }
