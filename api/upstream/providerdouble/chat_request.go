package providerdouble

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// chatRequest is a body of POST /v1/chat/completions.
type chatRequest struct {
	members   members
	modelID   string
	model     Model
	limit     int // of the answer's tokens; -1 without a limit
	stream    bool
	usage     bool // stream_options.include_usage
	tools     []*tool
	breaks    int // prompt_cache_breakpoint marks
	messages  []*chatMessage
	tokens    int
	reasoning bool
}

// chatMessage is one message of Chat Completions.
type chatMessage struct {
	role   string
	text   string // all text parts together
	calls  []string
	callID string // of role tool
	breaks int
	sum    [sha256.Size]byte
	tokens int
}

// chatMembers are the documented members of a request.
func chatMembers() []string {
	return []string{
		"messages", "model", "frequency_penalty", "logprobs", "max_completion_tokens", "max_tokens", "n", "presence_penalty",
		"prompt_cache_key", "safety_identifier", "seed", "store", "temperature", "top_logprobs", "top_p", "parallel_tool_calls",
		"user", "audio", "logit_bias", "metadata", "modalities", "moderation", "prompt_cache_retention", "reasoning_effort",
		"service_tier", "stop", "stream", "stream_options", "verbosity", "function_call", "functions", "prediction",
		"prompt_cache_options", "response_format", "tool_choice", "tools", "web_search_options",
	}
}

// chatReader reads requests of OpenAI's Chat Completions and judges them.
type chatReader struct {
	config   Config
	messages memo[chatMessage]
}

func (c *chatReader) parse(_ http.Header, body []byte) (*chatRequest, *Rejection) {
	m, ok := document(body)
	if !ok {
		return nil, brokenJSON()
	}
	r := &chatRequest{members: m, stream: m.flag("stream"), limit: -1}
	if rejection := c.parseHead(r); rejection != nil {
		return nil, rejection
	}
	var rejection *Rejection
	if r.tools, rejection = c.config.parseFunctions(m["tools"], true); rejection != nil {
		return nil, rejection
	}
	if !m.has("messages") {
		return nil, missingParameter("messages")
	}
	list, ok := elements(m["messages"])
	if !ok {
		return nil, wrongType("messages", "an array of objects", firstByte(m["messages"]))
	}
	if len(list) == 0 {
		return nil, emptyArray("messages")
	}
	for i, raw := range list {
		parsed, refusal := c.parseMessage(raw, item("messages", i))
		if refusal != nil {
			return nil, refusal
		}
		r.messages = append(r.messages, parsed)
		r.breaks += parsed.breaks
	}
	return r, nil
}

func (c *chatReader) parseHead(r *chatRequest) *Rejection {
	m := r.members
	if name := m.extra(chatMembers()...); name != "" && !c.config.AllowUnknown {
		return unknownParameter(name)
	}
	var ok bool
	if r.modelID, ok = m.text("model"); !ok || r.modelID == "" {
		return refuse("you must provide a model parameter")
	}
	r.model, _ = c.config.model(r.modelID)
	for _, name := range []string{"max_completion_tokens", "max_tokens"} {
		if !m.has(name) {
			continue
		}
		limit, isNumber := m.number(name)
		if !isNumber {
			return wrongType(name, "an unsupported value", firstByte(m[name]))
		}
		if limit < 1 {
			return refuse("Invalid '%s': integer below minimum value. Expected a value >= 1, but got %d instead.", name, limit).at(name).coded("integer_below_min_value")
		}
		if r.model.MaxOutput > 0 && limit > r.model.MaxOutput {
			return refuse("%s is too large: %d. This model supports at most %d completion tokens, whereas you provided %d.", name, limit, r.model.MaxOutput, limit).at(name).coded("invalid_value")
		}
		r.limit = limit
	}
	effort, given := m.text("reasoning_effort")
	r.reasoning = given && effort != "none"
	if !m.has("stream_options") {
		return nil
	}
	if !r.stream {
		return refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.").at("stream_options")
	}
	options, isObject := objectMembers(m["stream_options"])
	if !isObject {
		return wrongType("stream_options", "an object", firstByte(m["stream_options"]))
	}
	r.usage = options.flag("include_usage")
	return nil
}

// parseFunctions reads the tools of both OpenAI formats; nested says that the function is in a member of its
// own, as in Chat.
func (c Config) parseFunctions(raw json.RawMessage, nested bool) ([]*tool, *Rejection) {
	if first := firstByte(raw); first == 0 || first == 'n' {
		return nil, nil
	}
	list, ok := elements(raw)
	if !ok {
		return nil, wrongType("tools", "an array of objects", firstByte(raw))
	}
	if nested && len(list) == 0 {
		return nil, emptyArray("tools")
	}
	var tools []*tool
	for i, definition := range list {
		path := item("tools", i)
		m, isObject := objectMembers(definition)
		if !isObject {
			return nil, wrongType(path, "an object", firstByte(definition))
		}
		kind, given := m.text("type")
		if !given {
			return nil, missingParameter(path + ".type")
		}
		if kind == "function" {
			if rejection := checkFunction(m, path, nested); rejection != nil {
				return nil, rejection
			}
		}
		bare := compact(definition)
		tools = append(tools, &tool{raw: definition, sum: sha256.Sum256(bare), tokens: c.Count(string(bare))})
	}
	return tools, nil
}

func checkFunction(m members, path string, nested bool) *Rejection {
	if nested {
		path += ".function"
		function, ok := objectMembers(m["function"])
		if !ok {
			return missingParameter(path)
		}
		m = function
	}
	name, ok := m.text("name")
	if !ok {
		return missingParameter(path + ".name")
	}
	if !matches(name, 128) {
		return wrongPattern(path + ".name")
	}
	return nil
}

// parseMessage reads one message; path names it in refusals.
func (c *chatReader) parseMessage(raw json.RawMessage, path string) (*chatMessage, *Rejection) {
	key := sha256.Sum256(raw)
	if known, ok := c.messages.find(key); ok {
		return known, nil
	}
	m, ok := objectMembers(raw)
	if !ok {
		return nil, wrongType(path, "an object", firstByte(raw))
	}
	role, ok := m.text("role")
	if !ok {
		return nil, missingParameter(path + ".role")
	}
	roles := []string{"system", "assistant", "user", "function", "tool", "developer"}
	if !slices.Contains(roles, role) {
		return nil, wrongValue(path+".role", role, roles...)
	}
	known := []string{"role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio", "function_call", "annotations", "reasoning_content", "reasoning"}
	if name := m.extra(known...); name != "" && !c.config.AllowUnknown {
		return nil, unknownParameter(path + "." + name)
	}
	parsed := &chatMessage{role: role, tokens: messageTokens}
	if rejection := c.parseContent(parsed, m, path); rejection != nil {
		return nil, rejection
	}
	if rejection := c.parseCalls(parsed, m["tool_calls"], path+".tool_calls"); rejection != nil {
		return nil, rejection
	}
	if role == "tool" {
		if parsed.callID, ok = m.text("tool_call_id"); !ok {
			return nil, missingParameter(path + ".tool_call_id")
		}
	}
	parsed.sum = sha256.Sum256(compact(raw))
	c.messages.keep(key, parsed)
	return parsed, nil
}

func (c *chatReader) parseContent(parsed *chatMessage, m members, path string) *Rejection {
	path += ".content"
	if text, ok := m.text("content"); ok {
		parsed.text, parsed.tokens = text, parsed.tokens+c.config.Count(text)
		return nil
	}
	parts, isList := elements(m["content"])
	switch {
	case isList && len(parts) == 0:
		return emptyArray(path)
	case isList:
		for i, part := range parts {
			if rejection := c.parsePart(parsed, part, item(path, i)); rejection != nil {
				return rejection
			}
		}
		return nil
	case m.has("content"):
		return wrongType(path, "one of a string or array of objects", firstByte(m["content"]))
	case parsed.role != "assistant":
		return refuse("Invalid value for 'content': expected a string, got null.").at(path)
	case !m.has("tool_calls") && !m.has("function_call") && !m.has("audio") && !m.has("refusal"):
		return refuse("Invalid value for 'content': expected a string, got null.").at(path)
	}
	return nil
}

// partsOf lists the allowed content parts of a role.
func partsOf(role string) []string {
	switch role {
	case "user":
		return []string{"text", "image_url", "input_audio", "file"}
	case "assistant":
		return []string{"text", "refusal"}
	default:
		return []string{"text"}
	}
}

func (c *chatReader) parsePart(parsed *chatMessage, raw json.RawMessage, path string) *Rejection {
	m, ok := objectMembers(raw)
	if !ok {
		return wrongType(path, "an object", firstByte(raw))
	}
	kind, ok := m.text("type")
	if !ok {
		return missingParameter(path + ".type")
	}
	if allowed := partsOf(parsed.role); !slices.Contains(allowed, kind) && !c.config.AllowUnknown {
		return wrongValue(path+".type", kind, allowed...)
	}
	if m.has("prompt_cache_breakpoint") {
		parsed.breaks++
	}
	switch kind {
	case "text", "refusal":
		text, isText := m.text(kind)
		if !isText {
			return missingParameter(path + "." + kind)
		}
		parsed.text, parsed.tokens = parsed.text+text, parsed.tokens+c.config.Count(text)
	default:
		if parsed.role == "user" && !m.has(kind) && !c.config.AllowUnknown {
			return missingParameter(path + "." + kind)
		}
		parsed.tokens += openaiMediaTokens(m[kind])
	}
	return nil
}

func (c *chatReader) parseCalls(parsed *chatMessage, raw json.RawMessage, path string) *Rejection {
	if first := firstByte(raw); first == 0 || first == 'n' {
		return nil
	}
	if parsed.role != "assistant" {
		return unknownParameter(path)
	}
	list, ok := elements(raw)
	if !ok {
		return wrongType(path, "an array of objects", firstByte(raw))
	}
	if len(list) == 0 {
		return emptyArray(path)
	}
	for i, call := range list {
		id, rejection := c.parseCall(parsed, call, item(path, i))
		if rejection != nil {
			return rejection
		}
		if slices.Contains(parsed.calls, id) {
			return refuse("Duplicate value for 'id' of '%s' in 'tool_calls'.", id).at(item(path, i) + ".id")
		}
		parsed.calls = append(parsed.calls, id)
	}
	return nil
}

func (c *chatReader) parseCall(parsed *chatMessage, raw json.RawMessage, path string) (string, *Rejection) {
	m, _ := objectMembers(raw)
	id, ok := m.text("id")
	if !ok {
		return "", missingParameter(path + ".id")
	}
	if len(id) > 40 {
		return "", tooLong(path+".id", 40, len(id))
	}
	kind, _ := m.text("type")
	argument := "arguments"
	switch kind {
	case "function":
	case "custom":
		argument = "input"
	case "":
		return "", missingParameter(path + ".type")
	default:
		return "", wrongValue(path+".type", kind, "function", "custom")
	}
	path += "." + kind
	function, ok := objectMembers(m[kind])
	if !ok {
		return "", missingParameter(path)
	}
	name, ok := function.text("name")
	if !ok {
		return "", missingParameter(path + ".name")
	}
	if !matches(name, 128) {
		return "", wrongPattern(path + ".name")
	}
	if !function.has(argument) {
		return "", missingParameter(path + "." + argument)
	}
	text, ok := function.text(argument)
	if !ok {
		return "", wrongType(path+"."+argument, "a string", firstByte(function[argument]))
	}
	parsed.tokens += c.config.Count(name) + c.config.Count(text)
	return id, nil
}

// check applies all rules for a whole request.
func (c *chatReader) check(r *chatRequest) *Rejection {
	if rejection := checkToolMessages(r); rejection != nil {
		return rejection
	}
	if r.breaks > 4 {
		return refuse("A maximum of 4 prompt cache breakpoints may be provided. Found %d.", r.breaks).at("messages")
	}
	r.tokens = c.config.reported(sumTokens(r.prompt()))
	if r.tokens > r.model.Window {
		return r.overflow()
	}
	return nil
}

// checkToolMessages requires one tool message per call right behind a message with tool calls, and a call for
// each tool message.
func checkToolMessages(r *chatRequest) *Rejection {
	var open, answered []string
	caller := -1
	for i, m := range r.messages {
		if m.role != "tool" {
			if len(open) > 0 {
				return unansweredCalls(i, open)
			}
			open, answered, caller = nil, nil, -1
			if len(m.calls) > 0 {
				open, caller = slices.Clone(m.calls), i
			}
			continue
		}
		position := slices.Index(open, m.callID)
		switch {
		case caller < 0:
			return refuse("Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.").at(fmt.Sprintf("messages.[%d].role", i))
		case slices.Contains(answered, m.callID):
			return refuse("Duplicate value for 'tool_call_id' of '%s' in message[%d].", m.callID, i).at(fmt.Sprintf("messages.[%d].tool_call_id", i))
		case position < 0:
			return refuse("Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", m.callID).at(fmt.Sprintf("messages.[%d].tool_call_id", i))
		}
		open = slices.Delete(open, position, position+1)
		answered = append(answered, m.callID)
	}
	if len(open) > 0 {
		return unansweredCalls(len(r.messages), open)
	}
	return nil
}

func unansweredCalls(i int, open []string) *Rejection {
	return refuse("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s",
		strings.Join(open, ", ")).at(fmt.Sprintf("messages.[%d].role", i))
}

// prompt lists the positions of the prompt: tools, then messages.
func (r *chatRequest) prompt() []position {
	cacheKey, _ := r.members.text("prompt_cache_key")
	list := newPositions(r.modelID + "\x00" + cacheKey)
	for _, t := range r.tools {
		list.add("tool", t.sum, t.tokens)
	}
	for _, m := range r.messages {
		list.add(m.role, m.sum, m.tokens)
	}
	return list.all
}

func (r *chatRequest) shortest() int  { return r.model.MinCache }
func (r *chatRequest) maxOutput() int { return r.limit }
func (r *chatRequest) room() int      { return r.model.Window - r.tokens + r.model.MaxOutput }

func (r *chatRequest) overflow() *Rejection {
	return refuse("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.",
		r.model.Window, max(r.tokens, r.model.Window+1)).at("messages").coded(overLength)
}

func (r *chatRequest) about() Request {
	about := Request{Model: r.modelID, Stream: r.stream, Thinks: r.reasoning, Tokens: r.tokens}
	for _, m := range r.messages {
		switch m.role {
		case "assistant":
			about.Answers++
			about.Results = nil
		case "user":
			about.User, about.Results = m.text, nil
		case "tool":
			about.Results = append(about.Results, m.text)
		}
	}
	return about
}
