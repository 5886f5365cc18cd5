package providerdouble

import (
	"cmp"
	"encoding/json"
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
