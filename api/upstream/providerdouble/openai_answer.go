package providerdouble

import (
	"cmp"
	"encoding/json"
	"slices"
)

// chatCompletion is an answer of POST /v1/chat/completions, whole or a chunk.
type chatCompletion struct {
	ID          string          `json:"id"`
	Object      string          `json:"object"`
	Created     int64           `json:"created"`
	Model       string          `json:"model"`
	Choices     []chatChoice    `json:"choices"`
	Usage       json.RawMessage `json:"usage,omitempty"`
	ServiceTier string          `json:"service_tier"`
	Fingerprint string          `json:"system_fingerprint"`
}

type chatChoice struct {
	Index        int         `json:"index"`
	Message      *chatAnswer `json:"message,omitempty"`
	Delta        *chatDelta  `json:"delta,omitempty"`
	FinishReason *string     `json:"finish_reason"`
}

type chatAnswer struct {
	Role    string     `json:"role"`
	Content *string    `json:"content"`
	Refusal *string    `json:"refusal"`
	Calls   []chatCall `json:"tool_calls,omitempty"`
}

type chatDelta struct {
	Role    string     `json:"role,omitempty"`
	Content *string    `json:"content,omitempty"`
	Calls   []chatCall `json:"tool_calls,omitempty"`
}

type chatCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type chatUsage struct {
	PromptTokens     int                 `json:"prompt_tokens"`
	CompletionTokens int                 `json:"completion_tokens"`
	TotalTokens      int                 `json:"total_tokens"`
	PromptDetails    chatPromptTokens    `json:"prompt_tokens_details"`
	CompletionDetail openaiOutputDetails `json:"completion_tokens_details"`
}

type chatPromptTokens struct {
	CachedTokens     int `json:"cached_tokens"`
	CacheWriteTokens int `json:"cache_write_tokens,omitempty"`
	AudioTokens      int `json:"audio_tokens"`
}

type openaiOutputDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

func (u Usage) chat() *chatUsage {
	prompt := u.Input + u.CacheRead + u.CacheWrite
	return &chatUsage{
		PromptTokens: prompt, CompletionTokens: u.Output, TotalTokens: prompt + u.Output,
		PromptDetails: chatPromptTokens{CachedTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite}, CompletionDetail: openaiOutputDetails{ReasoningTokens: u.Reasoning},
	}
}

// answer writes a reply as Chat Completions does.
func (r *chatRequest) answer(d *Double, reply Reply, usage Usage) answer {
	frame := chatCompletion{
		ID: d.name("chatcmpl-", 29), Object: "chat.completion", Created: d.config.Now().Unix(), Model: cmp.Or(usage.Model, r.modelID),
		ServiceTier: usage.Tier, Fingerprint: "fp_double",
	}
	message := chatAnswer{Role: "assistant"}
	if reply.Text != "" || len(reply.Calls) == 0 {
		message.Content = &reply.Text
	}
	for _, call := range reply.Calls {
		message.Calls = append(message.Calls, chatCall{
			ID: d.name("call_", 24), Type: "function", Function: chatFunction{Name: call.Name, Arguments: string(call.Input)},
		})
	}
	reason := r.finishReason(reply, usage)
	whole := frame
	whole.Choices = []chatChoice{{Message: &message, FinishReason: &reason}}
	whole.Usage = encode(usage.chat())
	return answer{whole: encode(whole), events: r.chunks(frame, message, reason, usage, reply.Chunks)}
}

func (r *chatRequest) finishReason(reply Reply, usage Usage) string {
	switch {
	case reply.StopReason == cutAtWindow:
		return "length"
	case reply.StopReason != "":
		return reply.StopReason
	case r.limit > 0 && usage.Output >= r.limit:
		return "length"
	case len(reply.Calls) > 0:
		return "tool_calls"
	default:
		return "stop"
	}
}

// chunks cuts a message into the events of a stream.
func (r *chatRequest) chunks(frame chatCompletion, message chatAnswer, reason string, usage Usage, parts int) []event {
	frame.Object = "chat.completion.chunk"
	if r.usage {
		frame.Usage = json.RawMessage("null")
	}
	var events []event
	add := func(delta chatDelta, finish *string, isChunk bool) {
		frame.Choices = []chatChoice{{Delta: &delta, FinishReason: finish}}
		events = append(events, event{data: encode(frame), chunk: isChunk})
	}
	empty := ""
	add(chatDelta{Role: "assistant", Content: &empty}, nil, false)
	if message.Content != nil {
		for _, part := range pieces(*message.Content, parts) {
			add(chatDelta{Content: &part}, nil, true)
		}
	}
	for i, call := range message.Calls {
		opening := call
		opening.Index, opening.Function.Arguments = &i, ""
		add(chatDelta{Calls: []chatCall{opening}}, nil, true)
		for _, part := range pieces(call.Function.Arguments, 2) {
			add(chatDelta{Calls: []chatCall{{Index: &i, Function: chatFunction{Arguments: part}}}}, nil, true)
		}
	}
	add(chatDelta{}, &reason, false)
	if r.usage {
		frame.Choices, frame.Usage = []chatChoice{}, encode(usage.chat())
		events = append(events, event{data: encode(frame)})
	}
	return append(events, event{data: []byte("[DONE]")})
}

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

type responsesEvent struct {
	Type         string        `json:"type"`
	Sequence     int           `json:"sequence_number"`
	Response     *response     `json:"response,omitempty"`
	OutputIndex  *int          `json:"output_index,omitempty"`
	ItemID       string        `json:"item_id,omitempty"`
	Item         *responseItem `json:"item,omitempty"`
	ContentIndex *int          `json:"content_index,omitempty"`
	SummaryIndex *int          `json:"summary_index,omitempty"`
	Part         *responsePart `json:"part,omitempty"`
	Delta        *string       `json:"delta,omitempty"`
	Text         *string       `json:"text,omitempty"`
	Arguments    *string       `json:"arguments,omitempty"`
	Input        *string       `json:"input,omitempty"`
	Logprobs     *[]string     `json:"logprobs,omitempty"`
}

// eventWriter numbers the events of one stream.
type eventWriter struct {
	events []event
	chunks int
}

func (w *eventWriter) add(e responsesEvent) {
	e.Sequence = len(w.events)
	w.events = append(w.events, event{name: e.Type, data: encode(e), chunk: e.Delta != nil})
}

// responsesEvents cuts a whole answer into the events of its stream.
func responsesEvents(whole response, chunks int) []event {
	w := &eventWriter{chunks: chunks}
	opening := whole
	opening.Status, opening.Output, opening.Usage, opening.Incomplete = "in_progress", []responseItem{}, nil, nil
	w.add(responsesEvent{Type: "response.created", Response: &opening})
	w.add(responsesEvent{Type: "response.in_progress", Response: &opening})
	for i, written := range whole.Output {
		w.item(i, written)
	}
	w.add(responsesEvent{Type: "response." + whole.Status, Response: &whole})
	return w.events
}

// failedEvents is the stream of an answer that is refused after its start.
func failedEvents(whole response, refusal *Rejection) []event {
	w := &eventWriter{}
	whole.Status, whole.Output, whole.Usage, whole.Incomplete = "in_progress", []responseItem{}, nil, nil
	w.add(responsesEvent{Type: "response.created", Response: &whole})
	w.add(responsesEvent{Type: "response.in_progress", Response: &whole})
	failed := whole
	failed.Status, failed.Error = "failed", &responseError{Code: refusal.Code, Message: refusal.Message}
	w.add(responsesEvent{Type: "response.failed", Response: &failed})
	return w.events
}

func (w *eventWriter) item(i int, written responseItem) {
	opening := written
	empty := ""
	switch written.Type {
	case "message":
		opening.Status, opening.Content = "in_progress", &[]responsePart{}
	case "reasoning":
		opening.Summary, opening.Sealed = &[]responsePart{}, ""
	case "function_call":
		opening.Status, opening.Arguments = "in_progress", &empty
	case "custom_tool_call":
		opening.Status, opening.Input = "in_progress", &empty
	}
	w.add(responsesEvent{Type: "response.output_item.added", OutputIndex: &i, Item: &opening})
	switch written.Type {
	case "message":
		w.text(i, written)
	case "reasoning":
		w.summary(i, written)
	case "function_call":
		w.argument(i, written, "response.function_call_arguments", *written.Arguments)
	case "custom_tool_call":
		w.argument(i, written, "response.custom_tool_call_input", *written.Input)
	}
	w.add(responsesEvent{Type: "response.output_item.done", OutputIndex: &i, Item: &written})
}

func (w *eventWriter) text(i int, written responseItem) {
	zero, none := 0, &[]string{}
	for _, part := range *written.Content {
		opening := part
		opening.Text = ""
		w.add(responsesEvent{Type: "response.content_part.added", OutputIndex: &i, ItemID: written.ID, ContentIndex: &zero, Part: &opening})
		for _, piece := range pieces(part.Text, w.chunks) {
			w.add(responsesEvent{Type: "response.output_text.delta", OutputIndex: &i, ItemID: written.ID, ContentIndex: &zero, Delta: &piece, Logprobs: none})
		}
		w.add(responsesEvent{Type: "response.output_text.done", OutputIndex: &i, ItemID: written.ID, ContentIndex: &zero, Text: &part.Text, Logprobs: none})
		w.add(responsesEvent{Type: "response.content_part.done", OutputIndex: &i, ItemID: written.ID, ContentIndex: &zero, Part: &part})
	}
}

func (w *eventWriter) summary(i int, written responseItem) {
	zero := 0
	for _, part := range *written.Summary {
		opening := part
		opening.Text = ""
		w.add(responsesEvent{Type: "response.reasoning_summary_part.added", OutputIndex: &i, ItemID: written.ID, SummaryIndex: &zero, Part: &opening})
		for _, piece := range pieces(part.Text, w.chunks) {
			w.add(responsesEvent{Type: "response.reasoning_summary_text.delta", OutputIndex: &i, ItemID: written.ID, SummaryIndex: &zero, Delta: &piece})
		}
		w.add(responsesEvent{Type: "response.reasoning_summary_text.done", OutputIndex: &i, ItemID: written.ID, SummaryIndex: &zero, Text: &part.Text})
		w.add(responsesEvent{Type: "response.reasoning_summary_part.done", OutputIndex: &i, ItemID: written.ID, SummaryIndex: &zero, Part: &part})
	}
}

func (w *eventWriter) argument(i int, written responseItem, name, text string) {
	for _, piece := range pieces(text, 2) {
		w.add(responsesEvent{Type: name + ".delta", OutputIndex: &i, ItemID: written.ID, Delta: &piece})
	}
	done := responsesEvent{Type: name + ".done", OutputIndex: &i, ItemID: written.ID, Arguments: &text}
	if written.Type == "custom_tool_call" {
		done.Arguments, done.Input = nil, &text
	}
	w.add(done)
}
