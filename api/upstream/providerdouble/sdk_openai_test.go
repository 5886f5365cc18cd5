package providerdouble_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
)

const (
	gpt      = "gpt-5.6-sol"
	twoCalls = "please\ncall tool read {\"path\": \"a<b>.go\"}\ncall tool read {\"path\": \"ü\"}"
)

func openaiClient(server *providertest.Server, options ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL(server.URL + "/v1"), option.WithAPIKey("sk-test"), option.WithMaxRetries(0),
	}, options...)...)
}

func chatAsk(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    gpt,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.DeveloperMessage("be brief"), openai.UserMessage(text)},
		Tools:    []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "read"})},
	}
}

func responsesAsk(text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: gpt, Instructions: openai.String("be brief"),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
			responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleUser),
		}},
		Reasoning: shared.ReasoningParam{Effort: shared.ReasoningEffortHigh},
		Include:   []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
		Tools:     []responses.ToolUnionParam{responses.ToolParamOfFunction("read", map[string]any{"type": "object"}, false)},
	}
}

func TestChatSDKCompletesAToolCall(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{Key: "sk-test"})
	client := openaiClient(server)
	request := chatAsk(twoCalls)
	first, err := client.Chat.Completions.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	calls := first.Choices[0].Message.ToolCalls
	if len(calls) != 2 || first.Choices[0].FinishReason != "tool_calls" || calls[0].Function.Arguments != `{"path": "a<b>.go"}` {
		t.Fatalf("first answer is %s", first.RawJSON())
	}
	request.Messages = append(request.Messages, first.Choices[0].Message.ToParam(),
		openai.ToolMessage("one", calls[0].ID), openai.ToolMessage("two", calls[1].ID))
	second, err := client.Chat.Completions.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if got := second.Choices[0].Message.Content; got != "Read 2 tool results; the last one begins: two" {
		t.Fatalf("second answer is %q", got)
	}
	if second.Usage.PromptTokens <= first.Usage.PromptTokens || second.Usage.TotalTokens != second.Usage.PromptTokens+second.Usage.CompletionTokens {
		t.Fatalf("usage is %+v after %+v", second.Usage, first.Usage)
	}
}

func TestChatSDKStreamsAndSeesUsageOnlyOnRequest(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	client := openaiClient(server)
	for _, wanted := range []bool{false, true} {
		request := chatAsk(twoCalls)
		if wanted {
			request.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
		}
		stream := client.Chat.Completions.NewStreaming(t.Context(), request)
		var answer openai.ChatCompletionAccumulator
		usages := 0
		for stream.Next() {
			chunk := stream.Current()
			if chunk.Usage.TotalTokens > 0 {
				usages++
			}
			answer.AddChunk(chunk)
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		if calls := answer.Choices[0].Message.ToolCalls; len(calls) != 2 || calls[1].Function.Arguments != `{"path": "ü"}` || calls[1].ID == "" {
			t.Fatalf("answer is %+v", answer.Choices[0].Message)
		}
		if (usages == 1) != wanted {
			t.Fatalf("%d chunks with usage, wanted is %v", usages, wanted)
		}
	}
}

func TestResponsesSDKCompletesAToolCallWithReasoning(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{Key: "sk-test"})
	client := openaiClient(server)
	request := responsesAsk(twoCalls)
	request.Store = openai.Bool(false)
	first, err := client.Responses.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Output) != 3 || first.Output[0].Type != "reasoning" || first.Usage.OutputTokensDetails.ReasoningTokens == 0 {
		t.Fatalf("first answer is %s", first.RawJSON())
	}
	list := request.Input.OfInputItemList
	for _, item := range first.Output {
		list = append(list, param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(item.RawJSON())))
	}
	list = append(list, outputOf(first.Output[1].CallID, "one"),
		outputOf(first.Output[2].CallID, "two"))
	request.Input.OfInputItemList = list
	second, err := client.Responses.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if got := second.OutputText(); got != "Read 2 tool results; the last one begins: two" {
		t.Fatalf("second answer is %q", got)
	}
}

func TestResponsesSDKStreamsEveryEventInOrder(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	client := openaiClient(server)
	stream := client.Responses.NewStreaming(t.Context(), responsesAsk(twoCalls))
	var names []string
	sequence := int64(0)
	var last responses.ResponseStreamEventUnion
	for stream.Next() {
		last = stream.Current()
		if last.SequenceNumber != sequence {
			t.Fatalf("event %s has number %d, want %d", last.Type, last.SequenceNumber, sequence)
		}
		sequence++
		if len(names) == 0 || names[len(names)-1] != last.Type {
			names = append(names, last.Type)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	want := "created in_progress output_item.added reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done output_item.done " +
		"output_item.added function_call_arguments.delta function_call_arguments.done output_item.done output_item.added function_call_arguments.delta function_call_arguments.done output_item.done completed"
	if got := strings.ReplaceAll(strings.Join(names, " "), "response.", ""); got != want {
		t.Fatalf("events are\n%s\nwant\n%s", got, want)
	}
	if last.Response.Usage.TotalTokens == 0 || last.Response.Output[1].AsFunctionCall().Name != "read" {
		t.Fatalf("last event is %s", last.RawJSON())
	}
}

func TestResponsesSDKContinuesAStoredConversation(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	client := openaiClient(server)
	first, err := client.Responses.New(t.Context(), responsesAsk("call tool read {}"))
	if err != nil {
		t.Fatal(err)
	}
	request := responsesAsk("unused")
	request.PreviousResponseID = openai.String(first.ID)
	request.Input.OfInputItemList = responses.ResponseInputParam{outputOf(first.Output[1].CallID, "stored")}
	second, err := client.Responses.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if got := second.OutputText(); got != "Read 1 tool results; the last one begins: stored" {
		t.Fatalf("second answer is %q", got)
	}
	if again, getErr := client.Responses.Get(t.Context(), second.ID, responses.ResponseGetParams{}); getErr != nil || again.OutputText() != second.OutputText() {
		t.Fatalf("stored answer is %v, %v", again, getErr)
	}
	if err = client.Responses.Delete(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	_, err = client.Responses.New(t.Context(), request)
	if failure := failureOf(t, err); failure.Code != "previous_response_not_found" {
		t.Fatalf("error is %v", err)
	}
}

func outputOf(call, text string) responses.ResponseInputItemUnionParam {
	item := responses.ResponseInputItemParamOfFunctionCallOutput(text)
	item.OfFunctionCallOutput.CallID = openai.String(call)
	return item
}

func failureOf(t *testing.T, err error) *openai.Error {
	t.Helper()
	var failure *openai.Error
	if !errors.As(err, &failure) {
		t.Fatalf("error is %v", err)
	}
	return failure
}

func TestOpenAISDKSeesErrors(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{Key: "sk-test"})
	for name, test := range map[string]struct {
		options []option.RequestOption
		model   string
		size    int
		status  int
		code    string
	}{
		"wrong key":   {options: []option.RequestOption{option.WithAPIKey("sk-other-key")}, status: 401, code: "invalid_api_key"},
		"workspace":   {options: []option.RequestOption{option.WithAPIKey("plm_live_x")}, status: 401, code: "invalid_api_key"},
		"no model":    {model: "gpt-none", status: 404, code: "model_not_found"},
		"rate limit":  {options: openaiMisbehave("429"), status: 429, code: "rate_limit_exceeded"},
		"overloaded":  {options: openaiMisbehave("529"), status: 503, code: "server_is_overloaded"},
		"failure":     {options: openaiMisbehave("500"), status: 500},
		"too long":    {size: 4_000_000, status: 400, code: "context_length_exceeded"},
		"over 32 MiB": {size: 32 << 20, status: 413, code: "request_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := openaiClient(server, test.options...)
			chat, resp := chatAsk(strings.Repeat("x", test.size)), responsesAsk(strings.Repeat("x", test.size))
			if test.model != "" {
				chat.Model, resp.Model = test.model, test.model
			}
			_, chatErr := client.Chat.Completions.New(t.Context(), chat)
			_, respErr := client.Responses.New(t.Context(), resp)
			for _, err := range []error{chatErr, respErr} {
				if failure := failureOf(t, err); failure.StatusCode != test.status || failure.Code != test.code || failure.Message == "" {
					t.Fatalf("answer is %d %s", failure.StatusCode, failure.RawJSON())
				}
			}
		})
	}
}

func openaiMisbehave(how string) []option.RequestOption {
	return []option.RequestOption{option.WithHeader(providerdouble.MisbehaveHeader, how)}
}

func TestOpenAISDKNoticesABrokenStream(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	for _, how := range []string{"cut", "midstream-error"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			client := openaiClient(server, openaiMisbehave(how)...)
			chat := client.Chat.Completions.NewStreaming(t.Context(), chatAsk("hello"))
			events := 0
			for chat.Next() {
				events++
			}
			if err := chat.Err(); err == nil || events < 2 {
				t.Fatalf("chat stream ended after %d events with %v", events, err)
			}
			resp := client.Responses.NewStreaming(t.Context(), responsesAsk("hello"))
			last := ""
			for resp.Next() {
				last = resp.Current().Type
			}
			if err := resp.Err(); err == nil && last != "error" {
				t.Fatalf("responses stream ended with event %s and no error", last)
			}
		})
	}
}

func TestResponsesSDKSeesAnOverflowInsideTheStream(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	client := openaiClient(server, openaiMisbehave(providerdouble.MisbehaveOverflowLate)...)
	stream := client.Responses.NewStreaming(t.Context(), responsesAsk("hello"))
	var last responses.ResponseStreamEventUnion
	for stream.Next() {
		last = stream.Current()
	}
	if last.Type != "response.failed" || last.Response.Error.Code != "context_length_exceeded" {
		t.Fatalf("stream ended with %s, %v", last.RawJSON(), stream.Err())
	}
}

func TestOpenAIModelsAndEmbeddingsAnswer(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	client := openaiClient(server)
	page, err := client.Models.List(t.Context())
	if err != nil || len(page.Data) == 0 || strings.HasPrefix(page.Data[0].ID, "claude") {
		t.Fatalf("models are %+v, %v", page, err)
	}
	if _, err = client.Models.Get(t.Context(), "gpt-none"); failureOf(t, err).StatusCode != http.StatusNotFound {
		t.Fatalf("error is %v", err)
	}
	answer, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
		Model: "text-embedding-3-small", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"the red fox", "a red fox", "seventeen ships"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	near, far := product(answer.Data[0].Embedding, answer.Data[1].Embedding), product(answer.Data[0].Embedding, answer.Data[2].Embedding)
	if near <= far || near > 1.0001 {
		t.Fatalf("related texts are %f alike, unrelated ones %f", near, far)
	}
}

func product(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
