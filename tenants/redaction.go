package tenants

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// RedactionKind is a kind of personal data.
type RedactionKind string

// The kinds of personal data.
const (
	RedactNames  RedactionKind = "name"  // known names of people
	RedactEmails RedactionKind = "email" // mail addresses
	RedactCards  RedactionKind = "card"  // numbers of payment cards
	RedactPhones RedactionKind = "phone" // phone numbers
	RedactKeys   RedactionKind = "key"   // API keys, passwords and other secrets
)

// RedactionKinds returns every kind, in display order.
func RedactionKinds() []RedactionKind {
	return []RedactionKind{RedactNames, RedactEmails, RedactCards, RedactPhones, RedactKeys}
}

// The limits of a workspace's list of names.
const (
	maxRedactedNames = 500
	maxRedactedName  = 100 // characters
)

// Redaction lists the personal data that a workspace has replaced in session text before storage. It is off
// without Kinds.
type Redaction struct {
	Kinds []RedactionKind
	Names []string // of people, for RedactNames
}

// normal returns the settings with each kind once, in the order of RedactionKinds, and without blanks around
// names.
func (r Redaction) normal() Redaction {
	var kinds []RedactionKind
	for _, kind := range RedactionKinds() {
		if slices.Contains(r.Kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	var names []string
	for _, name := range r.Names {
		if name = strings.Join(strings.Fields(name), " "); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return Redaction{Kinds: kinds, Names: names}
}

func (r Redaction) validate() error {
	for _, kind := range r.Kinds {
		if !slices.Contains(RedactionKinds(), kind) {
			return Invalid{Field: "redact", Message: "has the unknown kind " + string(kind) + ": the kinds are name, email, card, phone and key"}
		}
	}
	if len(r.Names) > maxRedactedNames {
		return Invalid{Field: "redact_names", Message: "may have at most 500 names"}
	}
	for _, name := range r.Names {
		if length := utf8.RuneCountInString(name); length < 2 || length > maxRedactedName || !strings.ContainsFunc(name, unicode.IsLetter) || strings.ContainsFunc(name, unicode.IsControl) {
			return Invalid{Field: "redact_names", Message: "must be names of 2 to 100 characters, with letters and without line breaks"}
		}
	}
	return nil
}

// RedactionCount is the number of replacements of a kind of personal data in a workspace.
type RedactionCount struct {
	Kind  RedactionKind
	Found int64
}
