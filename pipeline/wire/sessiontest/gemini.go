package sessiontest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// writeGemini writes a plan as contents of the Gemini API. The first call of each answer is signed.
func (s *Session) writeGemini(p *plan) {
	head := fmt.Sprintf(`{"model":%s,"stream":%t,"systemInstruction":{"parts":[{"text":%s}]},`, quote(s.Options.Model), s.Options.Stream, quote(p.system))
	if s.Options.Thinking {
		head += `"generationConfig":{"maxOutputTokens":8192,"thinkingConfig":{"includeThoughts":true}},`
	}
	s.head = []byte(head + fmt.Sprintf(`"tools":[{"functionDeclarations":%s}],`, toolList(`{"name":%s,"description":%s,"parametersJsonSchema":%s}`)))
	for turn, e := range p.exchanges {
		if e.typed != "" {
			s.add(geminiTyped(e))
		}
		s.ask()
		if turn == len(p.exchanges)-1 {
			break
		}
		s.writeGeminiAnswer(e)
	}
}

func geminiTyped(e exchange) string {
	var parts []string
	if e.reminder != "" {
		parts = append(parts, fmt.Sprintf(`{"text":%s}`, quote(e.reminder)))
	}
	if e.picture != "" {
		parts = append(parts, fmt.Sprintf(`{"inlineData":{"mimeType":"image/png","data":%s}}`, quote(e.picture)))
	}
	parts = append(parts, fmt.Sprintf(`{"text":%s}`, quote(e.typed)))
	return fmt.Sprintf(`{"role":"user","parts":[%s]}`, strings.Join(parts, ","))
}

// writeGeminiAnswer writes the model's content, and one content with all responses.
func (s *Session) writeGeminiAnswer(e exchange) {
	var parts, responses []string
	if e.thinking != "" && s.Options.Thinking {
		parts = append(parts, fmt.Sprintf(`{"text":%s,"thought":true}`, quote(e.thinking)))
	}
	if e.text != "" || len(e.calls) == 0 {
		parts = append(parts, fmt.Sprintf(`{"text":%s}`, quote(e.text)))
	}
	for i, call := range e.calls {
		part := fmt.Sprintf(`{"functionCall":{"name":%s,"args":%s}`, quote(call.name), call.input)
		if i == 0 {
			var input bytes.Buffer
			if err := json.Compact(&input, []byte(call.input)); err != nil {
				panic(fmt.Sprintf("sessiontest: %v", err))
			}
			part += ",\"thoughtSignature\":" + quote(s.Options.Signer.Sign(call.name+"\x00"+input.String()))
		}
		parts = append(parts, part+"}")
		member := "output"
		if call.failed {
			member = "error"
		}
		response := fmt.Sprintf(`{"functionResponse":{"name":%s,"response":{%q:%s}`, quote(call.name), member, quote(plainResult(call)))
		if call.picture != "" {
			response += fmt.Sprintf(`,"parts":[{"inlineData":{"mimeType":"image/png","data":%s}}]`, quote(call.picture))
		}
		responses = append(responses, response+"}}")
	}
	s.add(fmt.Sprintf(`{"role":"model","parts":[%s]}`, strings.Join(parts, ",")))
	if len(responses) > 0 {
		s.add(fmt.Sprintf(`{"role":"user","parts":[%s]}`, strings.Join(responses, ",")))
	}
}
