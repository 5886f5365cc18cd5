// Package redaction takes secrets out of text that someone will read: logs, and what
// providers answer.
package redaction

import (
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// Redacted stands where a secret was.
const Redacted = "[redacted]"

// The forms of secrets: of keys of providers, of Palimpsest, of Stripe, of bearer tokens, of
// JWTs; passwords and keys in URLs; members of JSON that are named like secrets. Our own
// API keys' prefixes, which logs show, are shorter.
var (
	secretForm  = regexp.MustCompile(`\b(?:sk|rk|pk)[-_][A-Za-z0-9_-]{8,}|\bplm_[a-z]+_[A-Za-z0-9]{12,}|\bgsk_[A-Za-z0-9]{8,}|\bAIza[A-Za-z0-9_-]{20,}|\bwhsec_[A-Za-z0-9]{8,}|(?i:\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`)
	userInfo    = regexp.MustCompile(`://[^/\s:@]*:[^/\s@]+@`)
	secretQuery = regexp.MustCompile(`(?i)([?&](?:api[-_]?)?(?:key|token|access_token)=)[^&\s"]+`)
	namedSecret = regexp.MustCompile(`(?i)("(?:authorization|proxy-authorization|x-api-key|api[-_]?key|x-goog-api-key|x-(?:palimpsest-)?provider-key|cookie|set-cookie|password|(?:client[-_]?)?secret|(?:access[-_]?|refresh[-_]?)?token)":)\s*(?:"(?:[^"\\]|\\.)*"|\[[^\]]*\])`)
)

// marks returns strings, at least one of which is in every text that holds a secret: looking
// for them costs next to nothing. Words in mixed case, as in "bEaReR", are not covered.
func marks() [19]string {
	return [...]string{
		"sk-", "rk-", "pk-", "sk_", "rk_", "pk_", ours, "AIza", "whsec_", "eyJ",
		"earer", "EARER", "asic", "ASIC", "://", "ey=", "EY=", "oken=", "OKEN=",
	}
}

// What Palimpsest's API keys begin with, and how long the shortest of them is: the prefix of
// one stands in the log of every exchange.
const (
	ours         = "plm_"
	shortestOurs = len("plm_x_") + 12
)

// Text returns a text without what has the form of a secret.
func Text(text string) string {
	if len(text) == 36 && uuid.Validate(text) == nil {
		return text // an id: most of what is logged
	}
	for _, mark := range marks() {
		if strings.Contains(text, mark) && (mark != ours || len(text) >= shortestOurs) {
			text = secretForm.ReplaceAllString(text, Redacted)
			text = userInfo.ReplaceAllString(text, "://"+Redacted+"@")
			return secretQuery.ReplaceAllString(text, "${1}"+Redacted)
		}
	}
	return text
}

// Members returns JSON without the values of members that are named like secrets.
func Members(encoded []byte) []byte {
	return namedSecret.ReplaceAll(encoded, []byte(`${1}"`+Redacted+`"`))
}

// Clean returns a text, JSON or not, without what is a secret by its form or its name.
func Clean(text string) string { return Text(string(Members([]byte(text)))) }
