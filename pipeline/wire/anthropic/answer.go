package anthropic

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// answerBlock is a block of text in an answer.
type answerBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// answerUsage is the usage of an answer without a model.
type answerUsage struct {
	Input      int `json:"input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	Output     int `json:"output_tokens"`
}

// answerMessage is an answer of Messages.
type answerMessage struct {
	ID           string        `json:"id"`
	Type         string        `json:"type"`
	Role         string        `json:"role"`
	Model        string        `json:"model"`
	Content      []answerBlock `json:"content"`
	StopReason   *string       `json:"stop_reason"`
	StopSequence *string       `json:"stop_sequence"`
	Usage        answerUsage   `json:"usage"`
}

// answerEvent is an event of the stream of an answer.
type answerEvent struct {
	Type    string         `json:"type"`
	Index   *int           `json:"index,omitempty"`
	Message *answerMessage `json:"message,omitempty"`
	Block   *answerBlock   `json:"content_block,omitempty"`
	Delta   any            `json:"delta,omitempty"`
	Usage   *answerUsage   `json:"usage,omitempty"`
}

// answerEnd holds the stop reason of an answer.
type answerEnd struct {
	StopReason   string  `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
}

// Answer implements wire.Answerer.
func (Codec) Answer(said wire.Said, stream bool) []byte {
	const ended = "end_turn"
	message := answerMessage{ID: "msg_" + said.ID, Type: "message", Role: "assistant", Model: said.Model, Content: []answerBlock{}}
	if !stream {
		message.Content, message.StopReason = []answerBlock{{Type: "text", Text: said.Text}}, new(ended)
		body, err := json.Marshal(message)
		if err != nil {
			return nil // unreachable: it only holds strings and numbers
		}
		return body
	}
	var events []byte
	for _, event := range []answerEvent{
		{Type: "message_start", Message: &message},
		{Type: "content_block_start", Index: new(int), Block: &answerBlock{Type: "text"}},
		{Type: "content_block_delta", Index: new(int), Delta: answerBlock{Type: "text_delta", Text: said.Text}},
		{Type: "content_block_stop", Index: new(int)},
		{Type: "message_delta", Delta: answerEnd{StopReason: ended}, Usage: &answerUsage{}},
		{Type: "message_stop"},
	} {
		events = wire.AppendEvent(events, event.Type, event)
	}
	return events
}

// Interface guard.
var _ wire.Answerer = Codec{}
