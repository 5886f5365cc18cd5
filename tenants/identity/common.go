package identity

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// commonList holds common passwords in lower case, one a line, behind a few lines that say
// where they come from: @zxcvbn-ts/language-common 4.1.3 of npm (MIT License).
//
//go:embed common.txt.gz
var commonList []byte

// common returns the common passwords, parsed on first use.
var common = sync.OnceValue(readCommon)

const (
	leastDistinct = 5 // distinct characters of a password
	keyboardRows  = "1234567890-=qwertyuiop[]asdfghjkl;'zxcvbnm,./ 1234567890qwertyuiopasdfghjklzxcvbnm"
	alphabet      = "abcdefghijklmnopqrstuvwxyz 0123456789012345678901234567890123456789"
)

func readCommon() map[string]bool {
	unpacked, err := gzip.NewReader(bytes.NewReader(commonList))
	if err != nil {
		panic("identity: list of common passwords: " + err.Error())
	}
	list, err := io.ReadAll(unpacked)
	if err != nil {
		panic("identity: list of common passwords: " + err.Error())
	}
	known := map[string]bool{"palimpsest": true}
	for line := range strings.Lines(string(list)) {
		if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "# ") {
			known[line] = true
		}
	}
	return known
}

// isCommon reports whether attackers try a password first: a common one, one with digits, signs or a few
// letters swapped, a repetition of one, a row of keys or of the alphabet, or the person's own address.
func isCommon(password, email string) bool {
	plain := strings.ToLower(password)
	name, _, _ := strings.Cut(email, "@")
	for _, form := range formsOf(plain) {
		if common()[form] || email != "" && (form == email || form == name) {
			return true
		}
	}
	return isPattern(plain)
}

// formsOf returns the common passwords from which a password may be derived.
func formsOf(plain string) []string {
	var forms []string
	for _, swapped := range []string{plain, swapBack.Replace(plain), swapBackToL.Replace(plain)} {
		bare := strings.TrimFunc(swapped, func(letter rune) bool { return !unicode.IsLetter(letter) })
		forms = append(forms, swapped, unit(swapped), bare, unit(bare))
	}
	stripped := strings.TrimFunc(plain, func(letter rune) bool { return !unicode.IsLetter(letter) })
	return append(forms, swapBack.Replace(stripped), swapBackToL.Replace(stripped))
}

// Common substitutes for letters.
var (
	swapBack    = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")
	swapBackToL = strings.NewReplacer("0", "o", "1", "l", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "l")
)

// unit returns the shortest text whose repetition makes up the given one: usually the text itself.
func unit(text string) string {
	for length := 1; length <= len(text)/2; length++ {
		if len(text)%length == 0 && strings.Repeat(text[:length], len(text)/length) == text {
			return text[:length]
		}
	}
	return text
}

// isPattern reports whether a password has few distinct characters, or is a sequence from the keyboard or the
// alphabet.
func isPattern(plain string) bool {
	distinct := map[rune]bool{}
	for _, letter := range plain {
		distinct[letter] = true
	}
	if len(distinct) < leastDistinct {
		return true
	}
	for _, row := range []string{alphabet, keyboardRows, backwards(alphabet), backwards(keyboardRows)} {
		if strings.Contains(row, plain) {
			return true
		}
	}
	return false
}

func backwards(text string) string {
	letters := []rune(text)
	slices.Reverse(letters)
	return string(letters)
}
