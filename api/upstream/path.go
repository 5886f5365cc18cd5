package upstream

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Errors for requests that no provider receives.
var (
	ErrPath   = errors.New("path is not written in its one canonical form")
	ErrMethod = errors.New("method is not relayed")
)

// Methods returns the methods that are relayed to providers.
func Methods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}

// CheckMethod returns ErrMethod for a method that is not relayed, because some servers answer TRACE with the
// request's headers, and with them the stored key.
func CheckMethod(method string) error {
	if !slices.Contains(Methods(), method) {
		return ErrMethod
	}
	return nil
}

// CheckPath returns ErrPath for an escaped path that a server could take for another one: it has a dot
// segment in any form, a backslash, a control character, invalid UTF-8, or an unnecessary escape.
func CheckPath(escaped string) error {
	plain, err := url.PathUnescape(escaped)
	if err != nil || !utf8.ValidString(plain) || strings.ContainsFunc(plain, unicode.IsControl) || hasNeedlessEscape(escaped) {
		return ErrPath
	}
	if strings.Contains(plain, `\`) || hasDotSegment(Reading(escaped)) {
		return ErrPath
	}
	return nil
}

// maxEscapes is how often a path is unescaped to find its possible meaning. CheckPath refuses any path that
// was escaped more than once.
const maxEscapes = 3

// Reading returns the path as the most lenient server would read it: all escapes undone, backslashes and
// look-alikes as the characters they resemble, without parameters of segments, doubled slashes, a slash at
// the end and blanks, in lower case.
func Reading(escaped string) string {
	plain := escaped
	for range maxEscapes {
		next, err := url.PathUnescape(plain)
		if err != nil {
			break
		}
		plain = next
	}
	plain = strings.ToLower(lookAlikes.Replace(norm.NFKC.String(plain)))
	plain, _, _ = strings.Cut(plain, "#")
	plain, _, _ = strings.Cut(plain, "?")
	var path strings.Builder
	for segment := range strings.SplitSeq(plain, "/") {
		segment, _, _ = strings.Cut(segment, ";")
		segment = strings.TrimFunc(segment, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		if segment != "" {
			path.WriteString("/" + segment)
		}
	}
	return path.String()
}

// lookAlikes maps characters to the separators that some servers take them for.
var lookAlikes = strings.NewReplacer(`\`, "/", "\u2215", "/", "\u2044", "/", "\u29f8", "/", "\x00", "")

// hasDotSegment reports whether a segment of a path consists of dots.
func hasDotSegment(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if strings.Contains(segment, ".") && strings.Trim(segment, ".\u00a0 ") == "" {
			return true
		}
	}
	return false
}

// hasNeedlessEscape reports whether a path escapes a character that doesn't need it (RFC 3986, section 2.3),
// or escapes an escape.
func hasNeedlessEscape(escaped string) bool {
	rest := escaped
	for {
		_, after, found := strings.Cut(rest, "%")
		if !found || len(after) < 2 {
			return false
		}
		rest = after[2:]
		if c, err := url.PathUnescape("%" + after[:2]); err == nil && (isUnreserved(c[0]) || c == "%" && isEscape(rest)) {
			return true
		}
	}
}

// isEscape reports whether a text begins with the part of an escape behind "%".
func isEscape(text string) bool {
	if len(text) < 2 {
		return false
	}
	_, err := url.PathUnescape("%" + text[:2])
	return err == nil
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
