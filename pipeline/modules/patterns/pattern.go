package patterns

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"palimpsest/pipeline/expression"
	"palimpsest/tenants"
)

// Kind is the kind of a pattern.
type Kind string

// The kinds of patterns.
const (
	Convention Kind = "convention" // how things are done here
	Directive  Kind = "directive"  // a standing order that people repeat
)

// Status is the state of a pattern.
type Status string

// The statuses of patterns. Only approved ones are put into prompts.
const (
	Approved Status = "approved"
	Disabled Status = "disabled"
)

// The limits of a pattern.
const (
	MaxText     = 300 // characters of the text
	MaxTerms    = 12
	MaxOfTerm   = 120 // bytes of one term, path or signature
	MaxPatterns = 2000
	MaxServed   = 500 // approved patterns of a workspace in memory, those edited last first
)

// ErrNotFound means that the workspace doesn't have the pattern.
var ErrNotFound = errors.New("no such pattern")

// ErrChanged means that someone has changed the pattern in the meantime.
var ErrChanged = errors.New("pattern was changed in the meantime")

// ErrFull means that the workspace has MaxPatterns patterns.
var ErrFull = errors.New("too many patterns")

// When describes which requests a pattern is relevant to. Terms and Paths are looked for in typed
// text, Signatures in new tool results too.
type When struct {
	Terms      []string // words as Terms returns them
	Paths      []string // files
	Signatures []string // errors, as Signature returns them
	Always     bool     // every conversation
}

// Pattern is a rule that people of a workspace have written.
type Pattern struct {
	ID        uuid.UUID
	Workspace tenants.WorkspaceID
	Kind      Kind
	Text      string
	When      When
	Status    Status
	Version   int // grows with each change that someone makes

	CreatedAt time.Time
	CreatedBy uuid.UUID // uuid.Nil if an earlier version found it in sessions
	EditedAt  time.Time // time of the last change by a person
	EditedBy  uuid.UUID // author of the last change; uuid.Nil if unknown
}

// Change holds the new values of a pattern; nil leaves a field unchanged.
type Change struct {
	Text   *string
	When   *When
	Status *Status
}

// Filter bounds a list of patterns.
type Filter struct {
	Status Status    // "" means all
	After  uuid.UUID // the last one of the previous page; uuid.Nil means the first page
	Limit  int
}

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

// Invalid says which field of a typed pattern is invalid, and which values are allowed.
type Invalid struct {
	Field   string
	Message string
}

// Error implements error.
func (i Invalid) Error() string { return i.Field + " " + i.Message }

// Kinds are the kinds that a pattern can have.
func Kinds() []Kind { return []Kind{Convention, Directive} }

// Statuses are the statuses that a pattern can have.
func Statuses() []Status { return []Status{Approved, Disabled} }

// CheckText returns a text that someone typed in one line, or an Invalid.
func CheckText(text string) (string, error) {
	text = strings.Join(strings.Fields(text), " ")
	switch {
	case text == "" || utf8.RuneCountInString(text) > MaxText:
		return "", Invalid{Field: "text", Message: fmt.Sprintf("must have 1 to %d characters", MaxText)}
	case len(Words(text)) == 0:
		return "", Invalid{Field: "text", Message: "must have words that say something"}
	case HoldsSecret(text):
		return "", Invalid{Field: "text", Message: "looks as if it held a key, a password or an address; patterns go into prompts"}
	}
	return text, nil
}

// CheckWhen returns which requests a pattern is to be relevant to, or an Invalid. Terms may be
// written as in texts, and signatures as the lines that report the error.
func CheckWhen(typed When) (When, error) {
	when := When{Always: typed.Always}
	for _, term := range typed.Terms {
		when.Terms = append(when.Terms, Words(term)...)
	}
	for _, path := range typed.Paths {
		when.Paths = append(when.Paths, strings.TrimSpace(path))
	}
	for _, line := range typed.Signatures {
		signature := Signature(line)
		if signature == "" {
			return when, Invalid{Field: "when.signatures", Message: "must be lines that report an error, with at least three words"}
		}
		when.Signatures = append(when.Signatures, signature)
	}
	for _, part := range []struct {
		field  string
		values []string
	}{{"when.terms", when.Terms}, {"when.paths", when.Paths}, {"when.signatures", when.Signatures}} {
		wrong := slices.ContainsFunc(part.values, func(value string) bool {
			return value == "" || len(value) > MaxOfTerm || HoldsSecret(value)
		})
		if wrong || len(part.values) > MaxTerms {
			return when, Invalid{Field: part.field, Message: fmt.Sprintf("must be at most %d, each of at most %d bytes and without secrets", MaxTerms, MaxOfTerm)}
		}
	}
	return when, nil
}

// IsNever reports whether a pattern is relevant to no request.
func (w When) IsNever() bool { return len(w.Terms)+len(w.Paths)+len(w.Signatures) == 0 && !w.Always }

// Facts returns a pattern's entry in an audit log, without its text.
func (p *Pattern) Facts() map[string]string {
	return map[string]string{"kind": string(p.Kind), "status": string(p.Status), "version": strconv.Itoa(p.Version)}
}
