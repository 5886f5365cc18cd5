// Package redaction removes secrets from text for readers: logs and providers' answers. Its Redactor removes
// personal data from the text that a workspace stores.
package redaction

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"

	"github.com/google/uuid"

	"palimpsest/pipeline/expression"
)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// The forms of secrets: keys of providers, Palimpsest, Stripe, clouds and code hosts, bearer tokens, JWTs,
// private keys in PEM; passwords and keys in URLs; JSON members named like secrets. The prefixes of our own
// API keys, which logs show, are too short to match.
var (
	secretForm  = expression.New(`\b(?:sk|rk|pk)[-_][A-Za-z0-9_-]{8,}|\bplm_[a-z]+_[A-Za-z0-9]{12,}|\bgsk_[A-Za-z0-9]{8,}|\bAIza[A-Za-z0-9_-]{20,}|\bwhsec_[A-Za-z0-9]{8,}|(?i:\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[opsur]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}|\bxox[abeprs]-[A-Za-z0-9-]{10,}|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----|[^-]*)`)
	userInfo    = expression.New(`://[^/\s:@]*:[^/\s@]+@`)
	secretQuery = expression.New(`(?i)([?&](?:api[-_]?)?(?:key|token|access_token)=)[^&\s"]+`)
	namedSecret = expression.New(`(?i)("(?:authorization|proxy-authorization|x-api-key|api[-_]?key|x-goog-api-key|x-(?:palimpsest-)?provider-key|cookie|set-cookie|password|(?:client[-_]?)?secret|(?:access[-_]?|refresh[-_]?)?token)":)\s*(?:"(?:[^"\\]|\\.)*"|\[[^\]]*\])`)
)

// marks returns strings, at least one of which occurs in every text with a secret, so that most texts skip
// the slower expressions. Words in mixed case, as in "bEaReR", are not covered.
func marks() [30]string {
	return [...]string{
		"sk-", "rk-", "pk-", "sk_", "rk_", "pk_", ours, "AIza", "whsec_", "eyJ",
		"earer", "EARER", "asic", "ASIC", "://", "ey=", "EY=", "oken=", "OKEN=",
		"AKIA", "ASIA", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xox", "PRIVATE KEY-",
	}
}

// The prefix of Palimpsest's API keys and the length of the shortest one. The length matters because the log
// of every exchange shows a key's prefix.
const (
	ours         = "plm_"
	shortestOurs = len("plm_x_") + 12
)

// Text removes everything in the form of a secret.
func Text(text string) string {
	if len(text) == 36 && uuid.Validate(text) == nil {
		return text // an id, as most logged texts
	}
	if !mayHoldSecret(text) {
		return text
	}
	text = secretForm.ReplaceAllString(text, Redacted)
	text = userInfo.ReplaceAllString(text, "://"+Redacted+"@")
	return secretQuery.ReplaceAllString(text, "${1}"+Redacted)
}

func mayHoldSecret(text string) bool {
	for _, mark := range marks() {
		if strings.Contains(text, mark) && (mark != ours || len(text) >= shortestOurs) {
			return true
		}
	}
	return false
}

// keys finds the secrets that Clean replaces.
func keys(text string) []span {
	var found []span
	add := func(from, to int) {
		if from < to {
			found = append(found, span{from: from, to: to, piece: text[from:to]})
		}
	}
	if strings.Contains(text, `":`) {
		for _, at := range namedSecret.FindAllStringSubmatchIndex(text, -1) {
			value := strings.TrimLeft(text[at[3]:at[1]], " \t\r\n")
			if strings.HasPrefix(value, `"`) {
				add(at[1]-len(value)+1, at[1]-1)
			} else {
				add(at[1]-len(value), at[1])
			}
		}
	}
	if !mayHoldSecret(text) {
		return found
	}
	for _, at := range secretForm.FindAllStringIndex(text, -1) {
		add(at[0], at[1])
	}
	for _, at := range userInfo.FindAllStringIndex(text, -1) {
		add(at[0]+len("://"), at[1]-len("@"))
	}
	for _, at := range secretQuery.FindAllStringSubmatchIndex(text, -1) {
		add(at[3], at[1])
	}
	return found
}

// Members removes the values of JSON members named like secrets.
func Members(encoded []byte) []byte {
	return namedSecret.Compiled().ReplaceAll(encoded, []byte(`${1}"`+Redacted+`"`))
}

// Clean removes secrets, recognized by form or name, from a text, JSON or not.
func Clean(text string) string { return Text(string(Members([]byte(text)))) }

// planLines are the numbering plans of all countries: each line has a country's code and the pattern of its
// numbers behind it. They come from libphonenumber, which itself would link two more megabytes.
//
//go:embed plans.txt
var planLines string

// plans returns the pattern of the numbers behind each country code. A pattern is compiled on first use.
var plans = sync.OnceValue(func() map[string]func() *regexp.Regexp {
	known := make(map[string]func() *regexp.Regexp)
	for line := range strings.Lines(planLines) {
		code, form, _ := strings.Cut(strings.TrimSpace(line), " ")
		known[code] = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^(?:" + form + ")$") })
	}
	return known
})

// validPhone returns a number, from its digits with the country's code, as E.164; "" if it does not match a
// plan.
func validPhone(digits string) string {
	const longestCode = 3
	for size := 1; size <= min(longestCode, len(digits)); size++ {
		plan, exists := plans()[digits[:size]]
		if !exists {
			continue
		}
		// Many people write the zero for calls within the country: +49 (0) 30 …
		for _, national := range []string{digits[size:], strings.TrimPrefix(digits[size:], "0")} {
			if plan().MatchString(national) {
				return "+" + digits[:size] + national
			}
		}
	}
	return ""
}
