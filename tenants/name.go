package tenants

import (
	"fmt"
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxEmail is the longest address, in bytes (RFC 5321, section 4.5.3.1.3, less the brackets).
const MaxEmail = 254

// MaxWorkspaceName is the longest name of a workspace, in characters.
const MaxWorkspaceName = 80

// CheckName returns a typed name without surrounding space, or an Invalid for field if it is not one line of
// 1 to most characters. It checks every name that people choose, since names appear in mails, logs, tables
// and terminals.
func CheckName(field, name string, most int) (string, error) {
	name = strings.TrimSpace(name)
	switch length := utf8.RuneCountInString(name); {
	case length == 0:
		return "", Invalid{Field: field, Message: fmt.Sprintf("must have 1 to %d characters", most)}
	case length > most:
		return "", Invalid{Field: field, Message: fmt.Sprintf("must have 1 to %d characters; it has %d", most, length)}
	case !isOneLine(name):
		return "", Invalid{Field: field, Message: "must be one line of text, without control characters"}
	}
	return name, nil
}

// isOneLine reports whether a text has no line breaks, control characters or characters that change the text
// direction.
func isOneLine(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(sign rune) bool {
		return unicode.IsControl(sign) || unicode.In(sign, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
	})
}

// CheckEmail returns an address in lower case, or an Invalid for email if it cannot receive mail. It checks
// every address that is stored or sent to. The domain must be a name with a dot, not an IP address.
func CheckEmail(email string) (string, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	if email == "" {
		return "", Invalid{Field: "email", Message: "is missing"}
	}
	address, err := mail.ParseAddress(email)
	if err != nil || address.Address != email || len(email) > MaxEmail || strings.Count(email, "@") != 1 || !isOneLine(email) || !isMailDomain(DomainOf(email)) {
		return "", Invalid{Field: "email", Message: "is not an e-mail address such as ada@example.com"}
	}
	return email, nil
}

// isMailDomain reports whether a domain is a name with a dot instead of an IP address.
func isMailDomain(domain string) bool {
	labels := strings.Split(domain, ".")
	last := labels[len(labels)-1]
	for _, label := range labels {
		if label == "" || strings.ContainsAny(label, "[]:\"\\ ") {
			return false
		}
	}
	return len(labels) > 1 && strings.ContainsFunc(last, unicode.IsLetter)
}
