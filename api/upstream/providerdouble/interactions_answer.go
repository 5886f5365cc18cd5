package providerdouble

import (
	"cmp"
	"encoding/json"
)

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
