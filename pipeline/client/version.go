package client

import (
	"net/http"
	"strings"
)

// maxVersion limits the length of a client's version.
const maxVersion = 32

// Version returns the first version in a client's user agent, such as 2.1.330 of "claude-cli/2.1.330
// (external, cli)"; "" if absent.
func Version(headers http.Header) string {
	for product := range strings.FieldsSeq(headers.Get("User-Agent")) {
		_, version, found := strings.Cut(product, "/")
		if !found || version == "" || version[0] < '0' || version[0] > '9' {
			continue
		}
		end := strings.IndexFunc(version, func(r rune) bool {
			return !strings.ContainsRune(".-+", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		})
		if end >= 0 {
			version = version[:end]
		}
		return version[:min(len(version), maxVersion)]
	}
	return ""
}
