package sessiontest

import (
	"fmt"
	"strings"
)

// writeChat writes a plan as Chat Completions messages.
func (s *Session) writeChat(p *plan) {
	head := fmt.Sprintf(`{"model":%s,"max_completion_tokens":8192,`, quote(s.Options.Model))
	if s.Options.Stream {
		head += `"stream":true,"stream_options":{"include_usage":true},`
	}
	if s.Options.SessionID != "" {
		head += fmt.Sprintf(`"prompt_cache_key":%s,`, quote(s.Options.SessionID))
	}
	s.head = []byte(head + fmt.Sprintf(`"tools":%s,`, toolList(`{"type":"function","function":{"name":%s,"description":%s,"parameters":%s}}`)))
	role := "system"
	if s.Options.Varied {
		role = "developer"
	}
	s.add(fmt.Sprintf(`{"role":%s,"content":%s}`, quote(role), quote(p.system)))
	for turn, e := range p.exchanges {
		more := varietyOf(e)
		if e.typed != "" {
			s.add(more.named(chatTyped(e)))
		}
		if more.chance(10) {
			s.add(fmt.Sprintf(`{"role":"developer","content":[{"type":"text","text":%s}]}`, quote("The mode has changed: "+more.sentence())))
		}
		s.ask()
		if turn == len(p.exchanges)-1 {
			break
		}
		s.writeChatAnswer(turn, e, more)
	}
}

func chatTyped(e exchange) string {
	if e.reminder == "" && e.picture == "" {
		return fmt.Sprintf(`{"role":"user","content":%s}`, quote(e.typed))
	}
	var parts []string
	if e.reminder != "" {
		parts = append(parts, textBlock(e.reminder))
	}
	if e.picture != "" {
		parts = append(parts, fmt.Sprintf(`{"type":"image_url","image_url":{"url":%s}}`, quote("data:image/png;base64,"+e.picture)))
	}
	parts = append(parts, textBlock(e.typed))
	return fmt.Sprintf(`{"role":"user","content":[%s]}`, strings.Join(parts, ","))
}

// writeChatAnswer writes the assistant's message and a message for each result.
func (s *Session) writeChatAnswer(turn int, e exchange, more *variety) {
	content := "null"
	if e.text != "" {
		content = quote(e.text)
	}
	var calls, results []string
	for i, call := range e.calls {
		id := "call_" + number(fmt.Sprintf("turn %d call %d", turn, i))
		calls = append(calls, more.chatCall(id, call))
		results = append(results, fmt.Sprintf(`{"role":"tool","tool_call_id":%s,"content":%s}`, quote(id), more.chatResult(plainResult(call))))
	}
	if len(calls) == 0 {
		s.add(more.chatSaid(turn, content))
		return
	}
	s.add(fmt.Sprintf(`{"role":"assistant","content":%s,"refusal":null,"tool_calls":[%s]}`, content, strings.Join(calls, ",")))
	for _, result := range results {
		s.add(result)
	}
}

// plainResult is a result where results are text only.
func plainResult(call toolCall) string {
	text := call.result
	if call.picture != "" {
		text = "[image/png, shown to the user]"
	}
	if call.reminder != "" {
		text += "\n\n" + call.reminder
	}
	return text
}
