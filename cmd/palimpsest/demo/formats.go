package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
)

const (
	textType   = "text"
	maxAnswer  = 8192
	cacheMark  = `,"cache_control":{"type":"ephemeral"}`
	endOfBlock = `}]}`
)

// anthropic is the Messages API, with Claude Code's cache markers.
type anthropic struct{}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

type anthropicMessage struct {
	Role    string           `json:"role"`
	Content []anthropicBlock `json:"content"`
}

func (anthropic) path() string { return "/v1/messages" }

func (anthropic) body(r request) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"model":%s,"max_tokens":%d`, encode(r.model), maxAnswer)
	if r.system != "" {
		fmt.Fprintf(&out, `,"system":[{"type":"text","text":%s%s}]`, encode(r.system), cacheMark)
	}
	if r.tools {
		out.WriteString(`,"tools":[`)
		for i, tool := range tools() {
			comma(&out, i)
			fmt.Fprintf(&out, `{"name":%s,"description":%s,"input_schema":%s}`, encode(tool.name), encode(tool.description), tool.parameters())
		}
		out.WriteString("]")
	}
	out.WriteString(`,"messages":[`)
	for i, message := range r.messages {
		comma(&out, i)
		if i == len(r.messages)-1 {
			message = append(bytes.TrimSuffix(bytes.Clone(message), []byte(endOfBlock)), cacheMark+endOfBlock...)
		}
		out.Write(message)
	}
	out.WriteString("]}")
	return out.Bytes()
}

func (anthropic) typed(text string) json.RawMessage {
	return encode(anthropicMessage{"user", []anthropicBlock{{Type: textType, Text: text}}})
}

func (anthropic) said(text string, calls []call, ids []string) []json.RawMessage {
	message := anthropicMessage{Role: "assistant"}
	if text != "" {
		message.Content = append(message.Content, anthropicBlock{Type: textType, Text: text})
	}
	for i, call := range calls {
		message.Content = append(message.Content, anthropicBlock{Type: "tool_use", ID: ids[i], Name: call.name, Input: encode(call.input)})
	}
	return []json.RawMessage{encode(message)}
}

func (anthropic) results(calls []call, ids []string) []json.RawMessage {
	message := anthropicMessage{Role: "user"}
	for i, call := range calls {
		message.Content = append(message.Content, anthropicBlock{Type: "tool_result", ToolUseID: ids[i], Content: call.result, IsError: call.failed})
	}
	return []json.RawMessage{encode(message)}
}

func (anthropic) read(answer []byte) ([]json.RawMessage, []string, error) {
	var read struct {
		Content []json.RawMessage `json:"content"`
	}
	var ids []string
	err := json.Unmarshal(answer, &read)
	for _, raw := range read.Content {
		var block anthropicBlock
		if err == nil {
			err = json.Unmarshal(raw, &block)
		}
		if block.Type == "tool_use" {
			ids = append(ids, block.ID)
		}
	}
	return []json.RawMessage{encode(struct {
		Role    string            `json:"role"`
		Content []json.RawMessage `json:"content"`
	}{"assistant", read.Content})}, ids, err
}

// chat is Chat Completions.
type chat struct{}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (chat) path() string { return "/v1/chat/completions" }

func (chat) body(r request) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"model":%s,"max_completion_tokens":%d`, encode(r.model), maxAnswer)
	if r.tools {
		out.WriteString(`,"tools":[`)
		for i, tool := range tools() {
			comma(&out, i)
			fmt.Fprintf(&out, `{"type":"function","function":{"name":%s,"description":%s,"parameters":%s}}`, encode(tool.name), encode(tool.description), tool.parameters())
		}
		out.WriteString("]")
	}
	fmt.Fprintf(&out, `,"messages":[{"role":"system","content":%s}`, encode(r.system))
	for _, message := range r.messages {
		comma(&out, 1)
		out.Write(message)
	}
	out.WriteString("]}")
	return out.Bytes()
}

func (chat) typed(text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"role":"user","content":%s}`, encode(text)))
}

func (chat) said(text string, calls []call, ids []string) []json.RawMessage {
	if len(calls) == 0 {
		return []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":%s}`, encode(text)))}
	}
	var made []chatCall
	for i, call := range calls {
		one := chatCall{ID: ids[i], Type: "function"}
		one.Function.Name, one.Function.Arguments = call.name, string(encode(call.input))
		made = append(made, one)
	}
	return []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":%s,"tool_calls":%s}`, encode(text), encode(made)))}
}

func (chat) results(calls []call, ids []string) []json.RawMessage {
	var messages []json.RawMessage
	for i, call := range calls {
		messages = append(messages, json.RawMessage(fmt.Sprintf(`{"role":"tool","tool_call_id":%s,"content":%s}`, encode(ids[i]), encode(call.result))))
	}
	return messages
}

func (chat) read(answer []byte) ([]json.RawMessage, []string, error) {
	var read struct {
		Choices []struct {
			Message json.RawMessage `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(answer, &read); err != nil || len(read.Choices) == 0 {
		return nil, nil, fmt.Errorf("read a chat completion: %w", err)
	}
	var message struct {
		Calls []chatCall `json:"tool_calls"`
	}
	err := json.Unmarshal(read.Choices[0].Message, &message)
	var ids []string
	for _, call := range message.Calls {
		ids = append(ids, call.ID)
	}
	return []json.RawMessage{read.Choices[0].Message}, ids, err
}

func comma(out *bytes.Buffer, before int) {
	if before > 0 {
		out.WriteByte(',')
	}
}

// Interface guards.
var (
	_ format = anthropic{}
	_ format = chat{}
	_ format = responses{}
)
