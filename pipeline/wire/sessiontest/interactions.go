package sessiontest

import (
	"fmt"
	"strings"
)

// writeInteractions writes a plan as steps of Gemini's Interactions API. A signed thought precedes each answer.
func (s *Session) writeInteractions(p *plan) {
	head := fmt.Sprintf(`{"model":%s,"store":false,"stream":%t,"system_instruction":%s,`, quote(s.Options.Model), s.Options.Stream, quote(p.system))
	if s.Options.Thinking {
		head += `"generation_config":{"max_output_tokens":8192,"thinking_summaries":"auto"},`
	}
	s.head = []byte(head + fmt.Sprintf(`"tools":%s,`, toolList(`{"type":"function","name":%s,"description":%s,"parameters":%s}`)))
	for turn, e := range p.exchanges {
		if e.typed != "" {
			s.add(interactionsTyped(e))
		}
		s.ask()
		if turn == len(p.exchanges)-1 {
			break
		}
		s.writeInteractionsAnswer(turn, e)
	}
}

func interactionsTyped(e exchange) string {
	var contents []string
	if e.reminder != "" {
		contents = append(contents, interactionsText(e.reminder))
	}
	if e.picture != "" {
		contents = append(contents, interactionsImage(e.picture))
	}
	contents = append(contents, interactionsText(e.typed))
	return fmt.Sprintf(`{"type":"user_input","content":[%s]}`, strings.Join(contents, ","))
}

func interactionsText(text string) string {
	return fmt.Sprintf(`{"type":"text","text":%s}`, quote(text))
}

func interactionsImage(data string) string {
	return fmt.Sprintf(`{"type":"image","mime_type":"image/png","data":%s}`, quote(data))
}

// writeInteractionsAnswer writes the steps of an answer, and the results of its calls.
func (s *Session) writeInteractionsAnswer(turn int, e exchange) {
	if e.thinking != "" {
		summary := ""
		if s.Options.Thinking {
			summary = fmt.Sprintf(`,"summary":[%s]`, interactionsText(e.thinking))
		}
		s.add(fmt.Sprintf(`{"type":"thought","signature":%s%s}`, quote(s.Options.Signer.Sign("thought")), summary))
	}
	if e.text != "" || len(e.calls) == 0 {
		s.add(fmt.Sprintf(`{"type":"model_output","content":[%s]}`, interactionsText(e.text)))
	}
	var results []string
	for i, call := range e.calls {
		id := "call_" + number(fmt.Sprintf("turn %d call %d", turn, i))
		s.add(fmt.Sprintf(`{"type":"function_call","id":%s,"name":%s,"arguments":%s}`, quote(id), quote(call.name), call.input))
		result := quote(plainResult(call))
		if call.picture != "" {
			result = fmt.Sprintf(`[%s,%s]`, interactionsText(plainResult(call)), interactionsImage(call.picture))
		}
		failed := ""
		if call.failed {
			failed = `,"is_error":true`
		}
		results = append(results, fmt.Sprintf(`{"type":"function_result","call_id":%s,"name":%s%s,"result":%s}`, quote(id), quote(call.name), failed, result))
	}
	for _, result := range results {
		s.add(result)
	}
}
