package upstream

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
)

func onRuntime() Target {
	return Target{
		Provider: tenants.ProviderAnthropic, Platform: tenants.PlatformBedrock, BaseURL: "https://bedrock-runtime.us-east-1.amazonaws.com",
		SignsFor: "us-east-1", Auth: tenants.AuthSigV4, Key: "AKIAIOSFODNN7EXAMPLE:secret",
	}
}

func TestBedrockRequestsHaveTheirOwnForm(t *testing.T) {
	t.Parallel()
	const version = `"anthropic_version":"bedrock-2023-05-31"`
	for name, test := range map[string]struct{ beta, body, path, want string }{
		"plain":            {"", `{"model":"m","a":1}`, "/model/m/invoke", `{` + version + `,"a":1}`},
		"streamed":         {"", `{"a":[{"model":"x"}],"stream": true , "model":"m"}`, "/model/m/invoke-with-response-stream", `{` + version + `,"a":[{"model":"x"}]}`},
		"not streamed":     {"", `{"model":"m","stream":false}`, "/model/m/invoke", `{` + version + `}`},
		"arn":              {"", `{"model":"arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.x"}`, "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.anthropic.x/invoke", `{` + version + `}`},
		"betas":            {"context-1m-2025-08-07, unknown-2020-01-01,effort-2025-11-24", `{"model":"m"}`, "/model/m/invoke", `{` + version + `,"anthropic_beta":["context-1m-2025-08-07","effort-2025-11-24"]}`},
		"of the platform":  {"context-1m-2025-08-07", `{"model":"m",` + version + `,"anthropic_beta":["context-1m-2025-08-07","new"]}`, "/model/m/invoke", `{` + version + `,"anthropic_beta":["context-1m-2025-08-07","new"]}`},
		"one feature more": {"effort-2025-11-24", `{"model":"m",` + version + `,"anthropic_beta":["new"]}`, "/model/m/invoke", `{"anthropic_beta":["new","effort-2025-11-24"],` + version + `}`},
	} {
		got, _, err := bedrock{}.rewrite(Request{Method: http.MethodPost, Path: "/v1/messages?beta=true", Header: http.Header{"Anthropic-Beta": {test.beta}}, Body: []byte(test.body)}, onRuntime())
		if err != nil || got.Path != test.path || string(got.Body) != test.want {
			t.Errorf("%s: %s %s, %v, want %s %s", name, got.Path, got.Body, err, test.path, test.want)
		}
	}
}

func TestBedrockCountsTokensOfModels(t *testing.T) {
	t.Parallel()
	got, _, err := bedrock{}.rewrite(Request{Method: http.MethodPost, Path: "/v1/messages/count_tokens", Body: []byte(`{"model":"us.anthropic.claude-x-v1:0","a":1}`)}, onRuntime())
	want := `{"input":{"invokeModel":{"body":"` + base64.StdEncoding.EncodeToString([]byte(`{"anthropic_version":"bedrock-2023-05-31","max_tokens":1,"a":1}`)) + `"}}}`
	if err != nil || got.Path != "/model/anthropic.claude-x-v1%3A0/count-tokens" || string(got.Body) != want {
		t.Errorf("%s %s, %v", got.Path, got.Body, err)
	}
}

// Lists of models are asked at the control plane, and other paths of Anthropic's API are refused with a reason.
func TestBedrockServesListsAndRefusesOtherPaths(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/v1/models?limit=1000": "/inference-profiles?maxResults=1000&type=SYSTEM_DEFINED", "/v1/models/us.anthropic.x": "/inference-profiles/us.anthropic.x",
		"/foundation-models?byProvider=anthropic": "/foundation-models?byProvider=anthropic",
	} {
		got, target, err := bedrock{}.rewrite(Request{Method: http.MethodGet, Path: path}, onRuntime())
		if err != nil || got.Path != want || target.BaseURL != "https://bedrock.us-east-1.amazonaws.com" {
			t.Errorf("%s: %s at %s, %v", path, got.Path, target.BaseURL, err)
		}
	}
	for _, path := range []string{"/v1/files", "/v1/messages/batches", "/guardrails"} {
		if _, _, err := (bedrock{}).rewrite(Request{Method: http.MethodGet, Path: path}, onRuntime()); err == nil || !strings.Contains(err.Error(), "is not served by Amazon Bedrock") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
