package wiregen

import (
	"fmt"
	"strings"
)

// writeResponses writes a plan as items of Responses.
func (s *Session) writeResponses(p *plan) {
	head := fmt.Sprintf(`{"model":%s,"store":false,"parallel_tool_calls":true,`, quote(s.Options.Model))
	if s.Options.Stream {
		head += `"stream":true,`
	}
	if s.Options.Thinking {
		head += `"reasoning":{"effort":"medium","summary":"auto"},"include":["reasoning.encrypted_content"],`
	}
	if s.Options.SessionID != "" {
		head += fmt.Sprintf(`"prompt_cache_key":%s,`, quote(s.Options.SessionID))
	}
	s.head = []byte(head + fmt.Sprintf(`"tools":%s,`, toolList(`{"type":"function","name":%s,"description":%s,"strict":false,"parameters":%s}`)))
	s.add(fmt.Sprintf(`{"type":"message","role":"developer","content":[{"type":"input_text","text":%s}]}`, quote(p.system)))
	for turn, e := range p.exchanges {
		if e.typed != "" {
			s.add(responsesTyped(e))
		}
		s.ask()
		if turn == len(p.exchanges)-1 {
			break
		}
		s.writeResponsesAnswer(turn, e)
	}
}

func responsesTyped(e exchange) string {
	var parts []string
	if e.reminder != "" {
		parts = append(parts, inputText(e.reminder))
	}
	if e.picture != "" {
		parts = append(parts, inputImage(e.picture))
	}
	parts = append(parts, inputText(e.typed))
	return fmt.Sprintf(`{"type":"message","role":"user","content":[%s]}`, strings.Join(parts, ","))
}

// writeResponsesAnswer writes the items of an answer and the outputs of its
// calls, in every second answer each output right behind its call.
func (s *Session) writeResponsesAnswer(turn int, e exchange) {
	signer := s.Options.Signer
	reasoning := ""
	if e.thinking != "" {
		reasoning = signer.ReasoningID(fmt.Sprintf("turn %d", turn))
		summary := "[]"
		if !e.redacted {
			summary = fmt.Sprintf(`[{"type":"summary_text","text":%s}]`, quote(e.thinking))
		}
		s.add(fmt.Sprintf(`{"type":"reasoning","id":%s,"summary":%s,"encrypted_content":%s}`, quote(reasoning), summary, quote(signer.Redact(e.thinking))))
	}
	if e.text != "" {
		id := signer.ItemID("msg_", fmt.Sprintf("turn %d", turn), reasoning)
		s.add(fmt.Sprintf(`{"type":"message","id":%s,"status":"completed","role":"assistant","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, quote(id), quote(e.text)))
	}
	var outputs []string
	for i, call := range e.calls {
		seed := fmt.Sprintf("turn %d call %d", turn, i)
		callID := "call_" + number(seed)
		s.add(fmt.Sprintf(`{"type":"function_call","id":%s,"call_id":%s,"name":%s,"arguments":%s,"status":"completed"}`,
			quote(signer.ItemID("fc_", seed, reasoning)), quote(callID), quote(call.name), quote(call.input)))
		output := fmt.Sprintf(`{"type":"function_call_output","call_id":%s,"output":%s}`, quote(callID), responsesOutput(call))
		if turn%2 == 0 {
			outputs = append(outputs, output)
			continue
		}
		s.add(output)
	}
	for _, output := range outputs {
		s.add(output)
	}
}

func responsesOutput(call toolCall) string {
	if call.picture != "" {
		return "[" + inputImage(call.picture) + "]"
	}
	return quote(plainResult(call))
}

func inputText(text string) string {
	return fmt.Sprintf(`{"type":"input_text","text":%s}`, quote(text))
}

func inputImage(data string) string {
	return fmt.Sprintf(`{"type":"input_image","image_url":%s}`, quote("data:image/png;base64,"+data))
}
