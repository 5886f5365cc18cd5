package ipc

import (
	"encoding/json"
	"fmt"

	"gopkg.in/yaml.v3"
)

// Window is a context window in tokens; 0, written "auto", is the model's own.
type Window int

// Tokens returns the window in tokens; 0 means the model's own.
func (w Window) Tokens() int { return int(w) }

// MarshalYAML implements yaml.Marshaler.
func (w Window) MarshalYAML() (any, error) {
	if w == 0 {
		return "auto", nil
	}
	return int(w), nil
}

// MarshalJSON implements json.Marshaler.
func (w Window) MarshalJSON() ([]byte, error) {
	if w == 0 {
		return []byte(`"auto"`), nil
	}
	return json.Marshal(int(w))
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *Window) UnmarshalYAML(node *yaml.Node) error {
	if node.Value == "auto" {
		*w = 0
		return nil
	}
	return node.Decode((*int)(w))
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *Window) UnmarshalJSON(data []byte) error {
	if string(data) == `"auto"` {
		*w = 0
		return nil
	}
	return json.Unmarshal(data, (*int)(w))
}

func checkWindow(window Window) string {
	const lowest, highest = 1_000, 100_000_000
	if window == 0 || window >= lowest && window <= highest {
		return ""
	}
	return fmt.Sprintf("%d is out of range; allowed is auto or %d to %d", window, lowest, highest)
}
