package patterns

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
