package connect

import (
	"encoding/json"
	"fmt"
	"strings"
)

// textFormat is a file with one value, under the path "value".
type textFormat struct{}

func (textFormat) parse(text []byte) (map[string]any, error) {
	if len(text) == 0 {
		return map[string]any{}, nil
	}
	return map[string]any{"value": strings.TrimSpace(string(text))}, nil
}

func (textFormat) set(_ []byte, _ []string, value json.RawMessage) ([]byte, error) {
	return fmt.Appendf(nil, "%v\n", plain(value)), nil
}

func (textFormat) remove([]byte, []string) ([]byte, error) { return nil, nil }
