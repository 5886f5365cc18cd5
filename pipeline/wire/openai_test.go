package wire_test

import (
	"encoding/json"
	"testing"

	"palimpsest/pipeline/wire"
)

// W52: servers and gateways name the counts of a usage differently.
func TestUsageIsReadUnderManyNames(t *testing.T) {
	t.Parallel()
	cached := wire.Usage{Reported: true, Input: 60, CacheRead: 40, Output: 5}
	written := wire.Usage{Reported: true, Input: 40, CacheRead: 40, CacheWrite: 20, Output: 5}
	for usage, want := range map[string]wire.Usage{
		`{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"prompt_tokens_details":null}`:                                                                                                    {Reported: true, Input: 100, Output: 5},
		`{"prompt_tokens":100.0,"completion_tokens":5.0,"prompt_tokens_details":{"cached_tokens":40}}`:                                                                                                   cached,
		`{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"num_cached_tokens":40}`:                                                                                                          cached,
		`{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"prompt_token_details":{"cached_tokens":40}}`:                                                                                     cached,
		`{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"cache_read_input_tokens":40}`:                                                                                                    cached,
		`{"inputTokens":60,"outputTokens":5,"totalTokens":105,"cacheReadInputTokens":40,"cacheWriteInputTokens":0}`:                                                                                      cached,
		`{"promptTokens":100,"completionTokens":5,"totalTokens":105,"promptTokensDetails":{"cachedTokens":40}}`:                                                                                          cached,
		`{"inputTokens":40,"outputTokens":5,"totalTokens":105,"cacheReadInputTokens":40,"cacheWriteInputTokens":20}`:                                                                                     written,
		`{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"prompt_tokens_details":{"cached_tokens":40,"cache_creation":{"ephemeral_5m_input_tokens":20},"cache_creation_input_tokens":20}}`: written,
		`{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"prompt_tokens_details":{"cached_tokens":40},"cache_creation_input_tokens":20,"cache_read_input_tokens":40}`:                      written,
		`{"prompt_tokens":"100","completion_tokens":"5","total_tokens":"105","prompt_tokens_details":{"cached_tokens":"40"}}`:                                                                            cached,
		// Google's own usage counts thoughts and the results of its tools apart.
		`{"promptTokenCount":100,"candidatesTokenCount":5,"totalTokenCount":105,"cachedContentTokenCount":40,"promptTokensDetails":[{"modality":"TEXT","tokenCount":100}]}`: cached,
		`{"promptTokenCount":90,"toolUsePromptTokenCount":10,"candidatesTokenCount":2,"thoughtsTokenCount":3,"totalTokenCount":105,"cachedContentTokenCount":40}`:           cached,
		`{"prompt_token_count":100,"candidates_token_count":5,"total_token_count":105,"cached_content_token_count":40}`:                                                     cached,
		// OpenRouter charges for both where Gemini writes and reads the same tokens.
		`{"prompt_tokens":108,"completion_tokens":5,"total_tokens":113,"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":100}}`: {Reported: true, Input: 8, CacheRead: 100, CacheWrite: 100, Output: 5},
		// Cohere bills for fewer tokens than its model reads.
		`{"billed_units":{"input_tokens":60,"output_tokens":5},"tokens":{"input_tokens":126,"output_tokens":7}}`:                                     {Reported: true, Input: 60, Output: 5},
		`{"api_version":{"version":"2"},"billed_units":{"input_tokens":60.0,"output_tokens":5.0},"tokens":{"input_tokens":126.0,"output_tokens":7}}`: {Reported: true, Input: 60, Output: 5},
		`{"tokens":{"input_tokens":100,"output_tokens":5},"cached_tokens":40}`:                                                                       cached,
		`{"prompt_tokens":"many","completion_tokens":"-5"}`:                                                                                          {},
	} {
		var got wire.Usage
		if wire.ReadOpenAIUsage(&got, json.RawMessage(usage)); got != want {
			t.Errorf("%s: %+v, want %+v", usage, got, want)
		}
	}
}
