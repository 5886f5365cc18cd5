package wire_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/wire"
)

// refused is a body with which a server refused a prompt for its length.
type refused struct {
	name, body string
	want       wire.Overflow
}

// refusals are bodies that servers and gateways send, as public code and reports of faults have them.
func refusals() []refused {
	return []refused{
		{"anthropic", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"},"request_id":"req_1"}`, wire.Overflow{Tokens: 210_000, Window: 200_000}},
		{"anthropic, answer included", `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 188240 + 21333 > 200000, decrease input length or ` + "`max_tokens`" + ` and try again"}}`,
			wire.Overflow{Tokens: 188_240, Reserved: 21_333, Window: 200_000}},
		{"bedrock", `{"message":"Input is too long for requested model."}`, wire.Overflow{}},
		{"bedrock, short", `{"message":"Input is too long."}`, wire.Overflow{}},
		{"gateway for Claude Code", `{"type":"error","error":{"type":"invalid_request_error","message":"capability_rejected: prompt_too_long"}}`, wire.Overflow{}},
		{"gateway for Claude Code, with the answer", `{"type":"error","error":{"type":"invalid_request_error","message":"capability_rejected: max_tokens_context_overflow"}}`, wire.Overflow{}},
		{"bedrock, exception", `{"__type":"ValidationException","Message":"The model returned the following errors: prompt is too long: 215000 tokens > 200000 maximum"}`, wire.Overflow{Tokens: 215_000, Window: 200_000}},
		{"bedrock, titan", `{"message":"400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 14000 "}`, wire.Overflow{Tokens: 14_000, Window: 8192}},
		{"bedrock, cohere", `{"message":"Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again."}`, wire.Overflow{}},
		{"bedrock, llama", `{"message":"This model's maximum context length is 8192 tokens. Please reduce the length of the prompt"}`, wire.Overflow{Window: 8192}},
		{"openai", `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 210000 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			wire.Overflow{Tokens: 210_000, Window: 128_000}},
		{"openai, functions", `{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9500 tokens (8000 in the messages, 500 in the functions, and 1000 in the completion). Please reduce the length of the messages, functions, or completion.","code":"context_length_exceeded"}}`,
			wire.Overflow{Tokens: 8500, Reserved: 1000, Window: 8192}},
		{"openai, 2023", `{"error":{"message":"This model's maximum context length is 4097 tokens, however you requested 10360 tokens (10104 in your prompt; 256 for the completion). Please reduce your prompt; or completion length.","type":"invalid_request_error","param":null,"code":null}}`,
			wire.Overflow{Tokens: 10_104, Reserved: 256, Window: 4097}},
		{"openai, configured", `{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 305127 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			wire.Overflow{Tokens: 305_127, Window: 272_000}},
		{"responses", `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`, wire.Overflow{}},
		{"no words", `{"error":{"code":"context_length_exceeded","message":""}}`, wire.Overflow{}},
		{"a string", `{"error":"context_length_exceeded"}`, wire.Overflow{}},
		{"nothing but a string", `"prompt is too long: 2000 tokens > 1000 maximum"`, wire.Overflow{Tokens: 2000, Window: 1000}},
		{"plain text", "Input validation error: `inputs` must have less than 8000 tokens. Given: 14000", wire.Overflow{Tokens: 14_000, Window: 8000}},
		{"google, without parentheses", `{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed 1048576.","status":"INVALID_ARGUMENT"}}`, wire.Overflow{Window: 1_048_576}},
		{"vertex", `[{"error":{"code":400,"message":"Unable to submit request because the input token count is 1203823 but model only supports up to 1048576. Reduce the input token count and try again.","status":"INVALID_ARGUMENT"}}]`,
			wire.Overflow{Tokens: 1_203_823, Window: 1_048_576}},
		{"xai", `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, wire.Overflow{Tokens: 537_812, Window: 131_072}},
		{"groq", `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, wire.Overflow{}},
		{"cerebras", `{"message":"Please reduce the length of the messages or completion. Current length is 14000 while limit is 8192","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}`,
			wire.Overflow{Tokens: 14_000, Window: 8192}},
		{"openrouter", `{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 250000 tokens (200000 of text input, 40000 of tool input, 10000 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400,"metadata":{"provider_name":null}}}`,
			wire.Overflow{Tokens: 240_000, Reserved: 10_000, Window: 131_072}},
		{"openrouter, raw", `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 14000 tokens \\u003e 8000 maximum\",\"type\":\"invalid_request_error\"}}","provider_name":"Anthropic"}},"user_id":"user_1"}`,
			wire.Overflow{Tokens: 14_000, Window: 8000}},
		{"poolside", `{"error":{"message":"Input length 131393 exceeds the maximum allowed input length of 131040 tokens."}}`, wire.Overflow{Tokens: 131_393, Window: 131_040}},
		{"vllm, messages alone", `{"object":"error","message":"This model's maximum context length is 8192 tokens. However, you requested 14000 tokens in the messages, Please reduce the length of the messages.","type":"BadRequestError","param":null,"code":400}`,
			wire.Overflow{Tokens: 14_000, Window: 8192}},
		{"vllm, input tokens", `{"error":{"message":"This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.","type":"BadRequestError"}}`, wire.Overflow{Tokens: 5000, Window: 4096}},
		{"vllm, no room for the answer", `{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length is 8192 tokens and your request has 6000 input tokens (4000 > 8192 - 6000). None"}}`,
			wire.Overflow{Tokens: 6000, Reserved: 4000, Window: 8192}},
		{"vllm, engine", `{"object":"error","message":"The decoder prompt (length 14000) is longer than the maximum model length of 8192. Make sure that ` + "`max_model_len`" + ` is no smaller than the number of text tokens.","type":"BadRequestError","code":400}`,
			wire.Overflow{Tokens: 14_000, Window: 8192}},
		{"sglang", `{"object":"error","message":"Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 15000 tokens: 14000 tokens from the input messages and 1000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit."}`,
			wire.Overflow{Tokens: 14_000, Reserved: 1000, Window: 8192}},
		{"llama.cpp, members", `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}`,
			wire.Overflow{Tokens: 9000, Window: 8192}},
		{"llama.cpp, newer", `{"error":{"message":"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error"}}`, wire.Overflow{Tokens: 9000, Window: 8192}},
		{"llama.cpp, on the way", `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, wire.Overflow{}},
		{"llama-cpp-python", `{"error":{"message":"Requested tokens (14000) exceed context window of 8192","type":"internal_server_error","param":null,"code":null}}`, wire.Overflow{Tokens: 14_000, Window: 8192}},
		{"lm studio", `{"error":"Trying to keep the first 14000 tokens when context the overflows. However, the model is loaded with context length of only 8000 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"}`,
			wire.Overflow{Tokens: 14_000, Window: 8000}},
		{"lm studio, n_keep", `{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 14000>= n_ctx: 8000). Try to load the model with a larger context length, or provide a shorter input."}`,
			wire.Overflow{Tokens: 14_000, Window: 8000}},
		{"ollama", `{"error":{"message":"prompt too long; exceeded max context length by 100918 tokens","type":"invalid_request_error","param":null,"code":null}}`, wire.Overflow{}},
		{"ollama, string", `{"error":"the input length exceeds the context length"}`, wire.Overflow{}},
		{"tgi", "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 7800 `inputs` tokens and 1000 `max_new_tokens`\",\"error_type\":\"validation\"}", wire.Overflow{Tokens: 7800, Reserved: 1000, Window: 8192}},
		{"deepinfra", `{"detail":{"error":"Requested input length 14000 exceeds maximum input length 8000"}}`, wire.Overflow{Tokens: 14_000, Window: 8000}},
		{"siliconflow", `{"code":20015,"message":"length of prompt_tokens (14000) must be less than max_seq_len (8192).","data":null}`, wire.Overflow{Tokens: 14_000, Window: 8192}},
		{"trt-llm", `{"error":"Prompt length (14000) exceeds maximum input length (8000). Set log level to info and check TRTLLM logs for how to set maximum input length"}`, wire.Overflow{Tokens: 14_000, Window: 8000}},
		{"mlc", `{"object":"error","message":"Request prompt has 14000 tokens in total, larger than the model input length limit 8000.","code":400}`, wire.Overflow{Tokens: 14_000, Window: 8000}},
		{"ds4", `{"error":{"message":"Prompt has 5,958,968 tokens, but the configured context size is 256,000 tokens"}}`, wire.Overflow{Tokens: 5_958_968, Window: 256_000}},
		{"copilot", `{"error":{"message":"prompt token count of 139000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}`, wire.Overflow{Tokens: 139_000, Window: 128_000}},
		{"github models", `{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o-mini model. Max size: 8000 tokens.","details":"Request body too large for gpt-4o-mini model. Max size: 8000 tokens."}}`, wire.Overflow{Window: 8000}},
		{"minimax", `{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)","http_code":"400"}}`, wire.Overflow{}},
		{"kimi", `{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)","type":"invalid_request_error"}}`, wire.Overflow{Tokens: 300_000, Window: 262_144}},
		{"kimi, no number", `{"error":{"message":"Input token length too long","type":"invalid_request_error"}}`, wire.Overflow{}},
		{"dashscope", `{"error":{"code":"invalid_parameter_error","param":null,"message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]","type":"invalid_request_error"},"request_id":"b2ff"}`, wire.Overflow{Window: 129_024}},
		{"dashscope, native", `{"code":"InvalidParameter","message":"Range of input length should be [1, 30720]","request_id":"5f1b0a7c-1234"}`, wire.Overflow{Window: 30_720}},
		{"volcengine", `{"error":{"code":"InvalidParameter","message":"Total tokens of image and text exceed max message tokens. Request id: 0217536000000000","param":"","type":"BadRequest"}}`, wire.Overflow{}},
		{"out of context", `{"error":{"code":"OutofContextError","message":"OutofContextError: context length exceeded"}}`, wire.Overflow{}},
		{"z.ai", `{"error":{"code":"1210","message":"tokens in request more than max tokens allowed"}}`, wire.Overflow{}},
		{"z.ai, in Chinese", `{"error":{"code":"1261","message":"Prompt 超长"}}`, wire.Overflow{}},
		{"in Chinese", `{"error_code":336103,"error_msg":"输入长度超过模型上限"}`, wire.Overflow{}},
		{"z.ai, stop reason as words", `{"error":{"message":"model_context_window_exceeded"}}`, wire.Overflow{}},
		{"mistral", `{"object":"error","message":"Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}`,
			wire.Overflow{Tokens: 140_000, Window: 131_072}},
		{"cohere", `{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt, a smaller max_tokens value, or enabling prompt truncating."}`, wire.Overflow{Tokens: 4292, Window: 4081}},
		{"watsonx", `{"errors":[{"code":"invalid_input_argument","message":"Invalid input argument for Model 'ibm/granite-3-8b-instruct': the number of input tokens 14000 cannot exceed the total tokens limit 8192 for this model","more_info":"https://cloud.ibm.com/apidocs/watsonx-ai"}],"trace":"b1f4","status_code":400}`,
			wire.Overflow{Tokens: 14_000, Window: 8192}},
		{"cloudflare", `{"errors":[{"message":"AiError: AiError: The estimated number of input and maximum output tokens (14000) exceeded this model context window limit (8000).","code":5021}],"success":false,"result":{},"messages":[]}`, wire.Overflow{Tokens: 14_000, Window: 8000}},
		{"litellm", `{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: Hosted_vllmException - This model's maximum context length is 32768 tokens. However, you requested 40000 tokens (36000 in the messages, 4000 in the completion).. Received Model Group=m\nAvailable Model Group Fallbacks=None","type":null,"param":null,"code":"400"}}`,
			wire.Overflow{Tokens: 36_000, Reserved: 4000, Window: 32_768}},
		{"litellm, in python's quotes", `{"error":{"message":"litellm.BadRequestError: AnthropicException - b'{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 14000 tokens > 8000 maximum\"}}'. Received Model Group=claude\nAvailable Model Group Fallbacks=None","code":"400"}}`,
			wire.Overflow{Tokens: 14_000, Window: 8000}},
		{"litellm, an overflow of its own", `{"error":{"message":"litellm.APIConnectionError: APIConnectionError: OpenAIException - Requested token count exceeds the model's maximum context length of 131072 tokens."}}`, wire.Overflow{Window: 131_072}},
		{"fastapi", `{"detail":[{"type":"value_error","loc":["body","messages"],"msg":"Value error, the prompt has 14000 tokens, which exceeds the context window of 8000","input":[{"role":"user","content":"rate limit"}]}]}`, wire.Overflow{Tokens: 14_000, Window: 8000}},
		{"members in capitals", `{"Error":{"Message":"Input length (265330) exceeds model's maximum context length (262144)."}}`, wire.Overflow{Tokens: 265_330, Window: 262_144}},
		{"azure, inner error", `{"error":{"code":"BadRequest","message":"See inner error.","innererror":{"code":"context_length_exceeded","message":""}}}`, wire.Overflow{}},
		{"status member", `{"status":"context_length_exceeded"}`, wire.Overflow{}},
		{"gateways' own words", `{"message":"token count of 290000 exceeds the maximum allowed input length of 262112 tokens"}`, wire.Overflow{Tokens: 290_000, Window: 262_112}},
		{"a limit of context", `{"error":{"message":"An error occurred: The input exceeds the model's maximum context limit of 8192 tokens."}}`, wire.Overflow{Window: 8192}},
		{"a longer prompt", `{"error":{"message":"Your prompt is longer than the model's context length of 2048."}}`, wire.Overflow{Window: 2048}},
		{"payload", `{"message":"The request payload size has exceed context limit."}`, wire.Overflow{}},
		{"slot", `{"error":{"message":"slot context: 8192 tokens, prompt 9000 tokens - the request exceeds it"}}`, wire.Overflow{Tokens: 9000, Window: 8192}},
		{"message tokens", `{"error":{"message":"Messages exceed max message tokens: 12345"}}`, wire.Overflow{Window: 12_345}},
		{"prompt and limit", `{"error":{"message":"prompt exceeds the configured limit"}}`, wire.Overflow{}},
		{"request and window", `{"error":{"message":"Request size exceeds model context window"}}`, wire.Overflow{}},
		{"model length", `{"error":{"message":"Prompt length of 9000 is longer than the maximum model length of 8192."}}`, wire.Overflow{Tokens: 9000, Window: 8192}},
		{"over by some", `{"error":{"message":"The conversation is over the context window by 1200 tokens."}}`, wire.Overflow{}},
		{"a sum", `{"error":{"message":"Input length 7800 plus max_tokens 1000 exceeds the context window of 8192 tokens"}}`, wire.Overflow{Tokens: 7800, Reserved: 1000, Window: 8192}},
		{"new-api", `{"error":{"message":"input context length 14000 exceeds the maximum allowed context length of 8000 tokens (request id: 20261129120000123)","type":"new_api_error","code":"invalid_request"}}`, wire.Overflow{Tokens: 14_000, Window: 8000}},

		// More words of servers and gateways.
		{"vllm, decoder prompt", "{\"error\":{\"message\":\"The decoder prompt (length 40960) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}", wire.Overflow{Tokens: 40_960, Window: 32_768}},
		{"vllm, input prompt", `{"object":"error","message":"Input prompt (40960 tokens) is too long and exceeds limit of 32768","type":"BadRequestError","code":400}`, wire.Overflow{Tokens: 40_960, Window: 32_768}},
		{"vllm, passed", `{"error":{"message":"You passed 33001 input tokens and requested 4000 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 28768 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=33001)","type":"BadRequestError","param":"input_tokens","code":400}}`, wire.Overflow{Tokens: 33_001, Reserved: 4000, Window: 32_768}},
		{"llama.cpp, server error", `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"server_error"}}`, wire.Overflow{}},
		{"llama.cpp, full", `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, wire.Overflow{}},
		{"ollama cloud", `{"error":"prompt too long; exceeded max context length by 4 tokens (ref: 1c2)"}`, wire.Overflow{}},
		{"openrouter, three parts", `{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 150000 tokens (140000 of text input, 2000 of tool input, 8000 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400,"metadata":{"provider_name":null}}}`, wire.Overflow{Tokens: 142_000, Reserved: 8000, Window: 131_072}},
		{"together", "{\"id\":\"o1\",\"error\":{\"message\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32769. Given: 31000 `inputs` tokens and 4096 `max_new_tokens`\",\"type\":\"invalid_request_error\",\"param\":\"max_tokens\",\"code\":null}}", wire.Overflow{Tokens: 31_000, Reserved: 4096, Window: 32_769}},
		{"together, in words", `{"error":{"message":"The input token count (40000) plus the requested completion tokens (2000) exceeds the model's context length of 32768","type":"invalid_request_error"}}`, wire.Overflow{Tokens: 40_000, Reserved: 2000, Window: 32_768}},
		{"bedrock mantle", `{"error":{"code":"validation_error","message":"The prompt contains 210000 tokens but the model supports at most 200000 tokens.","type":"invalid_request_error"}}`, wire.Overflow{Tokens: 210_000, Window: 200_000}},
		{"azure, functions", `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130500 tokens (129000 in the messages, 1500 in the functions). Please reduce the length of the messages or functions.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, wire.Overflow{Tokens: 130_500, Window: 128_000}},
		{"moonshot", `{"error":{"message":"Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)","type":"invalid_request_error"}}`, wire.Overflow{Tokens: 140_000, Window: 131_072}},
		{"z.ai, with numbers", `{"error":{"code":"1210","message":"API 调用参数有误：输入 token 数 135000 超过模型最大上下文长度 131072"}}`, wire.Overflow{Tokens: 135_000, Window: 131_072}},
		{"siliconflow, a total", `{"code":20015,"message":"max_total_tokens (36000) must be less than or equal to max_seq_len (32768)","data":null}`, wire.Overflow{Tokens: 36_000, Window: 32_768}},
		{"gemini compat", `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, wire.Overflow{Tokens: 1_200_000, Window: 1_048_576}},
		{"fireworks", `{"error":{"object":"error","type":"invalid_request_error","message":"The prompt is too long: 140000, model maximum context length: 131071"}}`, wire.Overflow{Tokens: 140_000, Window: 131_071}},
		{"sglang, a total", `{"object":"error","message":"Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 40000 tokens: 36000 tokens from the input messages and 4000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.","type":"BadRequestError","code":400}`, wire.Overflow{Tokens: 36_000, Reserved: 4000, Window: 32_768}},
		{"tensorrt", `{"object":"error","message":"Prompt length (9000) exceeds maximum input length (8192). Set log level to info and check TRTGptModel logs for how maximum input length is set","type":"BadRequestError","code":400}`, wire.Overflow{Tokens: 9000, Window: 8192}},
		{"tensorrt, a sum", `{"object":"error","message":"The sum of prompt length (9000.0), query length (0.0) should not exceed max_num_tokens (8192)","code":400}`, wire.Overflow{Tokens: 9000, Window: 8192}},
		{"lmdeploy", `{"object":"error","message":"Context length exceeded: input 9000 tokens, session_len 8192","code":400}`, wire.Overflow{Tokens: 9000, Window: 8192}},
		{"volcengine, images", `{"error":{"code":"InvalidParameter.OversizeContext","message":"Total tokens of image and text exceed max message tokens. Request id: 0217","type":"BadRequest"}}`, wire.Overflow{}},
		{"hunyuan", `{"Response":{"RequestId":"r","Error":{"Code":"InvalidParameter","Message":"input length is exceed the maximum length limit 28672"}}}`, wire.Overflow{Window: 28_672}},
		{"baidu", `{"error":{"code":"tokens_too_long","message":"the max input tokens is 8192","type":"invalid_request_error"},"id":"as-1"}`, wire.Overflow{Window: 8192}},
		{"nim", `{"type":"about:blank","status":400,"title":"Bad Request","detail":"Prompt token count 9000 exceeds max context 8192"}`, wire.Overflow{Tokens: 9000, Window: 8192}},
		{"perplexity", `{"error":{"message":"Requested context length of 140000 exceeds maximum 127072","type":"context_length_exceeded","code":400}}`, wire.Overflow{Tokens: 140_000, Window: 127_072}},
		{"ai21", `{"detail":"Prompt has too many tokens; the limit is 256000, got 300000"}`, wire.Overflow{Tokens: 300_000, Window: 256_000}},
		{"novita", `{"code":400,"reason":"INVALID_REQUEST_BODY","message":"invalid request: the prompt length 9000 exceeds the model limit 8192","metadata":{}}`, wire.Overflow{Tokens: 9000, Window: 8192}},
		{"tabby", `{"error":{"message":"Prompt length 9000 is greater than max_seq_len 8192","trace":null}}`, wire.Overflow{Tokens: 9000, Window: 8192}},
		{"portkey", `{"status":"failure","message":"azure-openai error: This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."}`, wire.Overflow{Tokens: 9000, Window: 8192}},
		{"deepinfra, length", `{"detail":{"error":"inputs length 9000 exceeds max length 8192 for this model"}}`, wire.Overflow{Tokens: 9000, Window: 8192}},
		{"nebius", `{"detail":"Input tokens (40000) + max_tokens (2000) must not be greater than 32768"}`, wire.Overflow{Tokens: 40_000, Reserved: 2000, Window: 32_768}},
		{"inference.net", `{"error":{"message":"Prompt tokens: 40000. Context window: 32768. The prompt does not fit.","code":"prompt_too_large"}}`, wire.Overflow{Tokens: 40_000, Window: 32_768}},
		{"qwen cloud", `{"error":{"message":"<400> InternalError.Algo.InvalidParameter: The total input tokens 140000 is larger than the model max input tokens 131072","code":"invalid_parameter_error"},"id":"x","request_id":"y"}`, wire.Overflow{Tokens: 140_000, Window: 131_072}},
		{"in Japanese", `{"error":{"message":"入力トークン数が上限を超えています (140000 > 131072)"}}`, wire.Overflow{Tokens: 140_000, Window: 131_072}},
		{"deepseek, in Chinese", `{"error":{"message":"模型最大上下文长度为 131072 tokens，您请求了 140000 tokens","type":"invalid_request_error"}}`, wire.Overflow{Tokens: 140_000, Window: 131_072}},
		{"in Korean", `{"error":{"message":"입력 토큰 수가 컨텍스트 한도를 초과했습니다"}}`, wire.Overflow{}},
	}
}

// W22, W49, B6: the providers' own words for a prompt that is too long, with every status of an error.
func TestOverflowIsReadOffTheProvidersWords(t *testing.T) {
	t.Parallel()
	for _, test := range refusals() {
		for _, status := range []int{400, 403, 413, 422, 500, 503} {
			if said, ok := wire.ReadOverflow(status, []byte(test.body)); !ok || said != test.want {
				t.Errorf("%s, status %d: %+v, %v; want %+v", test.name, status, said, ok, test.want)
			}
		}
		if _, ok := wire.ReadOverflow(200, []byte(test.body)); ok {
			t.Errorf("%s: status 200 counts as an overflow", test.name)
		}
	}
	if limit := (wire.Overflow{Reserved: 1000, Window: 8192}).Limit(); limit != 7192 {
		t.Errorf("limit %d, want 7192", limit)
	}
}

// W49: an error that another quotes, as JSON in a string or as words, is read too.
func TestOverflowIsReadInsideOtherErrors(t *testing.T) {
	t.Parallel()
	for _, test := range refusals() {
		quoted, err := json.Marshal(test.body)
		if err != nil {
			t.Fatal(err)
		}
		for _, envelope := range []string{`{"error":{"message":"Provider returned error","metadata":{"raw":%s}}}`, `{"detail":%s}`, `{"error":%s}`, `[{"error":{"message":%s}}]`, `{"object":"error","message":%s,"code":400}`} {
			body := fmt.Sprintf(envelope, quoted)
			if _, ok := wire.ReadOverflow(400, []byte(body)); !ok {
				t.Errorf("%s is not read in %s", test.name, body)
			}
		}
	}
}

// W49: the refusals of the shared data, with their numbers where they have any.
func TestSharedRefusalsAreRead(t *testing.T) {
	t.Parallel()
	var all []struct {
		Name           string
		Status, Window int
		Prompt         int
		Body           json.RawMessage
	}
	if err := json.Unmarshal(shared(t, "data", "reports", "refusals.json"), &all); err != nil {
		t.Fatal(err)
	}
	for _, test := range all {
		said, ok := wire.ReadOverflow(test.Status, test.Body)
		if !ok || said.IsHeavy {
			t.Errorf("%s: %+v, %v", test.Name, said, ok)
		}
		t.Logf("%s: %+v", test.Name, said)
	}
}

// A14: a body of too many bytes is refused in words of any kind, or in none.
func TestABodyThatIsTooLargeIsAnOverflow(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`,
		`{"error":{"message":"Request body is too large.","type":"invalid_request_error","param":null,"code":"request_too_large"}}`,
		"<html><head><title>413 Request Entity Too Large</title></head></html>", "", "{}", "null",
	} {
		if said, ok := wire.ReadOverflow(413, []byte(body)); !ok || !said.IsHeavy || said.Window != 0 || said.Tokens != 0 {
			t.Errorf("%s: %+v, %v", body, said, ok)
		}
	}
	for _, body := range []string{
		`{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, `{"message":"Payload Too Large"}`, `{"error":"request entity too large"}`,
		`{"error":{"code":400,"message":"The request size (30037042 bytes) exceeds 30.000MB limit.","status":"INVALID_ARGUMENT"}}`,
		`{"error":{"code":400,"message":"The message size (30037042 bytes) exceeds 30.000MB limit.","status":"INVALID_ARGUMENT"}}`,
	} {
		if said, ok := wire.ReadOverflow(400, []byte(body)); !ok || !said.IsHeavy {
			t.Errorf("%s with status 400: %+v, %v", body, said, ok)
		}
	}
}

// B6, W49: too much in too little time, and too little money, are no overflow, whatever the status.
func TestARateLimitIsNoOverflow(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 402, 403, 413, 429, 500} {
		for _, body := range []string{
			errorBody(t, "", "rate_limit_exceeded", "Request too large for model `llama-3.3-70b` on tokens: Limit 6000, Requested 7500, please reduce the length of the messages"),
			errorBody(t, "tokens", "", "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully."),
			errorBody(t, "", "", "Too many tokens, please wait before trying again."),
			errorBody(t, "", "throttled", "Throttling error: Too many tokens"),
			errorBody(t, "", "insufficient_quota", "You exceeded your current quota: token limit exceeded"),
			errorBody(t, "rate_limit_error", "", "This request would exceed your organization's rate limit of 40,000 input tokens per minute."),
			errorBody(t, "", "", "Requests to the ChatCompletions_Create Operation under Azure OpenAI API have exceeded token rate limit of your current OpenAI S0 pricing tier."),
			errorBody(t, "", "", "Too many tokens per day, please wait before trying again."),
			errorBody(t, "", "", "Extra usage is required for long context requests. Upgrade your subscription."),
			`{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 13377.","code":402}}`,
			`{"error":{"message":"Prompt tokens limit exceeded: 32183 > 8899. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account","code":402}}`,
			`{"error":{"message":"Budget has been exceeded! Current cost: 10.2, Max budget: 10.0","type":"budget_exceeded","code":"400"}}`,
			`{"error":{"message":"LLM hourly token budget exceeded: 2000000 / 2000000"}}`,
			`{"error":{"message":"账户余额不足，输入 token 超过套餐"}}`,
		} {
			if said, ok := wire.ReadOverflow(status, []byte(body)); ok {
				t.Errorf("status %d: %s counts as an overflow: %+v", status, body, said)
			}
		}
	}
	for _, message := range []string{"Too many tokens", "token limit exceeded", "Please reduce the length of the messages"} {
		if said, ok := wire.ReadOverflow(429, []byte(errorBody(t, "", "", message))); ok {
			t.Errorf("%q with status 429 counts as an overflow: %+v", message, said)
		}
	}
	if _, ok := wire.ReadOverflow(429, []byte(errorBody(t, "", "", "prompt is too long: 14000 tokens > 8000 maximum"))); !ok {
		t.Error("a prompt that is too long is one with status 429 as well")
	}
}

// W23, W49, B6: every other error is no overflow.
func TestOtherErrorsAreNoOverflow(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		// The answer's length.
		"max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens for claude-opus-5",
		"max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
		"Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
		"`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
		"'max_tokens' or 'max_completion_tokens' is too large: 100000. This model's maximum context length is 8192 tokens and your request has 5 input tokens (100000 > 8192 - 5). None",
		"Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive). Update the value and try again.",
		"The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.",
		"`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation",
		"Range of max_tokens should be [1, 8192]", "max_tokens exceeds the limit of 8192",
		"litellm.BadRequestError: GroqException - `max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
		"This model's maximum context length is 8192 tokens. However, you requested 100010 tokens (10 in the messages, 100000 in the completion). Please reduce the length of the messages or completion.",

		"Requested 100000 output tokens exceeds the model's limit of 8192 output tokens", "The parameter is invalid. max_tokens (100000) must be less than or equal to 16384",

		// Other limits.
		"model context-window-xl does not exist or exceeds your access level", "request queue limit reached, max 100 requests", "audio duration exceeds maximum of 1500 seconds",
		"Too many inputs. The maximum batch size is 2048 inputs", "stop sequences: too many, at most 4 allowed",

		// What stands in the request, or quotes it.
		"messages.1.content.0: the tool said: prompt is too long: x tokens > y maximum", "messages.1.content.0: the tool said: too many tokens", "input[3]: context_length_exceeded",
		"litellm.BadRequestError: AnthropicException - messages.1.content.0: the tool said: context length exceeded",
		"tools.0.custom.name: String should have at most 64 characters", "messages: text content blocks must be non-empty",
		"Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
		"Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.",
		"messages.3.content.1.image.source.base64: image exceeds 5 MB maximum: 7000000 bytes > 5242880 bytes",
		"At least one of the image dimensions exceed max allowed size: 8000 pixels", "A maximum of 100 PDF pages may be provided.",
		"A maximum of 4 blocks with cache_control may be provided. Found 5.",

		// Everything else.
		"Overloaded", "", "model runner has unexpectedly stopped, this may be due to resource limitations", "The model `gpt-9` does not exist or you do not have access to it.",
		"Internal server error", "context deadline exceeded", "upstream request timeout: deadline exceeded while waiting for tokens", "Extra inputs are not permitted", "context_management: Extra inputs are not permitted",
		"Unrecognized request argument supplied: stream_options", "The request was blocked by the content filter.", "CUDA out of memory",
	} {
		for _, status := range []int{400, 422, 500} {
			if said, ok := wire.ReadOverflow(status, []byte(errorBody(t, "invalid_request_error", "invalid_value", message))); ok {
				t.Errorf("%q counts as an overflow: %+v", message, said)
			}
		}
	}
	for _, body := range []string{
		"", "{", "[]", "<html>prompt is too long</html>", `{"id":"1","choices":[{"message":{"content":"prompt is too long"}}]}`,
		`{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":"prompt is too long: 2000 tokens > 1000 maximum"}]}`,
	} {
		if _, ok := wire.ReadOverflow(400, []byte(body)); ok {
			t.Errorf("%q counts as an overflow", body)
		}
	}
}

func errorBody(t *testing.T, kind, code, message string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": kind, "code": code, "message": message}})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// shared returns a file of the shared data.
func shared(t *testing.T, parts ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(sharedtest.Path(t, parts...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
