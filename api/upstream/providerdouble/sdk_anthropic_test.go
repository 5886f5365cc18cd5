package providerdouble_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
)

func anthropicClient(server *providertest.Server, options ...option.RequestOption) anthropic.Client {
	return anthropic.NewClient(append([]option.RequestOption{
		option.WithBaseURL(server.URL), option.WithAPIKey("sk-ant-test"), option.WithMaxRetries(0),
	}, options...)...)
}

func ask(model anthropic.Model, text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: model, MaxTokens: 4096,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: "read", InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]string{}},
		}}},
	}
}

func TestAnthropicSDKGetsText(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{Key: "sk-ant-test"})
	client := anthropicClient(server)
	answer, err := client.Messages.New(t.Context(), ask("claude-sonnet-4-5", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.Content[0].Text; got != "You said: hello" || answer.StopReason != "end_turn" {
		t.Fatalf("answer is %q, stopped by %s", got, answer.StopReason)
	}
	if answer.Usage.InputTokens == 0 || answer.Usage.OutputTokens == 0 || !strings.HasPrefix(answer.ID, "msg_01") {
		t.Fatalf("usage %+v, id %s", answer.Usage, answer.ID)
	}
}

func TestAnthropicSDKCompletesAToolCallInAStream(t *testing.T) {
	t.Parallel()
	for _, model := range []anthropic.Model{"claude-sonnet-4-5", "claude-opus-4-8", "claude-opus-5-5"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewServer(t, providerdouble.Config{BindThinking: true})
			client := anthropicClient(server)
			request := ask(model, "please\ncall tool read {\"path\": \"a<b>.go\"}\ncall tool read {\"path\": \"ü\"}")
			request.Thinking = thinkingFor(model)
			first := streamed(t, client, request)
			if first.StopReason != "tool_use" || len(first.Content) != 3 || first.Content[0].Type != "thinking" {
				t.Fatalf("first answer is %s %s", first.StopReason, first.RawJSON())
			}
			request.Messages = append(request.Messages, first.ToParam(), anthropic.NewUserMessage(
				anthropic.NewToolResultBlock(first.Content[1].ID, "one", false), anthropic.NewToolResultBlock(first.Content[2].ID, "two", true)))
			second := streamed(t, client, request)
			if got := second.Content[len(second.Content)-1].Text; !strings.Contains(got, "Read 2 tool results; the last one begins: two") {
				t.Fatalf("second answer is %q", got)
			}
			if n := server.Rejected(); n != 0 {
				t.Fatalf("%d requests refused", n)
			}
		})
	}
}

func thinkingFor(model anthropic.Model) anthropic.ThinkingConfigParamUnion {
	if model == "claude-sonnet-4-5" {
		return anthropic.ThinkingConfigParamOfEnabled(2048)
	}
	return anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{}}
}

func streamed(t *testing.T, client anthropic.Client, request anthropic.MessageNewParams) anthropic.Message {
	t.Helper()
	stream := client.Messages.NewStreaming(t.Context(), request)
	var answer anthropic.Message
	for stream.Next() {
		if err := answer.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestAnthropicSDKSeesErrorTypes(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{Key: "sk-ant-test"})
	for name, test := range map[string]struct {
		options []option.RequestOption
		change  func(*anthropic.MessageNewParams)
		status  int
		kind    string
		after   string
		retry   string
	}{
		"wrong key":    {options: []option.RequestOption{option.WithAPIKey("sk-ant-other")}, status: 401, kind: "authentication_error"},
		"workspace":    {options: []option.RequestOption{option.WithAPIKey("plm_live_x")}, status: 401, kind: "authentication_error"},
		"no model":     {change: func(p *anthropic.MessageNewParams) { p.Model = "claude-none" }, status: 404, kind: "not_found_error"},
		"rate limit":   {options: misbehave("429"), status: 429, kind: "rate_limit_error", after: "1", retry: "true"},
		"spend cap":    {options: misbehave("429-spend"), status: 429, kind: "rate_limit_error", retry: "false"},
		"overloaded":   {options: misbehave("529"), status: 529, kind: "overloaded_error", retry: "true"},
		"failure":      {options: misbehave("500"), status: 500, kind: "api_error", retry: "true"},
		"bad request":  {change: func(p *anthropic.MessageNewParams) { p.Messages = nil }, status: 400, kind: "invalid_request_error"},
		"too long":     {change: func(p *anthropic.MessageNewParams) { p.Messages[0] = long(900_000) }, status: 400, kind: "invalid_request_error"},
		"over 32 MiB":  {change: func(p *anthropic.MessageNewParams) { p.Messages[0] = long(32 << 20) }, status: 413, kind: "request_too_large"},
		"once too big": {options: misbehave("overflow-once"), status: 400, kind: "invalid_request_error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := ask("claude-sonnet-4-5", "hello "+name)
			if test.change != nil {
				test.change(&request)
			}
			client := anthropicClient(server, test.options...)
			_, err := client.Messages.New(t.Context(), request)
			var failure *anthropic.Error
			if !errors.As(err, &failure) {
				t.Fatalf("error is %v", err)
			}
			var body struct {
				Type  string `json:"type"`
				Error struct {
					Type string `json:"type"`
				} `json:"error"`
				ID string `json:"request_id"`
			}
			if unmarshal := json.Unmarshal([]byte(failure.RawJSON()), &body); unmarshal != nil {
				t.Fatal(unmarshal)
			}
			if failure.StatusCode != test.status || body.Type != "error" || body.Error.Type != test.kind || body.ID == "" {
				t.Fatalf("answer is %d %s", failure.StatusCode, failure.RawJSON())
			}
			header := failure.Response.Header
			if after, retry := header.Get("Retry-After"), header.Get("X-Should-Retry"); after != test.after || retry != test.retry {
				t.Fatalf("retry-after is %q, x-should-retry %q", after, retry)
			}
		})
	}
}

func misbehave(how string) []option.RequestOption {
	return []option.RequestOption{option.WithHeader(providerdouble.MisbehaveHeader, how)}
}

func long(size int) anthropic.MessageParam {
	return anthropic.NewUserMessage(anthropic.NewTextBlock(strings.Repeat("x", size)))
}

func TestAnthropicSDKNoticesABrokenStream(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	for how, words := range map[string]string{"cut": "unexpected", "midstream-error": "overloaded_error"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			client := anthropicClient(server, misbehave(how)...)
			stream := client.Messages.NewStreaming(t.Context(), ask("claude-sonnet-4-5", "hello"))
			events := 0
			for stream.Next() {
				events++
			}
			if err := stream.Err(); err == nil || !strings.Contains(err.Error(), words) || events < 3 {
				t.Fatalf("stream ended after %d events with %v", events, err)
			}
		})
	}
}

func TestCountTokensAnswersBeyondTheWindow(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{Window: 1000, TokensPerO200k: 1.5})
	client := anthropicClient(server)
	count, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{
		Model: "claude-opus-5-5", Messages: []anthropic.MessageParam{long(40_000)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := int64((10_000 + 3) * 3 / 2); count.InputTokens < want || count.InputTokens > want+1 {
		t.Fatalf("counted %d tokens, want about %d", count.InputTokens, want)
	}
}

func TestAnthropicModelsAreListed(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{Models: map[string]providerdouble.Model{"claude-test": {Window: 5, MaxOutput: 3}}})
	client := anthropicClient(server)
	page, err := client.Models.List(t.Context(), anthropic.ModelListParams{})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, model := range page.Data {
		ids[model.ID] = true
	}
	if !ids["claude-test"] || !ids["claude-opus-5-5"] || ids["gpt-4o"] {
		t.Fatalf("models are %v", ids)
	}
	one, err := client.Models.Get(t.Context(), "claude-opus-5-5", anthropic.ModelGetParams{})
	if err != nil || one.ID != "claude-opus-5-5" {
		t.Fatalf("model is %+v, %v", one, err)
	}
	_, err = client.Models.Get(t.Context(), "claude-none", anthropic.ModelGetParams{})
	var failure *anthropic.Error
	if !errors.As(err, &failure) || failure.StatusCode != http.StatusNotFound {
		t.Fatalf("error is %v", err)
	}
}
