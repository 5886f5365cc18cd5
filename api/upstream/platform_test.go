package upstream

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
)

// BenchmarkPlatformRequest measures the form of a platform, and its signature, beside a request without a platform.
func BenchmarkPlatformRequest(b *testing.B) {
	targets := map[string]Target{
		"plain": {Provider: tenants.ProviderAnthropic, BaseURL: "https://api.anthropic.com"}, "bedrock": onRuntime(),
		"google": {Provider: tenants.ProviderAnthropic, Platform: tenants.PlatformGoogle, BaseURL: "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5"},
		"aws":    {Provider: tenants.ProviderAnthropic, BaseURL: "https://aws-external-anthropic.us-east-1.api.aws", SignsFor: "us-east-1", Service: "aws-external-anthropic", Auth: tenants.AuthSigV4, Key: onRuntime().Key},
		"gemini": {Provider: tenants.ProviderGemini, BaseURL: "https://generativelanguage.googleapis.com"},
	}
	for _, name := range []string{"plain", "bedrock", "aws", "google", "gemini"} {
		for _, size := range []int{1, 800} {
			b.Run(fmt.Sprintf("%s/%dKB", name, size), func(b *testing.B) {
				target, path := targets[name], "/v1/messages"
				if name == "gemini" {
					path = "/v1beta/models/{model}:generateContent"
				}
				body := []byte(`{"model":"us.anthropic.claude-x","max_tokens":1,"stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("word \\n ", size*1024/8) + `"}]}`)
				for b.Loop() {
					asked, at, _, err := onPlatform(Request{Method: http.MethodPost, Path: path, Body: body}, target)
					if err != nil {
						b.Fatal(err)
					}
					request, _ := http.NewRequestWithContext(context.Background(), asked.Method, at.BaseURL+asked.Path, http.NoBody)
					if err := sign(context.Background(), request, asked.Body, at, time.Now()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkEventStream measures the events of a streamed answer of Amazon Bedrock as server-sent events.
func BenchmarkEventStream(b *testing.B) {
	event := fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, strings.Repeat("word ", 100))
	chunk := frame(b, `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(event))+`"}`, ":message-type", "event", ":event-type", "chunk")
	for _, size := range []int{1, 800} {
		b.Run(fmt.Sprintf("%dKB", size), func(b *testing.B) {
			stream := bytes.Repeat(chunk, max(1, size*1024/len(chunk)))
			for b.Loop() {
				response := opened(io.NopCloser(bytes.NewReader(stream)))
				if _, err := io.Copy(io.Discard, response.Body); err != nil {
					b.Fatal(err)
				}
				_ = response.Body.Close()
			}
		})
	}
}
