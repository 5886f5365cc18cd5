package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// dotenvFormat is a file of lines NAME=value.
type dotenvFormat struct{}

func (dotenvFormat) parse(text []byte) (map[string]any, error) {
	content := map[string]any{}
	for line := range bytes.Lines(text) {
		if name, value, is := dotenvLine(line); is {
			content[name] = value
		}
	}
	return content, nil
}

// dotenvLine returns the name and the value of a line with an assignment.
func dotenvLine(line []byte) (name, value string, is bool) {
	bare := strings.TrimSpace(string(line))
	if strings.HasPrefix(bare, "#") {
		return "", "", false
	}
	name, value, is = strings.Cut(strings.TrimPrefix(bare, "export "), "=")
	return strings.TrimSpace(name), strings.Trim(strings.TrimSpace(value), `"'`), is
}

func (f dotenvFormat) set(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	line, is := plain(value).(string)
	if !is || strings.ContainsAny(line, "\"'\n# ") {
		return nil, fmt.Errorf("%s: a value with spaces, quotes or # has no place in a file of environment variables", path[0])
	}
	added := path[0] + "=" + line + newlineOf(text)
	if at, end := dotenvFind(text, path[0]); at >= 0 {
		return append(append(bytes.Clone(text[:at]), added...), text[end:]...), nil
	}
	return insert(text, len(text), added), nil
}

func (f dotenvFormat) remove(text []byte, path []string) ([]byte, error) {
	at, end := dotenvFind(text, path[0])
	return append(bytes.Clone(text[:at]), text[end:]...), nil
}

// dotenvFind returns the index of the last line that sets a name, or -1.
func dotenvFind(text []byte, name string) (start, end int) {
	found, at := -1, 0
	for line := range bytes.Lines(text) {
		if set, _, is := dotenvLine(line); is && set == name {
			found, end = at, at+len(line)
		}
		at += len(line)
	}
	return found, end
}
