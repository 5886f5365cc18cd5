package providerdouble

import (
	"cmp"
	"encoding/json"
	"slices"
)

// response is the object that POST /v1/responses answers.
type response struct {
	ID          string            `json:"id"`
	Object      string            `json:"object"`
	CreatedAt   int64             `json:"created_at"`
	Status      string            `json:"status"`
	Error       *responseError    `json:"error"`
	Incomplete  *incomplete       `json:"incomplete_details"`
	Instruction *string           `json:"instructions"`
	Metadata    map[string]string `json:"metadata"`
	Model       string            `json:"model"`
	Output      []responseItem    `json:"output"`
	Parallel    bool              `json:"parallel_tool_calls"`
	Previous    *string           `json:"previous_response_id"`
	ServiceTier string            `json:"service_tier,omitempty"`
	Store       bool              `json:"store"`
	Temperature float64           `json:"temperature"`
	ToolChoice  string            `json:"tool_choice"`
	Tools       json.RawMessage   `json:"tools"`
	TopP        float64           `json:"top_p"`
	Truncation  string            `json:"truncation"`
	Usage       *responseUsage    `json:"usage"`

	Transformations []transformation `json:"input_transformations,omitempty"`
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type responseItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Status    string          `json:"status,omitempty"`
	Role      string          `json:"role,omitempty"`
	Content   *[]responsePart `json:"content,omitempty"`
	Summary   *[]responsePart `json:"summary,omitempty"`
	Sealed    string          `json:"encrypted_content,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Arguments *string         `json:"arguments,omitempty"`
	Input     *string         `json:"input,omitempty"`
}

type responsePart struct {
	Type        string    `json:"type"`
	Text        string    `json:"text"`
	Annotations *[]string `json:"annotations,omitempty"`
}

type responseUsage struct {
	InputTokens   int                 `json:"input_tokens"`
	InputDetails  responseInputTokens `json:"input_tokens_details"`
	OutputTokens  int                 `json:"output_tokens"`
	OutputDetails openaiOutputDetails `json:"output_tokens_details"`
	TotalTokens   int                 `json:"total_tokens"`
}

type responseInputTokens struct {
	CachedTokens     int `json:"cached_tokens"`
	CacheWriteTokens int `json:"cache_write_tokens"`
}

func (u Usage) response() *responseUsage {
	prompt := u.Input + u.CacheRead + u.CacheWrite
	return &responseUsage{
		InputTokens: prompt, InputDetails: responseInputTokens{CachedTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite},
		OutputTokens: u.Output, OutputDetails: openaiOutputDetails{ReasoningTokens: u.Reasoning}, TotalTokens: prompt + u.Output,
	}
}

// answer writes a reply as Responses does and stores it if the request allows it.
func (r *responsesRequest) answer(d *Double, reply Reply, usage Usage) answer {
	whole := r.frame(d)
	whole.Status, whole.Usage, whole.ServiceTier = "completed", usage.response(), usage.Tier
	whole.Model = cmp.Or(usage.Model, whole.Model)
	whole.Output = r.output(d, reply)
	if reply.StopReason == cutAtWindow || r.limit > 0 && usage.Output >= r.limit {
		whole.Status, whole.Incomplete = "incomplete", &incomplete{Reason: "max_output_tokens"}
	}
	body := encode(whole)
	if r.stores {
		history := slices.Clone(r.raw)
		var ids []string
		for _, i := range whole.Output {
			history = append(history, encode(i))
			ids = append(ids, i.ID)
		}
		d.stored.keep(whole.ID, storedResponse{body: body, history: history}, ids)
	}
	return answer{whole: body, events: responsesEvents(whole, reply.Chunks), failed: failedEvents(whole, r.overflow())}
}

// frame is the answer before its output.
func (r *responsesRequest) frame(d *Double) response {
	frame := response{
		ID: d.name("resp_", 48), Object: "response", CreatedAt: d.config.Now().Unix(), Status: "in_progress",
		Metadata: map[string]string{}, Model: r.modelID, Output: []responseItem{}, Parallel: true, Store: r.stores,
		Temperature: 1, ToolChoice: "auto", Tools: json.RawMessage("[]"), TopP: 1, Truncation: "disabled",
	}
	frame.Transformations = r.dropped
	if r.members.has("tools") {
		frame.Tools = r.members["tools"]
	}
	if r.instructions != "" {
		frame.Instruction = &r.instructions
	}
	if previous, ok := r.members.text("previous_response_id"); ok {
		frame.Previous = &previous
	}
	return frame
}

// output writes the items of a reply: reasoning, message, calls.
func (r *responsesRequest) output(d *Double, reply Reply) []responseItem {
	if last := r.items[len(r.items)-1]; last.kind == "compaction_trigger" {
		return []responseItem{d.compaction()}
	}
	items := []responseItem{}
	if r.compactFrom > 0 && r.tokens >= r.compactFrom {
		items = append(items, d.compaction())
	}
	reasoning := ""
	if reply.Thinking != "" && r.thinks {
		reasoning = d.name("rs_", 24)
		thought := responseItem{Type: "reasoning", ID: reasoning, Summary: &[]responsePart{{Type: "summary_text", Text: reply.Thinking}}}
		if r.seals {
			thought.Sealed = r.seal(d, reasoning)
		}
		items = append(items, thought)
	}
	if reply.Text != "" || len(reply.Calls) == 0 {
		items = append(items, responseItem{
			Type: "message", ID: d.ItemID("msg_", d.name("", 24), reasoning), Status: "completed", Role: "assistant",
			Content: &[]responsePart{{Type: "output_text", Text: reply.Text, Annotations: &[]string{}}},
		})
	}
	for _, call := range reply.Calls {
		input := string(call.Input)
		written := responseItem{Type: "function_call", Status: "completed", CallID: d.name("call_", 24), Name: call.Name, Namespace: call.Namespace, Arguments: &input}
		prefix := "fc_"
		if slices.Contains(r.customTools, call.Name) {
			prefix = "ctc_"
			written.Type, written.Arguments, written.Input = "custom_tool_call", nil, &input
		}
		written.ID = d.ItemID(prefix, d.name("", 24), reasoning)
		items = append(items, written)
	}
	return items
}

// compaction is an opaque summary of a conversation.
func (d *Double) compaction() responseItem {
	id := d.name("cmp_", 24)
	return responseItem{Type: "compaction", ID: id, Sealed: d.Redact(id)}
}
