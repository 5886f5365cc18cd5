package providerdouble

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// anthropicRequest is a body of POST /v1/messages or /v1/messages/count_tokens.
type anthropicRequest struct {
	members   members
	header    http.Header // nil if only a body is judged
	counting  bool        // count_tokens
	modelID   string
	model     Model
	maxTokens int
	stream    bool
	thinking  thinkingParam
	automatic *cacheMarker // the top-level cache_control
	tools     []*tool
	system    []*block
	messages  []*message

	compaction compaction
	thread     *thread // nil without a thread on the server

	loopOnce sync.Once
	loop     int // see loopStart

	dropped []transformation
	skip    map[*block]bool // blocks named by dropped
	tokens  int             // of the whole prompt, as reported
}

// tool is one tool definition.
type tool struct {
	name   string
	cache  *cacheMarker
	raw    json.RawMessage
	sum    [sha256.Size]byte
	tokens int
}

// thinkingParam is the thinking member of a request.
type thinkingParam struct {
	kind    string // "" if absent
	binding string // block_binding.prefix_mismatch_behavior
	bound   bool   // block_binding is there
}

// active reports whether the model thinks.
func (r *anthropicRequest) active() bool {
	switch r.thinking.kind {
	case "enabled", "adaptive", "between_tools":
		return true
	case "":
		return r.model.NoDisabled
	default:
		return false
	}
}

// anthropicReader reads requests of Anthropic's API and judges them.
type anthropicReader struct {
	config   Config
	signer   *Signer
	messages memo[message]
	threads  threads
}

func (a *anthropicReader) parse(header http.Header, body []byte) (*anthropicRequest, *Rejection) {
	return a.read(header, body, false)
}

// read is parse, also for a body whose tokens are only counted.
func (a *anthropicReader) read(header http.Header, body []byte, counting bool) (*anthropicRequest, *Rejection) {
	m, ok := document(body)
	if !ok {
		return nil, refuse("The request body is not valid JSON: expected a JSON object")
	}
	r := &anthropicRequest{members: m, header: header, counting: counting, stream: m.flag("stream"), skip: map[*block]bool{}}
	if rejection := a.parseHead(r); rejection != nil {
		return nil, rejection
	}
	if !counting {
		begun, rejection := a.threads.begin(header, m)
		if rejection != nil {
			return nil, rejection
		}
		r.thread = begun
	}
	if rejection := a.parseTools(r); rejection != nil {
		return nil, rejection
	}
	if m.has("system") {
		blocks, rejection := a.parseContent(m["system"], "system", "system")
		if rejection != nil {
			return nil, rejection
		}
		r.system = blocks
	}
	list, ok := elements(m["messages"])
	if !ok {
		return nil, refuse("messages: Field required")
	}
	if len(list) > 100_000 {
		return nil, refuse("messages: at most 100000 messages are allowed")
	}
	for i, raw := range list {
		parsed, rejection := a.parseMessage(raw, at("messages", i))
		if rejection != nil {
			return nil, rejection
		}
		r.messages = append(r.messages, parsed)
	}
	return r, r.parseManagement()
}

// anthropicMembers are the documented members of a request.
func anthropicMembers() []string {
	return []string{
		"model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "stop_sequences", "temperature",
		"top_p", "top_k", "metadata", "thinking", "service_tier", "container", "context_management", "mcp_servers",
		"output_config", "output_format", "cache_control", "thread", "compaction", "fallback_credit_token", "fallbacks",
		"diagnostics", "speed", "inference_geo", "task_budget", "billing_policy", "resumption", "safeguards",
	}
}

// parseHead reads all members except tools, system and messages.
func (a *anthropicReader) parseHead(r *anthropicRequest) *Rejection {
	m := r.members
	if name := m.extra(anthropicMembers()...); name != "" && !a.config.AllowUnknown {
		return refuse("%s: Extra inputs are not permitted", name)
	}
	var ok bool
	if r.modelID, ok = m.text("model"); !ok || r.modelID == "" {
		return refuse("model: Field required")
	}
	r.model, _ = a.config.model(r.modelID)
	if r.maxTokens, ok = m.number("max_tokens"); !ok && !r.counting {
		return refuse("max_tokens: Field required")
	}
	if r.maxTokens < 0 {
		return refuse("max_tokens: Input should be greater than or equal to 0")
	}
	if r.model.MaxOutput > 0 && r.maxTokens > r.model.MaxOutput {
		return refuse("max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s", r.maxTokens, r.model.MaxOutput, r.modelID)
	}
	var rejection *Rejection
	if r.automatic, rejection = parseCacheMarker(m["cache_control"], "cache_control"); rejection != nil {
		return rejection
	}
	if r.header != nil && r.header.Get("anthropic-version") == "" {
		return refuse("anthropic-version: header is required")
	}
	if r.header.Get("anthropic-version") == "2026-10-21" {
		for _, name := range []string{"temperature", "top_p", "top_k"} {
			if m.has(name) {
				return refuse("%s: Extra inputs are not permitted", name)
			}
		}
	}
	return r.parseThinking()
}

func (r *anthropicRequest) parseThinking() *Rejection {
	if !r.members.has("thinking") {
		return nil
	}
	m, ok := objectMembers(r.members["thinking"])
	if !ok {
		return refuse("thinking: Input should be a valid dictionary")
	}
	r.thinking.kind, _ = m.text("type")
	switch kind := r.thinking.kind; {
	case !slices.Contains([]string{"enabled", "adaptive", "disabled", "between_tools"}, kind):
		return refuse("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'", kind)
	case kind == "disabled" && r.model.NoDisabled:
		return refuse(`"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`)
	case kind == "enabled" && r.model.NoEnabled:
		return refuse(`"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`)
	case kind == "between_tools" && !r.model.BetweenTools:
		return refuse(`"thinking.type.between_tools" is not supported for this model.`)
	}
	if rejection := r.parseBudget(m); rejection != nil {
		return rejection
	}
	return r.parseBinding(m["block_binding"])
}

// parseBinding reads block_binding. It is only valid for adaptive thinking or thinking with a budget, and
// with the beta header.
func (r *anthropicRequest) parseBinding(raw json.RawMessage) *Rejection {
	if len(raw) == 0 {
		return nil
	}
	known := r.thinking.kind == "adaptive" || r.thinking.kind == "enabled"
	if !known || r.header != nil && !hasBeta(r.header, bindingBeta) {
		return refuse("thinking.%s.block_binding: Extra inputs are not permitted", r.thinking.kind)
	}
	if firstByte(raw) == 'n' {
		return nil
	}
	binding, _ := objectMembers(raw)
	r.thinking.bound = true
	if r.thinking.binding, _ = binding.text("prefix_mismatch_behavior"); !binding.has("prefix_mismatch_behavior") {
		r.thinking.binding = "error"
	}
	if r.thinking.binding != "drop_block" && r.thinking.binding != "error" {
		return refuse("thinking.%s.block_binding.prefix_mismatch_behavior: Input should be 'drop_block' or 'error'", r.thinking.kind)
	}
	return nil
}

func (r *anthropicRequest) parseBudget(m members) *Rejection {
	budget, given := m.number("budget_tokens")
	if r.thinking.kind != "enabled" {
		if given {
			return refuse("thinking.%s.budget_tokens: Extra inputs are not permitted", r.thinking.kind)
		}
		return nil
	}
	switch {
	case !given:
		return refuse("thinking.enabled.budget_tokens: Field required")
	case budget < 1024:
		return refuse("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case budget >= r.maxTokens && !r.counting:
		return refuse("`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size")
	}
	return nil
}

// bindingBeta is the beta value that block_binding requires.
const bindingBeta = "thinking-binding-controls-2026-08-01"

func hasBeta(header http.Header, name string) bool {
	for _, line := range header.Values("anthropic-beta") {
		for value := range strings.SplitSeq(line, ",") {
			if strings.TrimSpace(value) == name {
				return true
			}
		}
	}
	return false
}

func (a *anthropicReader) parseTools(r *anthropicRequest) *Rejection {
	if !r.members.has("tools") {
		return nil
	}
	list, ok := elements(r.members["tools"])
	if !ok {
		return refuse("tools: Input should be a valid list")
	}
	seen := map[string]bool{}
	for i, raw := range list {
		parsed, rejection := a.parseTool(raw, at("tools", i))
		if rejection != nil {
			return rejection
		}
		if parsed.name != "" && seen[parsed.name] {
			return refuse("tools: Tool names must be unique.")
		}
		seen[parsed.name] = true
		r.tools = append(r.tools, parsed)
	}
	return nil
}

func (a *anthropicReader) parseTool(raw json.RawMessage, path string) (*tool, *Rejection) {
	m, ok := objectMembers(raw)
	if !ok {
		return nil, refuse("%s: Input should be a valid dictionary", path)
	}
	parsed := &tool{raw: raw}
	var rejection *Rejection
	if parsed.cache, rejection = parseCacheMarker(m["cache_control"], path); rejection != nil {
		return nil, rejection
	}
	parsed.name, _ = m.text("name")
	if kind, _ := m.text("type"); kind == "" || kind == "custom" {
		if !m.has("name") {
			return nil, refuse("%s.custom.name: Field required", path)
		}
		if !matches(parsed.name, 128) {
			return nil, refuse("%s.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", path)
		}
		if schema := firstByte(m["input_schema"]); schema != '{' {
			return nil, refuse("%s.custom.input_schema: Field required", path)
		}
	}
	bare := unmarked(raw, "")
	parsed.sum = sha256.Sum256(bare)
	parsed.tokens = a.config.Count(string(bare))
	return parsed, nil
}

// threadBeta is the beta value of requests of a thread.
const threadBeta = "message-threads-2026-08-12"

// threads holds the conversations that clients store on the server, each under the id of its last answer
// (https://platform.claude.com/docs/en/build-with-claude/message-threads).
type threads struct {
	mu   sync.Mutex
	held bounded[*thread]
}

// thread is one conversation: the fields fixed at its start, and its messages with the answer.
type thread struct {
	fixed       members
	messages    []json.RawMessage
	previous    *thread // its predecessor; nil at the start
	isContinued bool
}

// inherited are the members that a request takes from its thread, and fingerprint those that must stay the
// same.
func inherited() []string   { return []string{"system", "tools"} }
func fingerprint() []string { return append(inherited(), "model", "tool_choice", "thinking") }

// begin returns the thread that a request starts or continues, with the request's own messages, and copies
// the thread's content into the request. It is nil without a thread.
func (t *threads) begin(header http.Header, request members) (*thread, *Rejection) {
	if !request.has("thread") || header == nil {
		return nil, nil
	}
	asked, _ := objectMembers(request["thread"])
	kind, _ := asked.text("type")
	switch {
	case !hasBeta(header, threadBeta):
		return nil, refuse("thread: Extra inputs are not permitted")
	case kind == "create":
		list, _ := elements(request["messages"])
		return newThread(request, list, nil), nil
	case kind != "continue":
		return nil, refuse("thread: Input tag '%s' found using 'type' does not match any of the expected tags: 'continue', 'create'", kind)
	}
	previous, _ := asked.text("previous_message_id")
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.held.values[previous]
	switch {
	case found == nil:
		return nil, &Rejection{Status: http.StatusNotFound, Type: "not_found_error", Code: "thread_not_found", Message: "No usable thread was found for previous_message_id " + previous}
	case found.isContinued:
		return nil, refuse("The response %s has already been continued", previous).coded("thread_already_continued")
	}
	if differing := found.differing(request); len(differing) > 0 {
		return nil, refuse("The request does not match its thread; differing field(s): %s", strings.Join(differing, ", ")).coded("thread_fingerprint_mismatch")
	}
	list, _ := elements(request["messages"])
	whole := slices.Concat(found.messages, list)
	request["messages"] = slices.Concat([]byte{'['}, bytes.Join(raws(whole), []byte{','}), []byte{']'})
	for _, name := range inherited() {
		if found.fixed.has(name) {
			request[name] = found.fixed[name]
		}
	}
	return newThread(request, whole, found), nil
}

func raws(list []json.RawMessage) [][]byte {
	all := make([][]byte, len(list))
	for i, raw := range list {
		all[i] = raw
	}
	return all
}

func newThread(request members, messages []json.RawMessage, previous *thread) *thread {
	fixed := members{}
	for _, name := range fingerprint() {
		if request.has(name) {
			fixed[name] = bytes.Clone(request[name])
		}
	}
	return &thread{fixed: fixed, messages: messages, previous: previous}
}

// differing returns the fields of a request that differ from its thread's.
func (t *thread) differing(request members) []string {
	var names []string
	for _, name := range fingerprint() {
		if request.has(name) && !bytes.Equal(request[name], t.fixed[name]) {
			names = append(names, name)
		}
	}
	return names
}

// keep stores a thread with its answer, under the answer's id.
func (t *threads) keep(begun *thread, answer anthropicMessage) {
	if begun == nil {
		return
	}
	begun.messages = append(slices.Clip(begun.messages), encode(struct {
		Role    string           `json:"role"`
		Content []anthropicBlock `json:"content"`
	}{answer.Role, answer.Content}))
	t.mu.Lock()
	defer t.mu.Unlock()
	if begun.previous != nil {
		begun.previous.isContinued, begun.previous = true, nil
	}
	t.held.keep(answer.ID, begun)
}
