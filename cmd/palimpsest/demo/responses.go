package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// responses is the Responses API as Codex uses it, with no storage at the provider.
type responses struct{}

func (responses) path() string { return "/v1/responses" }

func (responses) body(r request) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"model":%s,"store":false,"instructions":%s`, encode(r.model), encode(r.system))
	if r.session != "" {
		fmt.Fprintf(&out, `,"prompt_cache_key":%s`, encode(r.session))
	}
	if r.tools {
		out.WriteString(`,"tools":[`)
		for i, tool := range tools() {
			comma(&out, i)
			fmt.Fprintf(&out, `{"type":"function","name":%s,"description":%s,"strict":false,"parameters":%s}`, encode(tool.name), encode(tool.description), tool.parameters())
		}
		out.WriteString("]")
	}
	out.WriteString(`,"input":[`)
	for i, item := range r.messages {
		comma(&out, i)
		out.Write(item)
	}
	out.WriteString("]}")
	return out.Bytes()
}

func (responses) typed(text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}`, encode(text)))
}

func (responses) said(text string, calls []call, ids []string) []json.RawMessage {
	var items []json.RawMessage
	if text != "" {
		items = append(items, json.RawMessage(fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%s}]}`, encode(text))))
	}
	for i, call := range calls {
		items = append(items, json.RawMessage(fmt.Sprintf(`{"type":"function_call","call_id":%s,"name":%s,"arguments":%s}`,
			encode(ids[i]), encode(call.name), encode(string(encode(call.input))))))
	}
	return items
}

func (responses) results(calls []call, ids []string) []json.RawMessage {
	var items []json.RawMessage
	for i, call := range calls {
		items = append(items, json.RawMessage(fmt.Sprintf(`{"type":"function_call_output","call_id":%s,"output":%s}`, encode(ids[i]), encode(call.result))))
	}
	return items
}

func (responses) read(answer []byte) ([]json.RawMessage, []string, error) {
	var read struct {
		Output []json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal(answer, &read); err != nil {
		return nil, nil, fmt.Errorf("read a response: %w", err)
	}
	var ids []string
	for _, item := range read.Output {
		var call struct {
			ID string `json:"call_id"`
		}
		if err := json.Unmarshal(item, &call); err != nil {
			return nil, nil, fmt.Errorf("read a response: %w", err)
		}
		if call.ID != "" {
			ids = append(ids, call.ID)
		}
	}
	return read.Output, ids, nil
}
