package redaction

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"
)

// emails finds mail addresses: a dot-atom (RFC 5322) or letters of any script (RFC 6531) before the @, and a
// domain below an existing suffix, or one that companies use internally.
func emails(text string) []span {
	var found []span
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '@')
		if i < 0 {
			return found
		}
		at += i
		from, to := addressAround(text, at)
		at++
		if from < to {
			found = append(found, span{from: from, to: to, piece: strings.ToLower(text[from:to])})
			at = to
		}
	}
}

// addressAround returns the bounds of the address with an @; equal if it is not an address.
func addressAround(text string, at int) (from, to int) {
	from = at
	for from > 0 {
		letter, size := utf8.DecodeLastRuneInString(text[:from])
		if !isWord(letter) && !strings.ContainsRune("!#$%'*+-.^_~", letter) {
			break
		}
		from -= size
	}
	for from < at && text[from] == '.' {
		from++
	}
	to = at + 1
	for to < len(text) {
		letter, size := utf8.DecodeRuneInString(text[to:])
		if !isWord(letter) && letter != '.' && letter != '-' {
			break
		}
		to += size
	}
	domain := strings.TrimRight(text[at+1:to], ".-_")
	local := text[from:at]
	if local == "" || local == "git" || len(local) > 64 || strings.HasSuffix(local, ".") || !isDomain(domain) {
		return at, at
	}
	return from, at + 1 + len(domain)
}

func isWord(letter rune) bool {
	return letter != utf8.RuneError && (unicode.IsLetter(letter) || unicode.IsDigit(letter) || unicode.IsMark(letter))
}

// isDomain reports whether a domain can receive mail.
func isDomain(domain string) bool {
	domain = strings.ToLower(domain)
	dot := strings.LastIndexByte(domain, '.')
	if dot < 1 || len(domain) > 253 || strings.Contains(domain, "..") {
		return false
	}
	top := domain[dot+1:]
	if strings.ContainsFunc(top, func(letter rune) bool { return letter >= utf8.RuneSelf }) {
		return true // a country's own script
	}
	inside := []string{"corp", "example", "home", "internal", "intranet", "invalid", "lan", "local", "localhost", "test"}
	_, exists := publicsuffix.PublicSuffix(domain)
	return exists || slices.Contains(inside, top) || strings.HasPrefix(top, "xn--")
}
