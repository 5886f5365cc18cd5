package providerdouble

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// anthropicMessage is an answer of POST /v1/messages.
type anthropicMessage struct {
	ID              string           `json:"id"`
	Type            string           `json:"type"`
	Role            string           `json:"role"`
	Model           string           `json:"model"`
	Content         []anthropicBlock `json:"content"`
	StopReason      *string          `json:"stop_reason"`
	StopSequence    *string          `json:"stop_sequence"`
	Usage           anthropicUsage   `json:"usage"`
	Transformations []transformation `json:"input_transformations,omitempty"`
}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Content   *string         `json:"content,omitempty"` // of a compaction
}

type anthropicUsage struct {
	InputTokens              int                    `json:"input_tokens"`
	CacheCreationInputTokens int                    `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int                    `json:"cache_read_input_tokens"`
	CacheCreation            anthropicCacheCreation `json:"cache_creation"`
	OutputTokens             int                    `json:"output_tokens"`
	ServiceTier              string                 `json:"service_tier"`
	Speed                    string                 `json:"speed,omitempty"`
	Region                   string                 `json:"inference_geo,omitempty"`
	ServerTools              *anthropicServerTools  `json:"server_tool_use,omitempty"`
	Iterations               []anthropicIteration   `json:"iterations,omitempty"`
}

// anthropicIteration is one step of an answer in several steps.
type anthropicIteration struct {
	Type                     string `json:"type"`
	InputTokens              int    `json:"input_tokens"`
	CacheCreationInputTokens int    `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int    `json:"cache_read_input_tokens"`
	OutputTokens             int    `json:"output_tokens"`
}

type anthropicServerTools struct {
	Searches int `json:"web_search_requests"`
}

type anthropicCacheCreation struct {
	Ephemeral5m int `json:"ephemeral_5m_input_tokens"`
	Ephemeral1h int `json:"ephemeral_1h_input_tokens"`
}

func (u Usage) anthropic() anthropicUsage {
	usage := anthropicUsage{
		InputTokens: u.Input, CacheCreationInputTokens: u.CacheWrite, CacheReadInputTokens: u.CacheRead,
		CacheCreation: anthropicCacheCreation{Ephemeral5m: u.CacheWrite - u.CacheWrite1h, Ephemeral1h: u.CacheWrite1h},
		OutputTokens:  u.Output, ServiceTier: u.Tier, Speed: u.Speed, Region: u.Region,
	}
	if u.Searches > 0 {
		usage.ServerTools = &anthropicServerTools{u.Searches}
	}
	return usage
}

func (r *anthropicRequest) about() Request {
	about := Request{Model: r.modelID, Stream: r.stream, Thinks: r.active(), Tokens: r.tokens}
	for _, m := range r.messages {
		if m.role == "assistant" {
			about.Answers++
		}
		if m.role != "user" {
			continue
		}
		about.Results = nil
		for _, b := range m.blocks {
			switch b.kind {
			case "text":
				if !strings.HasPrefix(b.text, "<system-reminder>") {
					about.User = b.text
				}
			case "tool_result":
				about.Results = append(about.Results, textOf(b.inner))
			}
		}
	}
	return about
}

func textOf(blocks []*block) string {
	var texts []string
	for _, b := range blocks {
		if b.kind == "text" {
			texts = append(texts, b.text)
		}
	}
	return strings.Join(texts, "\n")
}

func (r *anthropicRequest) prompt() []position { return r.positions() }
func (r *anthropicRequest) shortest() int      { return r.model.MinCache }
func (r *anthropicRequest) maxOutput() int     { return r.maxTokens }
func (r *anthropicRequest) room() int          { return r.model.Window - r.tokens }

func (r *anthropicRequest) overflow() *Rejection {
	return promptTooLong(max(r.tokens, r.model.Window+1), r.model.Window)
}

func (d *Double) useCache(account string, g generation, body []byte) cacheUse {
	if r, ok := g.(*anthropicRequest); ok {
		return d.cache.useBreakpoints(account, r.positions(), r.shortest(), d.config.Now(), d.config.reported)
	}
	model, _ := d.config.model(g.about().Model)
	model.MinCache = g.shortest()
	return d.cache.usePrefix(account, g.prompt(), model, openaiLife(body, cmp.Or(model.CacheLife, openaiTTL)), d.config.Now(), d.config.reported)
}

// answer writes a reply as Anthropic does.
func (r *anthropicRequest) answer(d *Double, reply Reply, usage Usage) answer {
	message := anthropicMessage{
		ID: d.name("msg_01", 22), Type: "message", Role: "assistant", Model: cmp.Or(usage.Model, r.modelID),
		Content: r.content(d, reply), Usage: usage.anthropic(), Transformations: r.dropped,
	}
	reason := r.stopReason(reply, usage)
	message.StopReason = &reason
	if r.compacts() {
		r.compacted(d, &message)
	}
	d.anthropic.threads.keep(r.thread, message)
	return answer{whole: encode(message), events: anthropicEvents(message, reply.Chunks)}
}

func (r *anthropicRequest) stopReason(reply Reply, usage Usage) string {
	switch {
	case reply.StopReason == cutAtWindow:
		return "model_context_window_exceeded"
	case reply.StopReason != "":
		return reply.StopReason
	case usage.Output > 0 && usage.Output >= r.maxTokens:
		return "max_tokens"
	case len(reply.Calls) > 0:
		return "tool_use"
	default:
		return "end_turn"
	}
}

// content writes the blocks of a reply, thinking first and signed.
func (r *anthropicRequest) content(d *Double, reply Reply) []anthropicBlock {
	blocks := []anthropicBlock{}
	var signatures []string
	if reply.Thinking != "" && r.active() {
		text := reply.Thinking
		settings, _ := objectMembers(r.members["thinking"])
		if display, _ := settings.text("display"); display == "omitted" {
			text = ""
		}
		signature := r.sign(d, text)
		signatures = append(signatures, signature)
		blocks = append(blocks, anthropicBlock{Type: "thinking", Thinking: &text, Signature: &signature})
	}
	if reply.Text != "" {
		blocks = append(blocks, anthropicBlock{Type: "text", Text: &reply.Text})
	}
	for _, call := range reply.Calls {
		id := d.CallID(d.name("", 22), signatures)
		blocks = append(blocks, anthropicBlock{Type: "tool_use", ID: id, Name: call.Name, Input: call.Input})
	}
	return blocks
}

// sign signs thinking at the end of the request, bound to it if the model does so.
func (r *anthropicRequest) sign(d *Double, text string) string {
	if r.model.Thinking != ThinkingBound {
		return d.Sign(text)
	}
	binding := Binding{signer: d.Signer, reader: &d.anthropic, chain: r.head()}
	for _, m := range r.messages {
		for _, b := range m.blocks {
			if b.isThinking() {
				binding.before = b.signature
			}
			binding.add(m.role, b)
		}
	}
	return binding.Sign(text)
}

type anthropicEvent struct {
	Type    string            `json:"type"`
	Index   *int              `json:"index,omitempty"`
	Message *anthropicMessage `json:"message,omitempty"`
	Block   *anthropicBlock   `json:"content_block,omitempty"`
	Delta   *anthropicDelta   `json:"delta,omitempty"`
	Usage   *anthropicUsage   `json:"usage,omitempty"`
}

type anthropicDelta struct {
	Type        string  `json:"type,omitempty"`
	Text        *string `json:"text,omitempty"`
	Thinking    *string `json:"thinking,omitempty"`
	Signature   *string `json:"signature,omitempty"`
	PartialJSON *string `json:"partial_json,omitempty"`
	Content     *string `json:"content,omitempty"`
	StopReason  *string `json:"stop_reason,omitempty"`
}

func (e anthropicEvent) event(isChunk bool) event {
	return event{name: e.Type, data: encode(e), chunk: isChunk}
}

// anthropicEvents cuts a whole answer into the events of its stream.
func anthropicEvents(message anthropicMessage, chunks int) []event {
	opening := message
	opening.Content, opening.StopReason = []anthropicBlock{}, nil
	opening.Usage.OutputTokens = 1
	events := []event{
		anthropicEvent{Type: "message_start", Message: &opening}.event(false),
		anthropicEvent{Type: "ping"}.event(false),
	}
	for i, b := range message.Content {
		events = append(events, blockEvents(i, b, chunks)...)
	}
	return append(events,
		anthropicEvent{Type: "message_delta", Delta: &anthropicDelta{StopReason: message.StopReason}, Usage: &message.Usage}.event(false),
		anthropicEvent{Type: "message_stop"}.event(false))
}

func blockEvents(i int, b anthropicBlock, chunks int) []event {
	empty := ""
	opening := b
	var deltas []anthropicDelta
	switch b.Type {
	case "text":
		opening.Text = &empty
		for _, part := range pieces(*b.Text, chunks) {
			deltas = append(deltas, anthropicDelta{Type: "text_delta", Text: &part})
		}
	case "thinking":
		opening.Thinking, opening.Signature = &empty, &empty
		for _, part := range pieces(*b.Thinking, chunks) {
			deltas = append(deltas, anthropicDelta{Type: "thinking_delta", Thinking: &part})
		}
		deltas = append(deltas, anthropicDelta{Type: "signature_delta", Signature: b.Signature})
	case "compaction":
		opening.Content = nil
		deltas = append(deltas, anthropicDelta{Type: "compaction_delta", Content: b.Content})
		if opening.Signature = nil; b.Signature != nil {
			deltas = append(deltas, anthropicDelta{Type: "signature_delta", Signature: b.Signature})
		}
	case "tool_use":
		opening.Input = json.RawMessage("{}")
		deltas = append(deltas, anthropicDelta{Type: "input_json_delta", PartialJSON: &empty})
		for _, part := range pieces(string(b.Input), 2) {
			deltas = append(deltas, anthropicDelta{Type: "input_json_delta", PartialJSON: &part})
		}
	default:
		panic(fmt.Sprintf("providerdouble: no events for a block of type %q", b.Type))
	}
	events := []event{anthropicEvent{Type: "content_block_start", Index: &i, Block: &opening}.event(false)}
	for _, delta := range deltas {
		events = append(events, anthropicEvent{Type: "content_block_delta", Index: &i, Delta: &delta}.event(true))
	}
	return append(events, anthropicEvent{Type: "content_block_stop", Index: &i}.event(false))
}

const (
	compactEdit = "compact_20260112"
	compactBeta = "compact-2026-01-12"
	demandBeta  = "compact-2026-09-04"

	// Thresholds of the API's own compaction, in input tokens.
	defaultCompactTrigger, lowestCompactTrigger = 150_000, 50_000
)

// compaction holds a request's settings for the API's own compaction.
type compaction struct {
	isAsked bool // context_management has a compact_20260112
	trigger int  // input tokens that trigger it
	pauses  bool // and then answers with the summary alone

	isDemanded bool // the member compaction asks for a summary only
}

// parseManagement reads context_management. With compact_20260112, the history before the newest summary is
// ignored.
func (r *anthropicRequest) parseManagement() *Rejection {
	if !r.members.has("context_management") {
		return r.parseDemand()
	}
	if r.members.has("compaction") {
		return refuse("compaction: cannot be combined with `context_management`")
	}
	m, ok := objectMembers(r.members["context_management"])
	if !ok {
		return refuse("context_management: Input should be a valid dictionary")
	}
	if name := m.extra("edits"); name != "" {
		return refuse("context_management.%s: Extra inputs are not permitted", name)
	}
	edits, ok := elements(m["edits"])
	if !ok && m.has("edits") {
		return refuse("context_management.edits: Input should be a valid list")
	}
	for i, raw := range edits {
		edit, ok := objectMembers(raw)
		if !ok {
			return refuse("context_management.edits.%d: Input should be a valid dictionary", i)
		}
		kind, _ := edit.text("type")
		if kind == compactEdit {
			if rejection := r.parseCompactEdit(edit, at("context_management.edits", i)); rejection != nil {
				return rejection
			}
		} else if !slices.Contains([]string{"clear_tool_uses_20250919", "clear_thinking_20251015"}, kind) {
			return refuse("context_management.edits.%d: Input tag '%s' found using 'type' does not match any of the expected tags: 'clear_thinking_20251015', 'clear_tool_uses_20250919', '%s'", i, kind, compactEdit)
		}
	}
	if r.compaction.isAsked {
		r.forgetCompacted()
	}
	return nil
}

func (r *anthropicRequest) parseCompactEdit(edit members, path string) *Rejection {
	if r.header != nil && !hasBeta(r.header, compactBeta) {
		return refuse("%s: `%s` needs the beta `%s` in the header anthropic-beta", path, compactEdit, compactBeta)
	}
	if name := edit.extra("type", "trigger", "pause_after_compaction", "instructions"); name != "" {
		return refuse("%s.%s: Extra inputs are not permitted", path, name)
	}
	if r.compaction.isAsked {
		return refuse("%s: `%s` may be given once", path, compactEdit)
	}
	r.compaction = compaction{isAsked: true, trigger: defaultCompactTrigger, pauses: edit.flag("pause_after_compaction")}
	if !edit.has("trigger") {
		return nil
	}
	trigger, _ := objectMembers(edit["trigger"])
	if kind, _ := trigger.text("type"); kind != "input_tokens" {
		return refuse("%s.trigger.type: Input should be 'input_tokens'", path)
	}
	value, ok := trigger.number("value")
	if !ok || value < lowestCompactTrigger {
		return refuse("%s.trigger.value: Input should be greater than or equal to %d", path, lowestCompactTrigger)
	}
	r.compaction.trigger = value
	return nil
}

// parseDemand reads the member compaction.
func (r *anthropicRequest) parseDemand() *Rejection {
	if !r.members.has("compaction") {
		return nil
	}
	m, _ := objectMembers(r.members["compaction"])
	if kind, _ := m.text("type"); kind != "summarize" {
		return refuse("compaction.type: Input should be 'summarize'")
	}
	if r.header != nil && !hasBeta(r.header, demandBeta) {
		return refuse("compaction: Extra inputs are not permitted")
	}
	r.compaction.isDemanded = true
	return nil
}

// forgetCompacted leaves out the history before the newest summary. It doesn't change the messages, since
// other requests share them.
func (r *anthropicRequest) forgetCompacted() {
	for i, m := range slices.Backward(r.messages) {
		for j, b := range slices.Backward(m.blocks) {
			if b.kind == "compaction" && b.members.has("content") {
				r.messages = append([]*message{{role: m.role, blocks: m.blocks[j:]}}, r.messages[i+1:]...)
				return
			}
		}
	}
}

// compacts reports whether the API compacts the history before it answers.
func (r *anthropicRequest) compacts() bool {
	return r.compaction.isDemanded || r.compaction.isAsked && r.tokens >= r.compaction.trigger
}

// compacted puts the summary of a history that the API compacts at the head of an answer, and reports each
// step's usage, because the sum at the top does not count the compaction.
func (r *anthropicRequest) compacted(d *Double, answer *anthropicMessage) {
	summary := fmt.Sprintf("<summary>What %d messages came to.</summary>", len(r.messages))
	written := d.config.reported(d.config.Count(summary))
	whole := answer.Usage
	step := anthropicIteration{Type: "compaction", InputTokens: whole.InputTokens, CacheCreationInputTokens: whole.CacheCreationInputTokens,
		CacheReadInputTokens: whole.CacheReadInputTokens, OutputTokens: written}
	answer.Usage = Usage{Input: written, Output: whole.OutputTokens}.anthropic()
	answer.Usage.Iterations = []anthropicIteration{step}
	block := anthropicBlock{Type: "compaction", Content: &summary}
	if r.compaction.isDemanded { // its usage is the answer's own
		signature := d.Sign(summary)
		block.Signature = &signature
		answer.Content, answer.Usage = []anthropicBlock{block}, whole
		answer.Usage.OutputTokens = written
		return
	}
	if r.compaction.pauses {
		reason := "compaction"
		answer.Content, answer.StopReason, answer.Usage.InputTokens, answer.Usage.OutputTokens = []anthropicBlock{block}, &reason, 0, 0
		return
	}
	answer.Content = append([]anthropicBlock{block}, answer.Content...)
	answer.Usage.Iterations = append(answer.Usage.Iterations, anthropicIteration{Type: "message", InputTokens: written, OutputTokens: whole.OutputTokens})
}
