package openairesponses

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// answerPart is a part of the text of an answer.
type answerPart struct {
	Type        string   `json:"type"`
	Text        string   `json:"text"`
	Annotations []string `json:"annotations"`
	Logprobs    []string `json:"logprobs"`
}

// answerItem is the message of an answer.
type answerItem struct {
	Type    string       `json:"type"`
	ID      string       `json:"id"`
	Status  string       `json:"status"`
	Role    string       `json:"role"`
	Content []answerPart `json:"content"`
}

// answerUsage is the usage of an answer without a model.
type answerUsage struct {
	Input        int            `json:"input_tokens"`
	InputDetail  map[string]int `json:"input_tokens_details"`
	Output       int            `json:"output_tokens"`
	OutputDetail map[string]int `json:"output_tokens_details"`
	Total        int            `json:"total_tokens"`
}

// answerResponse is an unstored answer of Responses.
type answerResponse struct {
	ID         string            `json:"id"`
	Object     string            `json:"object"`
	CreatedAt  int64             `json:"created_at"`
	Status     string            `json:"status"`
	Error      *string           `json:"error"`
	Incomplete *string           `json:"incomplete_details"`
	Previous   *string           `json:"previous_response_id"`
	Model      string            `json:"model"`
	Output     []answerItem      `json:"output"`
	Parallel   bool              `json:"parallel_tool_calls"`
	ToolChoice string            `json:"tool_choice"`
	Tools      []string          `json:"tools"`
	Store      bool              `json:"store"`
	Metadata   map[string]string `json:"metadata"`
	Usage      *answerUsage      `json:"usage"`
}

// answerEvent is an event of the stream of an answer.
type answerEvent struct {
	Type         string          `json:"type"`
	Sequence     int             `json:"sequence_number"`
	Response     *answerResponse `json:"response,omitempty"`
	OutputIndex  *int            `json:"output_index,omitempty"`
	ContentIndex *int            `json:"content_index,omitempty"`
	ItemID       string          `json:"item_id,omitempty"`
	Item         *answerItem     `json:"item,omitempty"`
	Part         *answerPart     `json:"part,omitempty"`
	Delta        string          `json:"delta,omitempty"`
	Text         string          `json:"text,omitempty"`
	Logprobs     *[]string       `json:"logprobs,omitempty"`
}

// Answer implements wire.Answerer.
func (Codec) Answer(said wire.Said, stream bool) []byte {
	part := answerPart{Type: "output_text", Text: said.Text, Annotations: []string{}, Logprobs: []string{}}
	item := answerItem{Type: "message", ID: "msg_" + said.ID, Status: "completed", Role: "assistant", Content: []answerPart{part}}
	whole := answerResponse{
		ID: "resp_" + said.ID, Object: "response", Status: "completed", Model: said.Model, Output: []answerItem{item},
		ToolChoice: "auto", Tools: []string{}, Metadata: map[string]string{},
		Usage: &answerUsage{
			InputDetail: map[string]int{"cached_tokens": 0}, OutputDetail: map[string]int{"reasoning_tokens": 0},
		},
	}
	if !said.At.IsZero() {
		whole.CreatedAt = said.At.Unix()
	}
	if !stream {
		body, err := json.Marshal(whole)
		if err != nil {
			return nil // unreachable: it only holds strings and numbers
		}
		return body
	}
	opening, begun, empty, none := whole, item, part, &[]string{}
	opening.Status, opening.Output, opening.Usage = "in_progress", []answerItem{}, nil
	begun.Status, begun.Content, empty.Text = "in_progress", []answerPart{}, ""
	var events []byte
	for i, event := range []answerEvent{
		{Type: "response.created", Response: &opening},
		{Type: "response.in_progress", Response: &opening},
		{Type: "response.output_item.added", OutputIndex: new(int), Item: &begun},
		{Type: "response.content_part.added", OutputIndex: new(int), ContentIndex: new(int), ItemID: item.ID, Part: &empty},
		{Type: "response.output_text.delta", OutputIndex: new(int), ContentIndex: new(int), ItemID: item.ID, Delta: said.Text, Logprobs: none},
		{Type: "response.output_text.done", OutputIndex: new(int), ContentIndex: new(int), ItemID: item.ID, Text: said.Text, Logprobs: none},
		{Type: "response.content_part.done", OutputIndex: new(int), ContentIndex: new(int), ItemID: item.ID, Part: &part},
		{Type: "response.output_item.done", OutputIndex: new(int), Item: &item},
		{Type: "response.completed", Response: &whole},
	} {
		event.Sequence = i
		events = wire.AppendEvent(events, event.Type, event)
	}
	return events
}

// Interface guard.
var _ wire.Answerer = Codec{}
