package gemini

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Request implements wire.Codec. Google takes each member in two spellings, systemInstruction and
// system_instruction.
func (c Codec) Request(body *wire.Envelope) (wire.Request, error) {
	fields := wire.NewFields(body)
	fields.Array(c.List())
	request := wire.Request{Model: fields.String("model"), Stream: fields.Bool("stream")}
	for _, name := range []string{"systemInstruction", "system_instruction", "tools"} {
		if part := fields.Raw(name); part != nil {
			request.Fixed = append(request.Fixed, part)
		}
	}
	for _, name := range []string{"generationConfig", "generation_config"} {
		config := fields.Object(name)
		request.MaxOutput = max(request.MaxOutput, count(either(config, "maxOutputTokens", "max_output_tokens")))
		for _, schema := range []string{"responseSchema", "response_schema", "responseJsonSchema", "response_json_schema"} {
			if part := wire.Get(config, schema); !wire.IsNull(part) {
				request.Fixed = append(request.Fixed, part)
			}
		}
	}
	for _, name := range []string{"cachedContent", "cached_content"} {
		if fields.String(name) != "" {
			request.ReadOnly = "cachedContent"
		}
	}
	request.SessionID, request.SessionSource = wire.SessionName(body)
	return request, fields.Err()
}

// either returns a member of an object that has two spellings; nil if absent.
func either(object json.RawMessage, camel, snake string) json.RawMessage {
	if value := wire.Get(object, camel); value != nil {
		return value
	}
	return wire.Get(object, snake)
}

// count returns a number of tokens; 0 if it is not one.
func count(raw json.RawMessage) int {
	number, _ := wire.Int(raw)
	return max(0, number)
}
