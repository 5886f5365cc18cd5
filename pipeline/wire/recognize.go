package wire

import "encoding/json"

// How likely a body has a codec's format.
const (
	Possible = 1
	Likely   = 2
	Certain  = 3
)

// Hints are the parts of a body by which its format is recognized.
type Hints struct {
	HasChatRoles bool // a message of the roles tool, system or developer, or with tool_calls

	members map[string]json.RawMessage
}

// Has reports whether the body has a member.
func (h Hints) Has(member string) bool {
	_, has := h.members[member]
	return has
}

// HintsOf reads the hints of a body. ok is false unless the body is a JSON object with messages in a
// supported form.
func HintsOf(body []byte) (hints Hints, ok bool) {
	if json.Unmarshal(body, &hints.members) != nil {
		return Hints{}, false
	}
	var messages []struct {
		Role      string          `json:"role"`
		ToolCalls json.RawMessage `json:"tool_calls"`
	}
	if hints.Has("messages") && json.Unmarshal(hints.members["messages"], &messages) != nil {
		return Hints{}, false
	}
	for _, message := range messages {
		switch message.Role {
		case "tool", "system", "developer":
			hints.HasChatRoles = true
		}
		hints.HasChatRoles = hints.HasChatRoles || message.ToolCalls != nil
	}
	return hints, true
}
