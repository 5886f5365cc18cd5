package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"palimpsest/tenants"
)

// Claude Code's gateway contract: the headers that a gateway must forward reach every cloud unchanged, and the client's key
// doesn't.
func TestClaudeCodesHeadersReachEveryCloud(t *testing.T) {
	t.Parallel()
	sent := map[string]string{
		"Content-Type": "application/json", "Accept": "application/json", "Anthropic-Version": "2023-06-01", "User-Agent": "claude-cli/2.1.332 (external, cli)", "X-App": "cli",
		"Anthropic-Beta": "claude-code-20250219,future-feature-2027-01-01", "X-Stainless-Retry-Count": "0", "X-Stainless-Timeout": "600", "X-Claude-Code-Session-Id": "5eed",
	}
	var header []string
	for name, value := range sent {
		header = append(header, name, value)
	}
	for _, cloud := range []struct {
		preset, base, path string
		auth               tenants.Auth
		secret             string
	}{
		{"google", googleBase, "/projects/p/locations/l/publishers/anthropic/models/" + googleModel + ":rawPredict", tenants.AuthGoogle, ""},
		{"foundry", "/anthropic", "/anthropic/v1/messages?beta=true", tenants.AuthXAPIKey, cloudKey},
		{"claude-aws", "", "/v1/messages?beta=true", tenants.AuthSigV4, accessKey + ":" + accessSecret},
	} {
		p, double := onCloud(t, cloud.preset, cloud.base, cloud.auth, cloud.secret)
		body := `{"model":"` + claudeModel + `",` + greeting + `}`
		if cloud.preset == "google" {
			body = `{"anthropic_version":"vertex-2023-10-16",` + greeting + `}`
		}
		if got := p.send(http.MethodPost, cloud.path, body, header...); got.status != http.StatusOK {
			t.Fatalf("%s: %d %s", cloud.preset, got.status, got.body)
		}
		received := double.Models.Requests()[0].Header
		for name, want := range sent {
			if got := received.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", cloud.preset, name, got, want)
			}
		}
		for name, values := range received {
			if strings.Contains(strings.Join(values, " "), testKey) {
				t.Errorf("%s: %s holds the client's key", cloud.preset, name)
			}
		}
	}
}

// Claude Code's gateway contract: it recovers from a refused capability by the provider's words, or by the token
// capability_rejected of another gateway. Both reach it byte for byte, after one request.
func TestRefusedCapabilitiesReachTheClientInTheirWords(t *testing.T) {
	t.Parallel()
	for _, said := range []string{
		"messages.3: role: system is not supported in the middle of a conversation", "capability_rejected: mid_conv_system",
		"messages.0.content.0.cache_control: Extra inputs are not permitted", "capability_rejected: cache_control_field",
		"thinking.type: adaptive thinking is not supported on this model", "capability_rejected: thinking_type:adaptive",
		"output_config.format: Extra inputs are not permitted", "capability_rejected: structured_outputs_unsupported",
		"This model does not support the effort parameter", "capability_rejected: effort_unsupported",
		"Too much media: 90 document pages + 20 images > 100", "capability_rejected: media_budget",
		"Could not process image", "capability_rejected: image_block", "Could not process PDF", "capability_rejected: document_block",
		"Unexpected value(s) `new-2027-01-01` for the `anthropic-beta` header", "capability_rejected: beta_header:new-2027-01-01",
	} {
		refusal, err := json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": "invalid_request_error", "message": said}, "request_id": "req_1"})
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		p := setup(t, func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Should-Retry", "false")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(refusal)
		})
		got := p.send(http.MethodPost, "/v1/messages", `{"model":"claude-opus-5-5",`+greeting+`}`)
		if got.status != http.StatusBadRequest || !bytes.Equal(got.body, refusal) || got.header.Get("X-Should-Retry") != "false" || asked != 1 {
			t.Errorf("%s: %d %s after %d requests", said, got.status, got.body, asked)
		}
	}
}

// Claude Code's gateway contract: a gateway without a list of models answers 404, and lists those that it knows.
func TestCloudsWithoutAListOfModelsListNamedOnes(t *testing.T) {
	t.Parallel()
	for _, preset := range []string{"google", "foundry"} {
		known, _ := tenants.PresetOf(preset)
		p, double := onCloud(t, preset, googleBase, known.Auth, "")
		if got := p.send(http.MethodGet, "/v1/models?limit=1000", ""); got.status != http.StatusNotFound || !bytes.Contains(got.body, []byte("has no list of models")) {
			t.Errorf("%s: %d %s", preset, got.status, got.body)
		}
		p.store.mu.Lock()
		key := p.store.keys[0]
		key.Models = []string{"claude-*", googleModel, "claude-opus-4-6"}
		p.store.keys = []tenants.ProviderKey{key}
		p.store.mu.Unlock()
		p.Settings.ForgetAll()
		got := p.send(http.MethodGet, "/v1/models?limit=1000", "", "Anthropic-Version", "2023-06-01")
		var list struct{ Data []struct{ ID string } }
		if err := json.Unmarshal(got.body, &list); err != nil || got.status != http.StatusOK || len(list.Data) != 2 || list.Data[0].ID != googleModel || len(double.Models.Requests()) != 0 {
			t.Errorf("%s: %d %s, asked %d times", preset, got.status, got.body, len(double.Models.Requests()))
		}
	}
}

// Claude Code's gateway contract: refusals of the gateway have Anthropic's types, and say whether to try again.
func TestRefusalsOfTheGatewayAreAnthropics(t *testing.T) {
	t.Parallel()
	p := setup(t, func(http.ResponseWriter, *http.Request) { t.Error("a provider was asked") })
	for name, test := range map[string]struct {
		got    answer
		status int
		kind   string
	}{
		"no key":     {p.send(http.MethodPost, "/v1/messages", `{}`, "Authorization", "none"), 401, "authentication_error"},
		"other key":  {p.send(http.MethodPost, "/v1/messages", `{}`, "Authorization", "Bearer plm_unknown"), 401, "authentication_error"},
		"plan":       {p.send(http.MethodPost, "/v1/messages", `{}`, "Authorization", "Bearer sk-ant-oat01-abc"), 403, "permission_error"},
		"broken":     {p.send(http.MethodPost, "/v1/messages", `{"model":`), 400, "invalid_request_error"},
		"large":      {p.send(http.MethodPost, "/v1/messages", strings.Repeat(" ", 33<<20)), 413, "request_too_large"},
		"bad method": {p.send("TRACE", "/v1/messages", ``), 405, "invalid_request_error"},
	} {
		var said struct {
			Type  string
			Error struct{ Type, Message string }
		}
		if err := json.Unmarshal(test.got.body, &said); err != nil || test.got.status != test.status || said.Type != "error" || said.Error.Type != test.kind || said.Error.Message == "" {
			t.Errorf("%s: %d %s", name, test.got.status, test.got.body)
		}
		if retry := test.got.header.Values("X-Should-Retry"); !slices.Equal(retry, []string{"false"}) {
			t.Errorf("%s: x-should-retry is %q", name, retry)
		}
	}
}
