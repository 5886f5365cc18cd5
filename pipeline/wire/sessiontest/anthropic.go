package sessiontest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// anthropicWriter writes a plan as Anthropic messages.
type anthropicWriter struct {
	session *Session
	binder  Binder // optional; nil for unbound thinking
	pending string // id of a call that the provider answers in the next message
}

func (s *Session) writeAnthropic(p *plan) {
	s.head = s.anthropicHead(p)
	w := &anthropicWriter{session: s}
	if s.Options.Bind != nil {
		binder, err := s.Options.Bind([]byte(string(s.head) + `"messages":[]}`))
		if err != nil {
			panic(fmt.Sprintf("sessiontest: bind: %v", err))
		}
		w.binder = binder
	}
	for turn, e := range p.exchanges {
		more := varietyOf(e)
		if e.typed != "" {
			w.message("user", append(more.attachments(), typedBlocks(e)...))
		}
		w.system(more)
		s.ask()
		if turn == len(p.exchanges)-1 {
			break
		}
		ids := w.answer(turn, e, more)
		if len(e.calls) > 0 {
			w.message("user", resultBlocks(e, ids, w.pending == "", more))
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
	case s.Options.ThinkingSetting == "none":
	case s.Options.ThinkingSetting != "":
		head += fmt.Sprintf(`"thinking":%s,`, s.Options.ThinkingSetting)
	case s.Options.Thinking && s.Options.adapts():
		head += `"thinking":{"type":"adaptive"},`
	case s.Options.Thinking:
		head += `"thinking":{"type":"enabled","budget_tokens":4096},`
	}
	head += fmt.Sprintf(`"system":[%s],"tools":%s,`, system, toolList(`{"name":%s,"description":%s,"input_schema":%s}`))
	return []byte(head)
}

// message appends a message and its blocks to the binder.
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
		panic(fmt.Sprintf("sessiontest: bind %s: %v", block, err))
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

// resultBlocks writes the results of an answer's calls, and last a reminder if text is allowed after them.
func resultBlocks(e exchange, ids []string, remind bool, more *variety) []string {
	var blocks []string
	for i, call := range e.calls {
		content := quote(call.result)
		if call.picture != "" {
			content = "[" + imageBlock(call.picture) + "]"
		}
		content = more.resultContent(content, call)
		mark := ""
		if call.failed {
			mark = `,"is_error":true`
		}
		blocks = append(blocks, fmt.Sprintf(`{"tool_use_id":%s,"type":"tool_result","content":%s%s}`, quote(ids[i]), content, mark))
	}
	for _, call := range e.calls {
		if call.reminder != "" && remind {
			blocks = append(blocks, textBlock(call.reminder))
		}
	}
	return blocks
}

// answer writes the assistant's message and returns the ids of its calls.
func (w *anthropicWriter) answer(turn int, e exchange, more *variety) []string {
	signer := w.session.Options.Signer
	var ids []string
	blocks, signatures := w.thoughts(e)
	if w.pending != "" {
		blocks = append(blocks, searchResult(w.pending, more))
		w.pending = ""
	}
	blocks = append(blocks, more.served(w.session, turn)...)
	if more.chance(8) && len(blocks) > 0 {
		// The answer was paused after a search; the next request continues it.
		id := fmt.Sprintf("srvtoolu_p%d", turn)
		w.message("assistant", append(blocks, searchCall(id, more)))
		w.session.ask()
		blocks, signatures = []string{searchResult(id, more)}, nil
	}
	if e.text != "" {
		blocks = append(blocks, more.saidBlock(e.text))
	}
	if more.chance(8) && len(e.calls) > 0 {
		w.pending = fmt.Sprintf("srvtoolu_w%d", turn)
		blocks = append(blocks, searchCall(w.pending, more))
	}
	for i, call := range e.calls {
		id := signer.CallID(fmt.Sprintf("turn %d call %d", turn, i), signatures)
		ids = append(ids, id)
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, quote(id), quote(call.name), call.input))
	}
	w.message("assistant", blocks)
	return ids
}

// thoughts writes the thinking of an answer, and its signatures.
func (w *anthropicWriter) thoughts(e exchange) (blocks, signatures []string) {
	signer := sealer(w.session.Options.Signer)
	if w.binder != nil {
		signer = w.binder
	}
	switch {
	case e.thinking == "":
		return nil, nil
	case e.redacted:
		data := signer.Redact(e.thinking)
		return []string{fmt.Sprintf(`{"type":"redacted_thinking","data":%s}`, quote(data))}, []string{data}
	default:
		signature := signer.Sign(e.thinking)
		return []string{fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":%s}`, quote(e.thinking), quote(signature))}, []string{signature}
	}
}

// sealer signs thinking, bound or not.
type sealer interface {
	Sign(text string) string
	Redact(text string) string
}

func textBlock(text string) string {
	return fmt.Sprintf(`{"type":"text","text":%s}`, quote(text))
}

func imageBlock(data string) string {
	return fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":%s}}`, quote(data))
}
