package providerdouble

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Clouds record each request once and as it came, also those that they refuse before the models have seen them.
func TestCloudsRecordRequestsAsTheyCame(t *testing.T) {
	t.Parallel()
	const bedrockPath, foundryPath = "/model/anthropic.claude-sonnet-4-5-20250929-v1:0/invoke", "/anthropic/v1/messages"
	bedrock := NewBedrock(BedrockConfig{Keys: []string{"right"}})
	cloud, err := NewCloud(CloudConfig{Keys: []string{"right"}})
	if err != nil {
		t.Fatal(err)
	}
	message := `"max_tokens": 9, "messages":[{"role":"user","content":"Hello"}]}`
	for _, test := range []struct {
		handler         http.Handler
		models          *Double
		path, key, body string
		status          int
	}{
		{bedrock, bedrock.Models, bedrockPath, "right", `{ "anthropic_version":"bedrock-2023-05-31",` + message, http.StatusOK},
		{bedrock, bedrock.Models, bedrockPath, "wrong", `{ "anthropic_version":"bedrock-2023-05-31",` + message, http.StatusForbidden},
		{bedrock, bedrock.Models, bedrockPath, "right", `{ "model":"x",` + message, http.StatusBadRequest},
		{bedrock, bedrock.Models, bedrockPath, "right", `{ "anthropic_version":"bedrock-2023-05-31","unknown":1,` + message, http.StatusBadRequest},
		{cloud, cloud.Models, foundryPath, "right", `{ "model":"claude-sonnet-4-5",` + message, http.StatusOK},
		{cloud, cloud.Models, foundryPath, "wrong", `{ "model":"claude-sonnet-4-5",` + message, http.StatusUnauthorized},
	} {
		test.models.Reset()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, test.path, strings.NewReader(test.body))
		request.Header.Set("Authorization", "Bearer "+test.key)
		request.Header.Set("X-Api-Key", test.key)
		request.Header.Set("Anthropic-Version", "2023-06-01")
		answer := httptest.NewRecorder()
		test.handler.ServeHTTP(answer, request)
		got := test.models.Requests()
		if answer.Code != test.status || len(got) != 1 || got[0].Status != test.status || got[0].Path != test.path || string(got[0].Body) != test.body ||
			(got[0].Invalid == nil) != (test.status == http.StatusOK) || !got[0].Done || got[0].Header.Get("X-Api-Key") != test.key {
			t.Errorf("%s %s: %d %s, recorded %+v", test.path, test.key, answer.Code, answer.Body, got)
		}
	}
}
