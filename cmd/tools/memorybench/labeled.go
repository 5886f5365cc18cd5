package memorybench

import (
	"encoding/json"
	"fmt"

	"palimpsest/pipeline/conversation"
)

// Labels of a labeled request.
const (
	Continuation = "continuation" // the first after a client's own compaction
	Fresh        = "fresh"        // begins a conversation
	Normal       = "normal"       // in the middle of one
)

// Labeled is a request with its known label.
type Labeled struct {
	ID     string          `json:"id"`
	Client string          `json:"client"`
	Label  string          `json:"label"`
	Real   bool            `json:"real"` // recorded; otherwise made from a client's template
	Body   json.RawMessage `json:"body"` // in Anthropic's format
}

// LoadLabeled reads labeled requests from a file of JSON lines. It returns
// os.ErrNotExist if absent.
func LoadLabeled(file string) ([]Labeled, error) {
	var all []Labeled
	err := eachLine(file, func(line []byte) error {
		var one Labeled
		if err := json.Unmarshal(line, &one); err != nil {
			return fmt.Errorf("read labeled request: %w", err)
		}
		all = append(all, one)
		return nil
	})
	return all, err
}

// part is a block of a body in Anthropic's format.
type part struct {
	Type    string          `json:"type"`
	Text    string          `json:"text,omitempty"`
	ID      string          `json:"id,omitempty"`
	Name    string          `json:"name,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	UseID   string          `json:"tool_use_id,omitempty"`
	Content string          `json:"content,omitempty"`
}

// said is a message of a body in Anthropic's format.
type said struct {
	Role    conversation.Role `json:"role"`
	Content []part            `json:"content"`
}

// written returns a message in the format of Anthropic's clients.
func written(message *conversation.Message) said {
	out := said{Role: message.Role, Content: []part{}}
	for i := range message.Blocks {
		block := &message.Blocks[i]
		switch block.Kind {
		case conversation.ToolCall:
			input := json.RawMessage(`{}`)
			var object map[string]json.RawMessage
			if json.Unmarshal([]byte(block.Text), &object) == nil {
				input = json.RawMessage(block.Text)
			}
			out.Content = append(out.Content, part{Type: "tool_use", ID: "call_" + block.ID, Name: block.Name, Input: input})
		case conversation.ToolResult:
			out.Content = append(out.Content, part{Type: "tool_result", UseID: "call_" + block.ID, Content: block.Text})
		case conversation.Text, conversation.Thinking, conversation.Media, conversation.Opaque:
			out.Content = append(out.Content, part{Type: "text", Text: block.Text})
		}
	}
	return out
}

// Body returns a request in Anthropic's format with messages followed by a typed text.
func Body(messages []conversation.Message, typed string) ([]byte, error) {
	all := make([]said, 0, len(messages)+1)
	for i := range messages {
		all = append(all, written(&messages[i]))
	}
	all = append(all, said{conversation.User, []part{{Type: "text", Text: typed}}})
	list, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("write messages: %w", err)
	}
	return around(list)
}

// around returns a request in Anthropic's format with a list of messages.
func around(list json.RawMessage) ([]byte, error) {
	body, err := json.Marshal(struct {
		Model     string          `json:"model"`
		MaxTokens int             `json:"max_tokens"`
		Messages  json.RawMessage `json:"messages"`
	}{"claude-sonnet-4-5", 1000, list})
	if err != nil {
		return nil, fmt.Errorf("write body: %w", err)
	}
	return body, nil
}
