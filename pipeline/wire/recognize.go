package wire

import "encoding/json"

// How sure a codec can be that a body has its format.
const (
	Possible = 1
	Likely   = 2
	Certain  = 3
)

// Hints are the members of a body by which its format is recognized.
type Hints struct {
	HasInput     bool
	HasMessages  bool
	HasSystem    bool
	HasMaxTokens bool
	HasChatRoles bool // a message of the roles tool, system or developer, or with tool_calls
}

// HintsOf reads the hints of a body. ok is false for what is not a JSON object.
func HintsOf(body []byte) (hints Hints, ok bool) {
	var members struct {
		Input     json.RawMessage `json:"input"`
		MaxTokens json.RawMessage `json:"max_tokens"`
		System    json.RawMessage `json:"system"`
		Messages  []struct {
			Role      string          `json:"role"`
			ToolCalls json.RawMessage `json:"tool_calls"`
		} `json:"messages"`
	}
	if json.Unmarshal(body, &members) != nil {
		return Hints{}, false
	}
	hints = Hints{
		HasInput: members.Input != nil, HasMessages: members.Messages != nil,
		HasSystem: members.System != nil, HasMaxTokens: members.MaxTokens != nil,
	}
	for _, message := range members.Messages {
		switch message.Role {
		case "tool", "system", "developer":
			hints.HasChatRoles = true
		}
		hints.HasChatRoles = hints.HasChatRoles || message.ToolCalls != nil
	}
	return hints, true
}
