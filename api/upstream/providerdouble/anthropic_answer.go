package providerdouble

import (
	"cmp"
	"encoding/json"
	"fmt"
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
