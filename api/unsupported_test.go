package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// Claude Code set up for Bedrock or Vertex, Gemini's clients, and others: nothing of what
// they send reaches a provider, and each reads an error in the shape that it knows.
func TestAPIsThatAreNotSupportedAreRefusedInTheirShape(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	p := setup(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for _, test := range []struct{ method, path, platform, message string }{
		{"POST", "/model/us.anthropic.claude-opus-5-5/invoke-with-response-stream", "Amazon Bedrock", "message"},
		{"POST", "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/invoke", "Amazon Bedrock", "message"},
		{"GET", "/inference-profiles?type=SYSTEM_DEFINED", "Amazon Bedrock", "message"},
		{"POST", "/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-opus-5-5:streamRawPredict", "Google Vertex AI", "error.message"},
		{"POST", "/v1beta/models/gemini-3-pro:generateContent", "the Gemini API", "error.message"},
		{"GET", "/v1beta/models", "the Gemini API", "error.message"},
		{"POST", "/openai/deployments/gpt/chat/completions?api-version=2026-01-01", "Azure OpenAI", "error.message"},
		{"POST", "/api/generate", "Ollama", "error.message"},
		{"POST", "/v1/model/m/invoke", "Amazon Bedrock", "message"},
		{"POST", "/v1/v1beta/models/g:generateContent", "the Gemini API", "error.message"},
		{"POST", "/v1/v1beta1/projects/p/x", "Google Vertex AI", "error.message"},
		{"POST", "/v1/publishers/google/models/g:generateContent", "Google Vertex AI", "error.message"},
		{"POST", "/v1/projects", "Google Vertex AI", "error.message"},
		{"POST", "/v1/openai/deployments/gpt/chat/completions", "Azure OpenAI", "error.message"},
		{"POST", "/v1/api/chat", "Ollama", "error.message"},
	} {
		answered := p.send(test.method, test.path, `{"messages":[]}`)
		var body map[string]any
		if err := json.Unmarshal(answered.body, &body); err != nil {
			t.Errorf("%s: %v: %s", test.path, err, answered.body)
			continue
		}
		if inner, nested := strings.CutPrefix(test.message, "error."); nested {
			body, _ = body["error"].(map[string]any)
			test.message = inner
		}
		said, _ := body[test.message].(string)
		if answered.status != http.StatusNotFound || !strings.HasPrefix(said, test.platform+" is not supported. ") || !strings.Contains(said, "/v1/messages") {
			t.Errorf("%s: status %d: %s", test.path, answered.status, answered.body)
		}
	}
	if asked.Load() > 0 {
		t.Errorf("the provider was asked %d times", asked.Load())
	}
}
