package wire

import (
	"encoding/json"

	"palimpsest/pipeline/conversation"
)

// Spoken returns the most informative message of an answer for a person: the first with text, otherwise the
// first with a call, otherwise the first of all; nil without messages. An answer of Responses has several,
// reasoning first. The others come back with the client's next request.
func (a *Answer) Spoken(codec Codec) json.RawMessage {
	if len(a.Messages) < 2 {
		return first(a.Messages)
	}
	var called json.RawMessage
	for _, raw := range a.Messages {
		message, err := codec.Parse(raw)
		if err != nil {
			continue
		}
		for i := range message.Blocks {
			switch block := &message.Blocks[i]; {
			case block.Kind == conversation.Text && block.Text != "":
				return raw
			case block.Kind == conversation.ToolCall && called == nil:
				called = raw
			}
		}
	}
	if called != nil {
		return called
	}
	return first(a.Messages)
}

func first(messages []json.RawMessage) json.RawMessage {
	if len(messages) == 0 {
		return nil
	}
	return messages[0]
}
