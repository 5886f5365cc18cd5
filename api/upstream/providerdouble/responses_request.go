package providerdouble

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// responsesRequest is a body of POST /v1/responses.
type responsesRequest struct {
	members      members
	modelID      string
	model        Model
	limit        int // max_output_tokens; -1 without a limit
	stream       bool
	stores       bool
	thinks       bool
	seals        bool // include has reasoning.encrypted_content
	truncates    bool
	compactFrom  int // tokens from which on the server automatically compacts the input; 0 disables it
	instructions string
	tools        []*tool
	customTools  []string
	raw          []json.RawMessage // the whole input, the server's part first
	items        []*responsesItem
	held         int // number of the server's items among them
	dropped      []transformation
	skip         map[*responsesItem]bool // reasoning named by dropped
	tokens       int
	instructed   int // o200k tokens of instructions
}

// responsesMembers are the documented members of a request.
func responsesMembers() []string {
	return []string{
		"background", "instructions", "max_output_tokens", "max_tool_calls", "parallel_tool_calls", "previous_response_id",
		"prompt_cache_key", "safety_identifier", "store", "temperature", "top_logprobs", "top_p", "user", "context_management",
		"conversation", "include", "metadata", "moderation", "prompt", "prompt_cache_retention", "service_tier", "stream",
		"stream_options", "truncation", "access_programs", "input", "model", "prompt_cache_options", "reasoning", "text",
		"tool_choice", "tools", "client_metadata", "background_options", "image",
	}
}

// responsesReader reads requests of OpenAI's Responses and judges them.
type responsesReader struct {
	config Config
	signer *Signer
	items  memo[responsesItem]
	stored *store // items that requests may refer to
}

func (o *responsesReader) parse(_ http.Header, body []byte) (*responsesRequest, *Rejection) {
	m, ok := document(body)
	if !ok {
		return nil, brokenJSON()
	}
	r := &responsesRequest{members: m, stream: m.flag("stream"), limit: -1, skip: map[*responsesItem]bool{}}
	if rejection := o.parseHead(r); rejection != nil {
		return nil, rejection
	}
	var rejection *Rejection
	if r.tools, rejection = o.config.parseFunctions(m["tools"], false); rejection != nil {
		return nil, rejection
	}
	r.customTools = customTools(m["tools"])
	if rejection := o.parseInput(r); rejection != nil {
		return nil, rejection
	}
	for i, raw := range r.raw {
		parsed, refusal := o.parseItem(raw, item("input", i-r.held))
		if refusal != nil {
			return nil, refusal
		}
		r.items = append(r.items, parsed)
		if parsed.kind == "additional_tools" {
			if _, refusal := o.config.parseFunctions(parsed.members["tools"], false); refusal != nil {
				return nil, refusal
			}
			r.customTools = append(r.customTools, customTools(parsed.members["tools"])...)
		}
	}
	return r, nil
}

// customTools returns the names of the tools with plain text as input, including those in a namespace.
func customTools(list json.RawMessage) []string {
	var names []string
	tools, _ := elements(list)
	for _, raw := range tools {
		definition, _ := objectMembers(raw)
		switch kind, _ := definition.text("type"); kind {
		case "custom":
			name, _ := definition.text("name")
			names = append(names, name)
		case "namespace":
			names = append(names, customTools(definition["tools"])...)
		}
	}
	return names
}

func (o *responsesReader) parseHead(r *responsesRequest) *Rejection {
	m := r.members
	if name := m.extra(responsesMembers()...); name != "" && !o.config.AllowUnknown {
		return unknownParameter(name)
	}
	var ok bool
	if r.modelID, ok = m.text("model"); !ok || r.modelID == "" {
		return missingParameter("model")
	}
	r.model, _ = o.config.model(r.modelID)
	if m.has("max_output_tokens") {
		limit, isNumber := m.number("max_output_tokens")
		if !isNumber {
			return wrongType("max_output_tokens", "an integer", firstByte(m["max_output_tokens"]))
		}
		if limit < 16 {
			return refuse("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", limit).at("max_output_tokens").coded("integer_below_min_value")
		}
		r.limit = limit
	}
	if rejection := r.parseManagement(); rejection != nil {
		return rejection
	}
	r.stores = !m.has("store") || m.flag("store")
	r.seals = bytes.Contains(m["include"], []byte(`"reasoning.encrypted_content"`))
	truncation, _ := m.text("truncation")
	r.truncates = truncation == "auto"
	if reasoning, isObject := objectMembers(m["reasoning"]); isObject {
		effort, _ := reasoning.text("effort")
		r.thinks = effort != "none"
	}
	r.instructions, _ = m.text("instructions")
	r.instructed = o.config.Count(r.instructions)
	return nil
}

// parseManagement reads context_management.
func (r *responsesRequest) parseManagement() *Rejection {
	if !r.members.has("context_management") {
		return nil
	}
	entries, ok := elements(r.members["context_management"])
	if !ok {
		return wrongType("context_management", "an array", firstByte(r.members["context_management"]))
	}
	for i, raw := range entries {
		path := item("context_management", i)
		entry, ok := objectMembers(raw)
		if !ok {
			return wrongType(path, "an object", firstByte(raw))
		}
		if name := entry.extra("type", "compact_threshold"); name != "" {
			return unknownParameter(path + "." + name)
		}
		if kind, _ := entry.text("type"); kind != "compaction" {
			return refuse("Invalid value: '%s'. Supported values are: 'compaction'.", kind).at(path + ".type").coded("invalid_value")
		}
		if !entry.has("compact_threshold") {
			continue
		}
		if r.compactFrom, ok = entry.number("compact_threshold"); !ok {
			return wrongType(path+".compact_threshold", "an integer", firstByte(entry["compact_threshold"]))
		}
	}
	return nil
}

// parseInput gathers the items: the server's first, then the request's.
func (o *responsesReader) parseInput(r *responsesRequest) *Rejection {
	m := r.members
	if id, ok := m.text("previous_response_id"); ok {
		before, found := o.stored.history(id)
		if !found {
			return refuse("Previous response with id '%s' not found.", id).at("previous_response_id").coded("previous_response_not_found")
		}
		r.raw, r.held = slices.Clone(before), len(before)
	}
	if text, ok := m.text("input"); ok {
		r.raw = append(r.raw, encode(userInput{Type: "message", Role: "user", Content: text}))
		return nil
	}
	list, ok := elements(m["input"])
	switch {
	case ok && len(list)+r.held > 0:
		r.raw = append(r.raw, list...)
	case m.has("input") && !ok:
		return wrongType("input", "one of a string or array of objects", firstByte(m["input"]))
	case r.held == 0:
		return refuse("One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.").coded("missing_required_parameter")
	}
	return nil
}

type userInput struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content string `json:"content"`
}

// check applies all rules for a whole request.
func (o *responsesReader) check(r *responsesRequest) *Rejection {
	for _, rule := range []func(*responsesRequest) *Rejection{checkItemIDs, checkOutputs, o.checkReasoning, o.checkReferences} {
		if rejection := rule(r); rejection != nil {
			return rejection
		}
	}
	r.dropReasoning(o.signer)
	r.tokens = o.config.reported(sumTokens(r.prompt()))
	if r.tokens > r.model.Window && !r.truncates {
		return r.overflow()
	}
	return nil
}

// checkItemIDs refuses duplicate items.
func checkItemIDs(r *responsesRequest) *Rejection {
	seen := map[string]bool{}
	for _, i := range r.items {
		if i.id == "" || i.kind == "item_reference" {
			continue
		}
		if seen[i.id] {
			return refuse("Duplicate item found with id %s. Remove duplicate items from your input and try again.", i.id).at("input")
		}
		seen[i.id] = true
	}
	return nil
}

// checkOutputs pairs each call with one output behind it, and each output with
// a call before it.
func checkOutputs(r *responsesRequest) *Rejection {
	open := map[string]*responsesItem{}
	closed := map[string]bool{}
	var order []*responsesItem
	for _, i := range r.items {
		switch {
		case i.isCall():
			if open[i.callID] != nil || closed[i.callID] {
				return refuse("Duplicate %s found with call_id %s.", speech(i.kind), i.callID).at("input")
			}
			open[i.callID] = i
			order = append(order, i)
		case i.isOutput() && closed[i.callID]:
			return refuse("Duplicate %s found with call_id %s.", speech(i.kind), i.callID).at("input")
		case i.isOutput():
			call := open[i.callID]
			if call == nil || call.kind+"_output" != i.kind {
				return refuse("No tool call found for %s with call_id %s.", speech(i.kind), i.callID).at("input")
			}
			delete(open, i.callID)
			closed[i.callID] = true
		}
	}
	for _, call := range order {
		if open[call.callID] != nil {
			return refuse("No tool output found for %s %s.", speech(call.kind), call.callID).at("input")
		}
	}
	return nil
}

// checkReasoning requires that reasoning stays with the item it led to, and unchanged.
func (o *responsesReader) checkReasoning(r *responsesRequest) *Rejection {
	present := map[string]bool{}
	for n, i := range r.items {
		if i.isReasoning() {
			present[i.id] = true
			if rejection := checkFollower(r.items, n); rejection != nil {
				return rejection
			}
		}
		if _, bound := o.signer.openBound(i.sealed); i.sealed != "" && !bound && o.signer.judgeSealed(i.sealed) != genuine {
			return refuse("The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", i.id).coded("invalid_encrypted_content")
		}
		if needed, ok := o.signer.reasoningOf(i.id); ok && !present[needed] {
			return refuse("Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", i.id, i.kind, needed).at("input")
		}
	}
	return nil
}

// checkFollower requires the item that reasoning n led to.
func checkFollower(items []*responsesItem, n int) *Rejection {
	for _, next := range items[n+1:] {
		if next.isReasoning() {
			continue
		}
		if next.isOutput() || next.kind == "message" && next.role != "assistant" || next.kind == "compaction_trigger" {
			break
		}
		return nil
	}
	return refuse("Item '%s' of type 'reasoning' was provided without its required following item.", items[n].id).at("input")
}

// checkReferences requires that references name items of the server.
func (o *responsesReader) checkReferences(r *responsesRequest) *Rejection {
	for _, i := range r.items[r.held:] {
		byName := i.kind == "item_reference" || i.kind == "reasoning" && i.sealed == "" && i.id != ""
		if !byName || o.stored.hasItem(i.id) || o.signer.isTrusted("item", i.id) {
			continue
		}
		rejection := refuse("Item with id '%s' not found.", i.id).at("input")
		if i.kind == "reasoning" {
			rejection.Message += " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
		}
		rejection.Status = http.StatusNotFound
		return rejection
	}
	return nil
}

// prompt lists the positions of the prompt: tools, instructions, items.
func (r *responsesRequest) prompt() []position {
	cacheKey, _ := r.members.text("prompt_cache_key")
	list := newPositions(r.modelID + "\x00" + cacheKey)
	for _, t := range r.tools {
		list.add("tool", t.sum, t.tokens)
	}
	if r.instructions != "" {
		list.add("instructions", sumText(r.instructions), r.instructed)
	}
	for _, i := range r.items {
		if !r.skip[i] {
			list.add(i.kind, i.sum, i.tokens)
		}
	}
	return list.all
}

func (r *responsesRequest) shortest() int  { return r.model.MinCache }
func (r *responsesRequest) maxOutput() int { return r.limit }
func (r *responsesRequest) room() int      { return r.model.Window + r.model.MaxOutput - r.tokens }

func (r *responsesRequest) overflow() *Rejection {
	return refuse("Your input exceeds the context window of this model. Please adjust your input and try again.").at("input").coded(overLength)
}

func (r *responsesRequest) about() Request {
	about := Request{Model: r.modelID, Stream: r.stream, Thinks: r.thinks, Tokens: r.tokens}
	for _, i := range r.items {
		switch {
		case i.role == "assistant":
			about.Answers++
			about.Results = nil
		case i.role == "user", i.kind == "agent_message":
			about.User, about.Results = i.text, nil
		case i.isOutput():
			about.Results = append(about.Results, i.text)
		}
	}
	return about
}

type responsesCount struct {
	Object      string `json:"object"`
	InputTokens int    `json:"input_tokens"`
}

type responsesCompaction struct {
	ID        string         `json:"id"`
	Object    string         `json:"object"`
	CreatedAt int64          `json:"created_at"`
	Output    []responseItem `json:"output"`
	Usage     *responseUsage `json:"usage"`
}

type responsesDeletion struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// responsesRead answers POST /v1/responses/input_tokens and /v1/responses/compact, which check a body without
// generating an answer.
func (c *call) responsesRead(what string) {
	d := c.double
	c.entry.Status = http.StatusOK
	r, rejection := d.responses.parse(nil, c.body)
	if rejection == nil {
		r.truncates = r.truncates || what == "input_tokens"
		rejection = d.responses.check(r)
	}
	if rejection == nil {
		rejection = d.config.knows(OpenAIResponses, r.modelID)
	}
	if rejection != nil {
		c.entry.Status, c.entry.Invalid = rejection.Status, rejection
	} else {
		c.entry.Model, c.entry.Prompt = r.modelID, r.tokens
	}
	d.log.add(c.entry)
	switch {
	case rejection != nil:
		rejection.write(c.w, OpenAIResponses, c.requestID)
	case what == "input_tokens":
		c.w.Header().Set("Content-Type", "application/json")
		writeBody(c.w, responsesCount{Object: "response.input_tokens", InputTokens: r.tokens})
	default:
		c.w.Header().Set("Content-Type", "application/json")
		writeBody(c.w, responsesCompaction{
			ID: d.name("resp_", 48), Object: "response.compaction", CreatedAt: d.config.Now().Unix(),
			Output: append(userItems(d, r), d.compaction()), Usage: Usage{Input: r.tokens, Output: 1}.response(),
		})
	}
}

// userItems returns the messages of a person, which a compaction keeps.
func userItems(d *Double, r *responsesRequest) []responseItem {
	items := []responseItem{}
	for _, i := range r.items {
		if i.role == "user" {
			items = append(items, responseItem{
				Type: "message", ID: d.name("msg_", 24), Status: "completed", Role: "user", Content: &[]responsePart{{Type: "input_text", Text: i.text}},
			})
		}
	}
	return items
}

// storedResponse answers GET and DELETE /v1/responses/{id}.
func (c *call) storedResponse(id string) {
	body, found := c.double.stored.body(id)
	if !found {
		c.refuse(OpenAIResponses, &Rejection{
			Status: http.StatusNotFound, Type: "invalid_request_error", Message: "Response with id '" + id + "' not found.",
		}, false)
		return
	}
	c.w.Header().Set("Content-Type", "application/json")
	if c.r.Method == http.MethodDelete {
		writeBody(c.w, responsesDeletion{ID: id, Object: "response", Deleted: c.double.stored.forget(id)})
		return
	}
	_, _ = c.w.Write(body)
}

// isStored reports whether a path names a stored response.
func isStored(method, path string) (string, bool) {
	id, ok := strings.CutPrefix(path, "/v1/responses/")
	reads := method == http.MethodGet || method == http.MethodDelete
	return id, ok && reads && !strings.Contains(id, "/")
}
