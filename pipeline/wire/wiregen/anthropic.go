package wiregen

import (
	"encoding/json"
	"fmt"
	"strings"
)

// anthropicWriter writes a plan as Anthropic messages.
type anthropicWriter struct {
	session *Session
	binder  Binder // nil where thinking is unbound
}

func (s *Session) writeAnthropic(p *plan) {
	s.head = s.anthropicHead(p)
	w := &anthropicWriter{session: s}
	if s.Options.Bind != nil {
		binder, err := s.Options.Bind([]byte(string(s.head) + `"messages":[]}`))
		if err != nil {
			panic(fmt.Sprintf("wiregen: bind: %v", err))
		}
		w.binder = binder
	}
	for turn, e := range p.exchanges {
		if e.typed != "" {
			w.message("user", typedBlocks(e))
		}
		s.ask()
		if turn == len(p.exchanges)-1 {
			break
		}
		ids := w.answer(turn, e)
		if len(e.calls) > 0 {
			w.message("user", resultBlocks(e, ids))
		}
	}
}

func (s *Session) anthropicHead(p *plan) []byte {
	mark := ""
	if s.Options.CacheMarkers {
		mark = marker
	}
	system := strings.Join([]string{
		`{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.329; cc_entrypoint=cli;"}`,
		`{"type":"text","text":"You are Claude Code, Anthropic's official CLI for Claude."` + mark + `}`,
		fmt.Sprintf(`{"type":"text","text":%s%s}`, quote(p.system), mark),
	}, ",")
	head := fmt.Sprintf(`{"model":%s,"max_tokens":8192,`, quote(s.Options.Model))
	if s.Options.Stream {
		head += `"stream":true,`
	}
	if s.Options.SessionID != "" {
		head += fmt.Sprintf(`"metadata":{"user_id":%s},`, quote(fmt.Sprintf(`{"device_id":"d","account_uuid":"","session_id":%s}`, quote(s.Options.SessionID))))
	}
	switch {
	case s.Options.Thinking && s.Options.adapts():
		head += `"thinking":{"type":"adaptive"},`
	case s.Options.Thinking:
		head += `"thinking":{"type":"enabled","budget_tokens":4096},`
	}
	head += fmt.Sprintf(`"system":[%s],"tools":%s,`, system, toolList(`{"name":%s,"description":%s,"input_schema":%s}`))
	return []byte(head)
}

// message appends a message and tells the binder of its blocks.
func (w *anthropicWriter) message(role string, blocks []string) {
	if w.binder != nil {
		for _, block := range blocks {
			w.bind(role, block)
		}
	}
	w.session.add(fmt.Sprintf(`{"role":%s,"content":[%s]}`, quote(role), strings.Join(blocks, ",")))
}

func (w *anthropicWriter) bind(role, block string) {
	if err := w.binder.Add(role, json.RawMessage(block)); err != nil {
		panic(fmt.Sprintf("wiregen: bind %s: %v", block, err))
	}
}

func typedBlocks(e exchange) []string {
	var blocks []string
	if e.reminder != "" {
		blocks = append(blocks, textBlock(e.reminder))
	}
	if e.picture != "" {
		blocks = append(blocks, imageBlock(e.picture))
	}
	return append(blocks, textBlock(e.typed))
}

// resultBlocks writes the results of an answer's calls, a reminder last.
func resultBlocks(e exchange, ids []string) []string {
	var blocks []string
	for i, call := range e.calls {
		content := quote(call.result)
		if call.picture != "" {
			content = "[" + imageBlock(call.picture) + "]"
		}
		mark := ""
		if call.failed {
			mark = `,"is_error":true`
		}
		blocks = append(blocks, fmt.Sprintf(`{"tool_use_id":%s,"type":"tool_result","content":%s%s}`, quote(ids[i]), content, mark))
	}
	for _, call := range e.calls {
		if call.reminder != "" {
			blocks = append(blocks, textBlock(call.reminder))
		}
	}
	return blocks
}

// answer writes the assistant's message and returns the ids of its calls.
func (w *anthropicWriter) answer(turn int, e exchange) []string {
	signer := w.session.Options.Signer
	var blocks, signatures, ids []string
	switch {
	case e.thinking == "":
	case e.redacted && w.binder == nil:
		data := signer.Redact(e.thinking)
		signatures = append(signatures, data)
		blocks = append(blocks, fmt.Sprintf(`{"type":"redacted_thinking","data":%s}`, quote(data)))
	default:
		signature := w.sign(e.thinking)
		signatures = append(signatures, signature)
		blocks = append(blocks, fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":%s}`, quote(e.thinking), quote(signature)))
	}
	if e.text != "" {
		blocks = append(blocks, textBlock(e.text))
	}
	for i, call := range e.calls {
		id := signer.CallID(fmt.Sprintf("turn %d call %d", turn, i), signatures)
		ids = append(ids, id)
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, quote(id), quote(call.name), call.input))
	}
	w.message("assistant", blocks)
	return ids
}

func (w *anthropicWriter) sign(text string) string {
	if w.binder != nil {
		return w.binder.Sign(text)
	}
	return w.session.Options.Signer.Sign(text)
}

func textBlock(text string) string {
	return fmt.Sprintf(`{"type":"text","text":%s}`, quote(text))
}

func imageBlock(data string) string {
	return fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":%s}}`, quote(data))
}
