package main

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"palimpsest/api/upstream/providerdouble"
)

func TestAnthropicSDKThroughTheProxy(t *testing.T) {
	t.Parallel()
	w := start(t, providerdouble.Config{}).tenant("sdk")
	client := anthropic.NewClient(anthropicoption.WithBaseURL(w.url("")), anthropicoption.WithAPIKey(w.key), anthropicoption.WithMaxRetries(0))
	ask := func(text string) anthropic.MessageNewParams {
		return anthropic.MessageNewParams{
			Model: "claude-sonnet-4-5", MaxTokens: 1000,
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
			Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
				Name: "Read", InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"path": map[string]any{"type": "string"}}},
			}}},
		}
	}

	t.Run("text", func(t *testing.T) {
		answer, err := client.Messages.New(t.Context(), ask("good morning"))
		if err != nil {
			t.Fatal(err)
		}
		if text := answer.Content[0].Text; !strings.Contains(text, "good morning") {
			t.Errorf("answer %q", text)
		}
		if answer.Usage.InputTokens == 0 {
			t.Error("no usage reported")
		}
	})
	t.Run("stream", func(t *testing.T) {
		stream := client.Messages.NewStreaming(t.Context(), ask("good evening"))
		var whole anthropic.Message
		for stream.Next() {
			if err := whole.Accumulate(stream.Current()); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		if text := whole.Content[0].Text; !strings.Contains(text, "good evening") || whole.StopReason != anthropic.StopReasonEndTurn {
			t.Errorf("answer %q, stop reason %s", text, whole.StopReason)
		}
	})
	t.Run("tool call and its result", func(t *testing.T) {
		params := ask(`call tool Read {"path":"a.txt"}`)
		answer, err := client.Messages.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		var call anthropic.ToolUseBlock
		for _, block := range answer.Content {
			if block.Type == "tool_use" {
				call = block.AsToolUse()
			}
		}
		if call.Name != "Read" || answer.StopReason != anthropic.StopReasonToolUse {
			t.Fatalf("no call in %s", answer.RawJSON())
		}
		params.Messages = append(params.Messages, answer.ToParam(),
			anthropic.NewUserMessage(anthropic.NewToolResultBlock(call.ID, "the content of a.txt", false)))
		answer, err = client.Messages.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		if text := answer.Content[0].Text; !strings.Contains(text, "the content of a.txt") {
			t.Errorf("answer %q", text)
		}
	})
	t.Run("provider's error", func(t *testing.T) {
		_, err := client.Messages.New(t.Context(), ask("x"), anthropicoption.WithHeader("x-double-misbehave", "529"))
		var failure *anthropic.Error
		if !errors.As(err, &failure) || failure.StatusCode != 529 || !strings.Contains(failure.RawJSON(), "overloaded_error") {
			t.Errorf("error %v, want the provider's 529", err)
		}
	})
	t.Run("our error", func(t *testing.T) {
		_, err := client.Messages.New(t.Context(), ask("x"), anthropicoption.WithAPIKey("plm_wrong"))
		var failure *anthropic.Error
		if !errors.As(err, &failure) || failure.StatusCode != http.StatusUnauthorized || !strings.Contains(failure.RawJSON(), "authentication_error") {
			t.Errorf("error %v, want our 401", err)
		}
	})
}

func TestOpenAISDKThroughTheProxy(t *testing.T) {
	t.Parallel()
	w := start(t, providerdouble.Config{}).tenant("sdk")
	client := openai.NewClient(openaioption.WithBaseURL(w.url("/v1")), openaioption.WithAPIKey(w.key), openaioption.WithMaxRetries(0))

	t.Run("chat", func(t *testing.T) {
		params := openai.ChatCompletionNewParams{
			Model:    "gpt-5.5",
			Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(`call tool Read {"path":"a.txt"}`)},
			Tools:    []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "Read"})},
		}
		answer, err := client.Chat.Completions.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		message := answer.Choices[0].Message
		if len(message.ToolCalls) != 1 || message.ToolCalls[0].Function.Name != "Read" {
			t.Fatalf("no call in %s", answer.RawJSON())
		}
		params.Messages = append(params.Messages, message.ToParam(), openai.ToolMessage("the content of a.txt", message.ToolCalls[0].ID))
		answer, err = client.Chat.Completions.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		if text := answer.Choices[0].Message.Content; !strings.Contains(text, "the content of a.txt") {
			t.Errorf("answer %q", text)
		}
	})
	t.Run("chat stream", func(t *testing.T) {
		stream := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
			Model: "gpt-5.5", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("good evening")},
			StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
		})
		var whole openai.ChatCompletionAccumulator
		for stream.Next() {
			whole.AddChunk(stream.Current())
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		if text := whole.Choices[0].Message.Content; !strings.Contains(text, "good evening") || whole.Usage.PromptTokens == 0 {
			t.Errorf("answer %q, usage %+v", text, whole.Usage)
		}
	})
	t.Run("responses", func(t *testing.T) {
		answer, err := client.Responses.New(t.Context(), responses.ResponseNewParams{
			Model: "gpt-5.5", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("good morning")},
		})
		if err != nil {
			t.Fatal(err)
		}
		if text := answer.OutputText(); !strings.Contains(text, "good morning") || answer.Usage.InputTokens == 0 {
			t.Errorf("answer %q, usage %+v", text, answer.Usage)
		}
	})
	t.Run("responses stream", func(t *testing.T) {
		stream := client.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{
			Model: "gpt-5.5", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("good evening")},
		})
		var text strings.Builder
		completed := false
		for stream.Next() {
			event := stream.Current()
			text.WriteString(event.Delta)
			completed = completed || event.Type == "response.completed"
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "good evening") || !completed {
			t.Errorf("answer %q, completed %v", text.String(), completed)
		}
	})
	t.Run("our error", func(t *testing.T) {
		_, err := client.Responses.New(t.Context(), responses.ResponseNewParams{Model: "gpt-5.5"}, openaioption.WithAPIKey("plm_wrong"))
		var failure *openai.Error
		if !errors.As(err, &failure) || failure.StatusCode != http.StatusUnauthorized || failure.Code != "invalid_api_key" {
			t.Errorf("error %v, want our 401", err)
		}
	})
	t.Run("provider's error", func(t *testing.T) {
		_, err := client.Responses.New(t.Context(), responses.ResponseNewParams{
			Model: "gpt-5.5", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("x")},
		}, openaioption.WithHeader("x-double-misbehave", "429"))
		var failure *openai.Error
		if !errors.As(err, &failure) || failure.StatusCode != http.StatusTooManyRequests || failure.Response.Header.Get("Retry-After") == "" {
			t.Errorf("error %v, want the provider's 429 with its retry-after", err)
		}
	})
}
