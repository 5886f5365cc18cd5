package gemini

import (
	"net/url"
	"strings"
)

// address returns the path of a request to an endpoint.
func address(endpoint, model string, stream bool) string {
	path := strings.Replace(endpoint, "{model}", url.PathEscape(strings.TrimPrefix(model, "models/")), 1)
	if stream {
		path = strings.Replace(path, ":generateContent", ":streamGenerateContent?alt=sse", 1)
	}
	return path
}
