package patterns

import (
	"strings"

	"palimpsest/pipeline/expression"
)

// secrets are the shapes of text that must never be stored: keys of providers and clouds, tokens,
// passwords with a value, addresses of people.
var secrets = expression.New(`(?i)` + strings.Join([]string{
	`\b(?:sk|pk|rk|plm|ghp|gho|ghu|ghs|ghr|glpat|xox[abprs]|npm|hf|whsec|pypi|dop|shpat|sq0|ya29)[-_.][a-z0-9_\-]{8,}`,
	`\bgithub_pat_[a-z0-9_]{16,}`, `\b(?:akia|asia)[0-9a-z]{12,}`, `\baiza[0-9a-z_\-]{20,}`,
	`\beyj[a-z0-9_\-]{8,}\.`, `-----begin`, `\bbearer\s+[a-z0-9._\-]{8,}`,
	`(?:password|passwd|passphrase|passwort|pwd|secret|token|api[ _-]?key|credentials?)["'` + "`" + `]*\s*(?:is|are|=|:|to|lautet)+\s*["'` + "`" + `]*\S{4,}`,
	`(?:password|passphrase|passcode|token|secret)\s+[a-z]*[0-9]\S{3,}`, `(?:password|passphrase|passcode|secret)\s+\S{6,}[0-9]\S*`, `(?:password|passphrase)\s+[a-z]+[0-9]\S*`,
	`[a-z][a-z0-9+.\-]*://[^\s/:@]+:[^\s/@]+@`, `[a-z0-9._%+\-]+@[a-z0-9\-]+\.[a-z]{2,}`,
}, "|"))

// random matches a run of characters long enough to be a key.
var random = expression.New(`[A-Za-z0-9+/_=\-]{20,}`)

// HoldsSecret reports whether a text looks like it contains a key, token, password or someone's
// address. It prefers false positives, because they only cost a pattern.
func HoldsSecret(text string) bool {
	if secrets.MatchString(text) {
		return true
	}
	for _, run := range random.FindAllString(text, -1) {
		for part := range strings.SplitSeq(run, "/") {
			if isRandom(part) {
				return true
			}
		}
	}
	return false
}

// isRandom reports whether a run is not a word or name: its letters and digits alternate often.
func isRandom(run string) bool {
	if len(run) < 20 {
		return false
	}
	changes, digits := 0, 0
	var last byte
	for i := range len(run) {
		class := classOf(run[i])
		if class == '0' {
			digits++
		}
		if last != 0 && class != last && class != '-' {
			changes++
		}
		if class != '-' {
			last = class
		}
	}
	return digits >= 3 && changes >= 5
}

func classOf(sign byte) byte {
	switch {
	case '0' <= sign && sign <= '9':
		return '0'
	case 'a' <= sign && sign <= 'z':
		return 'a'
	case 'A' <= sign && sign <= 'Z':
		return 'A'
	}
	return '-'
}
