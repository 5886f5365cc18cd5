package sessiontest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// responsesWriter writes a plan as items of Responses.
type responsesWriter struct {
	session *Session
	binder  Binder // optional; nil for unbound reasoning
	program string // call id of a program that is still running
}

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
	w := &responsesWriter{session: s}
	if s.Options.Bind != nil {
		binder, err := s.Options.Bind([]byte(string(s.head) + `"input":[]}`))
		if err != nil {
			panic(fmt.Sprintf("sessiontest: bind: %v", err))
		}
		w.binder = binder
	}
	w.add(fmt.Sprintf(`{"type":"message","role":"developer","content":[{"type":"input_text","text":%s}]}`, quote(p.system)))
	for turn, e := range p.exchanges {
		more := varietyOf(e)
		if e.typed != "" {
			w.add(responsesTyped(e))
		}
		w.add(more.configured()...)
		s.ask()
		if turn == len(p.exchanges)-1 {
			break
		}
		w.answer(turn, e, more)
	}
}

// add appends items to the input and to the binder.
func (w *responsesWriter) add(items ...string) {
	for _, item := range items {
		w.session.add(item)
		if w.binder == nil {
			continue
		}
		if err := w.binder.Add("", json.RawMessage(item)); err != nil {
			panic(fmt.Sprintf("sessiontest: bind %s: %v", item, err))
		}
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

// answer writes the items of an answer and the outputs of its calls. In every second answer each output
// directly follows its call.
func (w *responsesWriter) answer(turn int, e exchange, more *variety) {
	signer := w.session.Options.Signer
	if w.program != "" {
		w.add(fmt.Sprintf(`{"type":"program_output","id":"po_%d","call_id":%s,"result":"done","status":"completed"}`, turn, quote(w.program)))
		w.program = ""
	}
	reasoning := w.reasoning(turn, e)
	w.add(more.servedItems(turn)...)
	if more.chance(4) {
		w.add(fmt.Sprintf(`{"type":"mcp_approval_request","id":"mcpr_%d","server_label":"local","name":"echo","arguments":"{}"}`, turn))
		w.add(fmt.Sprintf(`{"type":"mcp_approval_response","approval_request_id":"mcpr_%d","approve":true}`, turn))
		w.session.ask()
	}
	if e.text != "" {
		id := signer.ItemID("msg_", fmt.Sprintf("turn %d", turn), reasoning)
		w.add(fmt.Sprintf(`{"type":"message","id":%s,"status":"completed","role":"assistant","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, quote(id), quote(e.text)))
	}
	caller := ""
	if more.chance(8) && len(e.calls) > 0 {
		w.program = fmt.Sprintf("prog_%d", turn)
		caller = fmt.Sprintf(`,"caller":{"type":"program","caller_id":%s}`, quote(w.program))
		w.add(fmt.Sprintf(`{"type":"program","id":"pr_%d","call_id":%s,"code":"await read()","fingerprint":"f"}`, turn, quote(w.program)))
	}
	var outputs []string
	for i, call := range e.calls {
		seed := fmt.Sprintf("turn %d call %d", turn, i)
		item, output := more.itemCall(signer.ItemID("fc_", seed, reasoning), "call_"+number(seed), call, caller)
		w.add(item)
		if turn%2 == 0 {
			outputs = append(outputs, output)
			continue
		}
		w.add(output)
	}
	w.add(outputs...)
}

// reasoning writes the reasoning of an answer and returns its id; "" if absent.
func (w *responsesWriter) reasoning(turn int, e exchange) string {
	if e.thinking == "" {
		return ""
	}
	id := w.session.Options.Signer.ReasoningID(fmt.Sprintf("turn %d", turn))
	summary := "[]"
	if !e.redacted {
		summary = fmt.Sprintf(`[{"type":"summary_text","text":%s}]`, quote(e.thinking))
	}
	signer := sealer(w.session.Options.Signer)
	if w.binder != nil {
		signer = w.binder
	}
	w.add(fmt.Sprintf(`{"type":"reasoning","id":%s,"summary":%s,"encrypted_content":%s}`, quote(id), summary, quote(signer.Redact(e.thinking))))
	return id
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
