package semanticcache

import "palimpsest/pipeline/conversation"

// part says what a member of a body is to the cache.
type part int

const (
	foreign part = iota // not in the list: the request is left alone
	counts              // changes answers: part of the key
	formats             // changes none: left out of the key
	speaks              // holds the conversation
	carries             // holds tools
	fixed               // the system prompt
)

// partOf returns what a member of a body is. Members that are not named here may
// refer to what only the provider knows: a thread, a container, a connector.
func partOf(format conversation.Format, name string) part {
	switch format {
	case conversation.Anthropic:
		return anthropicPart(name)
	case conversation.OpenAIChat:
		return chatPart(name)
	case conversation.OpenAIResponses:
		return responsesPart(name)
	default:
		return foreign
	}
}

// anthropicPart follows https://platform.claude.com/docs/en/api/messages/create.
func anthropicPart(name string) part {
	switch name {
	case "messages":
		return speaks
	case "tools":
		return carries
	case "system":
		return fixed
	case "model", "max_tokens", "temperature", "top_p", "top_k", "stop_sequences", "tool_choice", "thinking",
		"output_config", "output_format", "service_tier", "inference_geo", "speed":
		return counts
	case "stream", "metadata", "cache_control": // metadata holds nothing but user_id
		return formats
	default:
		return foreign
	}
}

// chatPart follows https://platform.openai.com/docs/api-reference/chat/create.
func chatPart(name string) part {
	switch name {
	case "messages":
		return speaks
	case "tools":
		return carries
	case "model", "max_tokens", "max_completion_tokens", "temperature", "top_p", "stop", "response_format", "reasoning_effort",
		"verbosity", "service_tier", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs",
		"tool_choice", "parallel_tool_calls", "modalities", "prediction":
		return counts
	case "stream", "stream_options", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "store", "n", "metadata":
		return formats // store, n and metadata are looked at by isPlainChat
	default:
		return foreign
	}
}

// responsesPart follows https://platform.openai.com/docs/api-reference/responses/create.
func responsesPart(name string) part {
	switch name {
	case "input":
		return speaks
	case "tools":
		return carries
	case "instructions":
		return fixed
	case "model", "max_output_tokens", "temperature", "top_p", "text", "reasoning", "service_tier", "truncation", "top_logprobs",
		"tool_choice", "parallel_tool_calls", "max_tool_calls", "include", "metadata": // the answer repeats metadata
		return counts
	case "stream", "stream_options", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "store", "background":
		return formats // store and background are looked at by isPlainResponse
	default:
		return foreign
	}
}
