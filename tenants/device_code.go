package tenants

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// A user code is read aloud and typed: 8 of 20 letters (34.5 bits), without vowels and without letters that
// resemble digits, as RFC 8628 section 6.1 proposes. It works for ten minutes and ten wrong attempts.
const (
	userLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userLength  = 8
	deviceBytes = 32
)

// newDeviceCode returns a code that cannot be guessed.
func newDeviceCode() string {
	random := make([]byte, deviceBytes)
	_, _ = rand.Read(random) // never fails
	return base64.RawURLEncoding.EncodeToString(random)
}

// newUserCode returns a code for a person to type.
func newUserCode() string {
	const fair = 256 - 256%len(userLetters) // bytes from here on would prefer some letters
	code := make([]byte, 0, userLength+1)
	random := make([]byte, 1)
	for len(code) < userLength+1 {
		if len(code) == userLength/2 {
			code = append(code, '-')
		}
		_, _ = rand.Read(random)
		if at := int(random[0]); at < fair {
			code = append(code, userLetters[at%len(userLetters)])
		}
	}
	return string(code)
}

// userCodeOf normalizes a typed code, and returns false if it cannot be one.
func userCodeOf(typed string) (string, bool) {
	letters := strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' || r == '\u2013' {
			return -1
		}
		return r
	}, strings.ToUpper(strings.TrimSpace(typed)))
	return letters, len(letters) == userLength && strings.Trim(letters, userLetters) == ""
}

// codeKind distinguishes a login's two codes, so that one is never accepted for the other.
type codeKind string

const (
	deviceCode codeKind = "device code "
	userCode   codeKind = "user code "
)

// hash returns the stored form of a code. The pepper is not in the database, so that a leaked database does
// not allow trying all user codes.
func (k codeKind) hash(pepper []byte, code string) []byte {
	mac := hmac.New(sha256.New, pepper)
	mac.Write([]byte(string(k) + code))
	return mac.Sum(nil)
}
