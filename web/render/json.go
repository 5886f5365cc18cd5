package render

import (
	"bytes"
	"encoding/json"
	"strings"
)

// isJSON reports whether text is an object or a list.
func isJSON(text string) bool {
	start := strings.TrimSpace(text)
	return len(text) <= maxCode && (strings.HasPrefix(start, "{") || strings.HasPrefix(start, "[")) && json.Valid([]byte(start))
}

// pretty returns JSON with a line for each value. Numbers, repeated names and escapes keep their spelling.
// Text that is too large, too deep or not JSON stays unchanged.
func pretty(text string) string {
	start := strings.TrimSpace(text)
	if len(start) > maxCode || depthOf(start) > maxDepth {
		return text
	}
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(start), "", "  "); err != nil || out.Len() > 4*maxCode {
		return text
	}
	return out.String()
}

// depthOf returns the nesting depth of lists and objects, at least.
func depthOf(text string) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
