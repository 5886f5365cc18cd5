package providerdouble

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// interactionsRequest is a body of the Interactions API.
type interactionsRequest struct {
	googleRequest

	steps []*interactionsStep
}

// interactionsStep is one step of an input.
type interactionsStep struct {
	kind      string
	id        string // of a call, or of the call that a result answers
	text      string
	badSigned bool // its signature isn't this double's
	sum       [sha256.Size]byte
	tokens    int
}

// interactionsReader reads requests of the Interactions API and judges them
// (https://ai.google.dev/api/interactions-api).
type interactionsReader struct {
	config Config
	signer *Signer
	stored *store
	steps  memo[interactionsStep]
}

// interactionsError is an error of the Interactions API, whose code is a word.
type interactionsError struct {
	Error interactionsErrorDetail `json:"error"`
}

type interactionsErrorDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r *Rejection) interactions() interactionsError {
	code := map[int]string{400: "invalid_request", 403: "permission_denied", 404: "not_found", 429: "rate_limit_exceeded", 500: "server_error", 503: "service_unavailable"}[r.Status]
	return interactionsError{interactionsErrorDetail{Code: code, Message: r.Message}}
}

// parse reads a body.
func (g *interactionsReader) parse(_ http.Header, body []byte) (*interactionsRequest, *Rejection) {
	m, ok := document(body)
	if !ok {
		return nil, refuse("Request contains an invalid JSON payload.")
	}
	r := &interactionsRequest{googleRequest: googleRequest{members: m, limit: -1}}
	if name := m.extra("model", "agent", "agent_config", "input", "system_instruction", "tools", "response_format", "response_mime_type", "response_modalities", "stream", "store",
		"background", "generation_config", "previous_interaction_id", "service_tier", "labels", "safety_settings", "environment", "webhook_config"); name != "" && !g.config.AllowUnknown {
		return nil, refuse("Unknown parameter '%s'.", name)
	}
	r.modelID, _ = m.text("model")
	if r.modelID = strings.TrimPrefix(r.modelID, "models/"); r.modelID == "" {
		return nil, refuse("Exactly one of 'model' or 'agent' must be set.")
	}
	r.model, _ = g.config.model(r.modelID)
	if id, has := m.text("previous_interaction_id"); has {
		if _, known := g.stored.body(id); !known {
			return nil, &Rejection{Status: 404, Message: "Interaction '" + id + "' not found."}
		}
	}
	if rejection := g.parseHead(r); rejection != nil {
		return nil, rejection
	}
	return r, g.parseInput(r)
}

// parseHead reads everything but the input.
func (g *interactionsReader) parseHead(r *interactionsRequest) *Rejection {
	if raw := r.members["system_instruction"]; r.members.has("system_instruction") && firstByte(raw) != '"' {
		return refuse("Invalid value for 'system_instruction': expected a string.")
	}
	config, _ := objectMembers(r.members["generation_config"])
	if name := config.extra("max_output_tokens", "temperature", "top_p", "seed", "stop_sequences", "thinking_level", "thinking_summaries", "tool_choice", "speech_config", "image_config",
		"video_config", "transcription_config"); name != "" && !g.config.AllowUnknown {
		return refuse("Unknown parameter 'generation_config.%s'.", name)
	}
	if limit, given := config.number("max_output_tokens"); given {
		r.limit = limit
	}
	summaries, _ := config.text("thinking_summaries")
	r.thinks = summaries == "auto"
	for _, name := range []string{"system_instruction", "tools"} {
		if r.members.has(name) {
			bare := compact(r.members[name])
			r.fixed = append(r.fixed, geminiFixed{name, sha256.Sum256(bare), g.config.Count(string(bare))})
		}
	}
	return nil
}

// parseInput reads an input: a string, a content, contents, or steps.
func (g *interactionsReader) parseInput(r *interactionsRequest) *Rejection {
	input := r.members["input"]
	list, isList := elements(input)
	switch {
	case isList && len(list) == 0, len(input) == 0:
		return refuse("'input' must not be empty.")
	case !isList:
		list = []json.RawMessage{input}
	}
	hasContents, hasSteps := false, false
	for i, raw := range list {
		step, rejection := g.parseStep(raw, item("input", i))
		if rejection != nil {
			return rejection
		}
		hasContents, hasSteps = hasContents || step.kind == "", hasSteps || step.kind != ""
		r.steps = append(r.steps, step)
	}
	if hasContents && hasSteps || hasSteps && !isList {
		return refuse("Invalid value for 'input': expected a string, a content, a list of contents or a list of steps.")
	}
	return nil
}

// interactionsMembers are the members of each type of step, apart from the type.
func interactionsMembers() map[string][]string {
	return map[string][]string{
		"user_input": {"content"}, "model_output": {"content", "error"}, "thought": {"signature", "summary"},
		"function_call": {"id", "name", "arguments"}, "function_result": {"call_id", "name", "result", "is_error"},
		"google_search_call": {"id", "arguments", "search_type", "signature"}, "google_search_result": {"call_id", "result", "is_error", "signature"},
	}
}

// parseStep reads a step, or a content of an input without steps, whose kind is empty.
func (g *interactionsReader) parseStep(raw json.RawMessage, path string) (*interactionsStep, *Rejection) {
	key := sha256.Sum256(raw)
	if known, ok := g.steps.find(key); ok {
		return known, nil
	}
	step := &interactionsStep{sum: sha256.Sum256(compact(raw)), tokens: messageTokens}
	if said, ok := stringValue(raw); ok {
		step.text, step.tokens = said, step.tokens+g.config.Count(said)
		return step, nil
	}
	m, ok := objectMembers(raw)
	if !ok {
		return nil, refuse("Invalid value for '%s': expected an object.", path)
	}
	step.kind, _ = m.text("type")
	known, isStep := interactionsMembers()[step.kind]
	switch {
	case isStep:
	case slices.Contains(interactionsContents(), step.kind):
		step.kind = ""
		return step, g.parseContent(step, raw, path)
	default:
		return nil, refuse("Invalid value for '%s.type': '%s'.", path, step.kind)
	}
	if name := m.extra(append([]string{"type"}, known...)...); name != "" && !g.config.AllowUnknown {
		return nil, refuse("Unknown parameter '%s.%s'.", path, name)
	}
	if rejection := g.parseMembers(step, m, path); rejection != nil {
		return nil, rejection
	}
	g.steps.keep(key, step)
	return step, nil
}

// parseMembers reads the members of a step.
func (g *interactionsReader) parseMembers(step *interactionsStep, m members, path string) *Rejection {
	signature, isSigned := m.text("signature")
	step.badSigned = isSigned && !g.signer.isOwn(step.kind, signature)
	list := m["content"]
	switch step.kind {
	case "function_call":
		step.id, _ = m.text("id")
		name, _ := m.text("name")
		if step.id == "" || name == "" || firstByte(m["arguments"]) != '{' {
			return refuse("Invalid value for '%s': a function call needs id, name and arguments.", path)
		}
		step.tokens += g.config.Count(name) + g.config.Count(string(m["arguments"]))
		return nil
	case "function_result":
		step.id, _ = m.text("call_id")
		if !m.has("result") || step.id == "" {
			return refuse("Invalid value for '%s': a function result needs call_id and result.", path)
		}
		if said, ok := stringValue(m["result"]); ok || firstByte(m["result"]) == '{' {
			step.text = said
			step.tokens += g.config.Count(string(m["result"]))
			return nil
		}
		list = m["result"]
	case "thought":
		list = m["summary"]
	case "user_input", "model_output":
		if contents, ok := elements(list); !ok || len(contents) == 0 {
			return refuse("Invalid value for '%s.content': expected a list of contents.", path)
		}
	}
	contents, _ := elements(list)
	for i, raw := range contents {
		if rejection := g.parseContent(step, raw, item(path+".content", i)); rejection != nil {
			return rejection
		}
	}
	return nil
}

func interactionsContents() []string { return []string{"text", "image", "audio", "document", "video"} }

// parseContent adds a content to a step.
func (g *interactionsReader) parseContent(step *interactionsStep, raw json.RawMessage, path string) *Rejection {
	m, _ := objectMembers(raw)
	kind, _ := m.text("type")
	if !slices.Contains(interactionsContents(), kind) {
		return refuse("Invalid value for '%s.type': '%s'.", path, kind)
	}
	known := []string{"type", "data", "uri", "mime_type", "resolution"}
	if kind == "text" {
		known = []string{"type", "text", "annotations"}
	}
	if name := m.extra(known...); name != "" && !g.config.AllowUnknown {
		return refuse("Unknown parameter '%s.%s'.", path, name)
	}
	if kind != "text" {
		data, _ := m.text("data")
		step.tokens += pictureTokens(data)
		return nil
	}
	said, ok := m.text("text")
	if !ok {
		return refuse("Missing required parameter '%s.text'.", path)
	}
	step.text += said
	step.tokens += g.config.Count(said)
	return nil
}

// interaction is an answer of the Interactions API.
type interaction struct {
	ID     string             `json:"id"`
	Object string             `json:"object"`
	Model  string             `json:"model"`
	Status string             `json:"status"`
	Tier   string             `json:"service_tier,omitempty"`
	Steps  []interactionStep  `json:"steps,omitempty"`
	Usage  *interactionsUsage `json:"usage,omitempty"`
}

type interactionStep struct {
	Type      string                `json:"type"`
	ID        string                `json:"id,omitempty"`
	Name      string                `json:"name,omitempty"`
	Arguments json.RawMessage       `json:"arguments,omitempty"`
	Signature string                `json:"signature,omitempty"`
	Summary   []interactionsContent `json:"summary,omitempty"`
	Content   []interactionsContent `json:"content,omitempty"`
}

type interactionsContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type interactionsUsage struct {
	Total   int `json:"total_tokens"`
	Input   int `json:"total_input_tokens"`
	Cached  int `json:"total_cached_tokens"`
	Output  int `json:"total_output_tokens"`
	Thought int `json:"total_thought_tokens"`
	Tools   int `json:"total_tool_use_tokens"`

	Grounding []interactionsUse `json:"grounding_tool_count,omitempty"`
}

// interactionsUse counts the uses of one of Google's tools.
type interactionsUse struct {
	Type  string `json:"type"`
	Count int    `json:"count"`
}

// interactionsEvent is an event of a stream.
type interactionsEvent struct {
	Index       *int               `json:"index,omitempty"`
	Step        *interactionStep   `json:"step,omitempty"`
	Delta       *interactionsDelta `json:"delta,omitempty"`
	Interaction *interaction       `json:"interaction,omitempty"`
	Type        string             `json:"event_type"`
}

type interactionsDelta struct {
	Type      string               `json:"type"`
	Text      string               `json:"text,omitempty"`
	Arguments string               `json:"arguments,omitempty"`
	Signature string               `json:"signature,omitempty"`
	Content   *interactionsContent `json:"content,omitempty"`
}

// check applies all rules for a whole request: calls and results belong together, and signatures are unchanged.
func (g *interactionsReader) check(r *interactionsRequest) *Rejection {
	open := map[string]bool{}
	for i, step := range r.steps {
		path := item("input", i)
		switch {
		case step.badSigned:
			return refuse("Invalid value for '%s.signature': the signature is not valid.", path)
		case step.kind == "function_call":
			open[step.id] = true
		case step.kind == "function_result" && !open[step.id] && !r.members.has("previous_interaction_id"):
			return refuse("Invalid value for '%s.call_id': there is no function call '%s'.", path, step.id)
		case step.kind == "function_result":
			delete(open, step.id)
		case len(open) > 0:
			return refuse("Invalid value for '%s': a function call before it has no result.", path)
		}
	}
	if len(open) > 0 {
		return refuse("Invalid value for 'input': the last function calls have no results.")
	}
	r.tokens = g.config.reported(sumTokens(r.prompt()))
	if r.tokens > r.model.Window {
		return r.overflow()
	}
	return nil
}

// prompt lists the positions of the prompt.
func (r *interactionsRequest) prompt() []position {
	list := r.before()
	for _, step := range r.steps {
		list.add(step.kind, step.sum, step.tokens)
	}
	return list.all
}

func (r *interactionsRequest) about() Request {
	about := Request{Model: r.modelID, Stream: r.members.flag("stream"), Thinks: r.thinks, Tokens: r.tokens}
	for i, step := range r.steps {
		switch step.kind {
		case "function_result":
			about.Results = append(about.Results, step.text)
		case "user_input", "":
			about.User, about.Results = step.text, nil
		default:
			if about.Results = nil; i == 0 || r.steps[i-1].kind == "user_input" || r.steps[i-1].kind == "function_result" {
				about.Answers++
			}
		}
	}
	return about
}

// answer writes a reply as the Interactions API does: a signed thought, the text, the calls.
func (r *interactionsRequest) answer(d *Double, reply Reply, usage Usage) answer {
	var steps []interactionStep
	if reply.Thinking != "" {
		step := interactionStep{Type: "thought", Signature: d.Sign("thought")}
		if r.thinks {
			step.Summary = []interactionsContent{{"text", reply.Thinking}}
		}
		steps = append(steps, step)
	}
	if reply.Text != "" || len(reply.Calls) == 0 {
		steps = append(steps, interactionStep{Type: "model_output", Content: []interactionsContent{{"text", reply.Text}}})
	}
	whole := interaction{ID: d.name("v1_", 40), Object: "interaction", Model: cmp.Or(usage.Model, r.modelID), Status: "completed", Tier: "standard", Usage: usage.interactions()}
	for _, call := range reply.Calls {
		steps = append(steps, interactionStep{Type: "function_call", ID: d.name("", 8), Name: call.Name, Arguments: call.Input})
		whole.Status = "requires_action"
	}
	if reply.StopReason == cutAtWindow || reply.StopReason == "" && r.limit > 0 && usage.Output >= r.limit {
		whole.Status = "incomplete"
	}
	opening, end := whole, whole
	opening.Status, opening.Usage, opening.Tier = "in_progress", nil, ""
	whole.Steps = steps
	if stores := r.members["store"]; string(stores) != "false" {
		d.stored.keep(whole.ID, storedResponse{body: encode(whole)}, nil)
	}
	var events []event
	add := func(data interactionsEvent) {
		events = append(events, event{name: data.Type, data: encode(data), chunk: data.Type == "step.delta"})
	}
	add(interactionsEvent{Type: "interaction.created", Interaction: &opening})
	for i, step := range steps {
		add(interactionsEvent{Type: "step.start", Index: &i, Step: step.begun()})
		for _, delta := range step.deltas(reply.Chunks) {
			add(interactionsEvent{Type: "step.delta", Index: &i, Delta: &delta})
		}
		add(interactionsEvent{Type: "step.stop", Index: &i})
	}
	add(interactionsEvent{Type: "interaction.completed", Interaction: &end})
	return answer{whole: encode(whole), events: append(events, event{name: "done", data: []byte("[DONE]")})}
}

// begun returns a step as it begins in a stream.
func (s interactionStep) begun() *interactionStep {
	begun := interactionStep{Type: s.Type, ID: s.ID, Name: s.Name}
	if s.Type == "function_call" {
		begun.Arguments = json.RawMessage("{}")
	}
	return &begun
}

// deltas returns the pieces of a step.
func (s interactionStep) deltas(chunks int) []interactionsDelta {
	var deltas []interactionsDelta
	switch s.Type {
	case "thought":
		for _, content := range s.Summary {
			deltas = append(deltas, interactionsDelta{Type: "thought_summary", Content: &content})
		}
		return append(deltas, interactionsDelta{Type: "thought_signature", Signature: s.Signature})
	case "function_call":
		return []interactionsDelta{{Type: "arguments_delta", Arguments: string(s.Arguments)}}
	}
	for _, content := range s.Content {
		for _, text := range pieces(content.Text, chunks) {
			deltas = append(deltas, interactionsDelta{Type: "text", Text: text})
		}
	}
	return deltas
}

func (u Usage) interactions() *interactionsUsage {
	prompt := u.Input + u.CacheRead + u.CacheWrite
	usage := &interactionsUsage{Total: prompt + u.Output, Input: prompt, Cached: u.CacheRead, Output: u.Output - u.Reasoning, Thought: u.Reasoning}
	if u.Searches > 0 {
		usage.Grounding = []interactionsUse{{"google_search", u.Searches}}
	}
	return usage
}
