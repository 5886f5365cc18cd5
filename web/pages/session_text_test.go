package pages_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

func short(text string) string { return text[:min(len(text), 200)] }

func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// unquoted returns all strings of a JSON document, one after the other.
func unquoted(t *testing.T, document string) string {
	t.Helper()
	var out strings.Builder
	decoder := json.NewDecoder(strings.NewReader(document))
	for {
		token, err := decoder.Token()
		if err != nil {
			return out.String()
		}
		if text, is := token.(string); is {
			out.WriteString(text)
		}
	}
}
