package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/failover"
	"palimpsest/api/upstream"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

const (
	cloudKey    = "cloud-api-key-abcdefgh"
	googleModel = "claude-sonnet-4-5@20250929"
	claudeModel = "claude-sonnet-4-5-20250929"
	googleBase  = "/v1/projects/northbeam/locations/us-east5"
	entraSecret = "contoso:1b2c3d4e-app:secret~of:the.app"
)

// onCloud starts a proxy whose only provider key is made from a preset. The base URL is below the double of the
// clouds.
func onCloud(t testing.TB, preset, base string, auth tenants.Auth, secret string) (*proxy, *providertest.CloudServer) {
	t.Helper()
	double := providertest.NewCloud(t, providerdouble.CloudConfig{
		Config: providerdouble.Config{Window: 2_000_000}, Keys: []string{cloudKey}, Region: "us-west-2", Access: []providerdouble.BedrockAccess{{ID: accessKey, Secret: accessSecret}},
		Workspace: "wrkspc_1", Project: "northbeam", Location: "us-east5", Tenant: "contoso", App: "1b2c3d4e-app", AppSecret: "secret~of:the.app",
	})
	p := setupAt(t, double.URL)
	p.Upstream.(*upstream.Client).SignInAt(double.URL)
	if auth == tenants.AuthGoogle && secret == "" {
		secret = double.ServiceAccount(double.URL)
	}
	known, _ := tenants.PresetOf(preset)
	key := tenants.ProviderKey{
		ID: uuid.New(), Provider: known.Provider, Preset: preset, Name: preset, BaseURL: double.URL + base, Auth: auth, ProviderKeySecret: tenants.ProviderKeySecret{Sealed: []byte(secret)},
	}
	if known.Needs != "" {
		key.Region, key.Headers = "us-west-2", []tenants.Header{{Name: known.Needs, Value: "wrkspc_1"}}
	}
	p.store.keys = []tenants.ProviderKey{key}
	return p, double
}

// Clouds that take Messages below their own address get them byte for byte, with each way to sign in. Their own clients
// only change the address.
func TestCloudsWithMessagesGetThemUnchanged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		preset, base string
		auth         tenants.Auth
		secret       string
		paths        []string
		header       []string
	}{
		"Foundry, API key":         {"foundry", "/anthropic", tenants.AuthXAPIKey, cloudKey, []string{"/v1/messages", "/anthropic/v1/messages"}, []string{"Api-Key", testKey}},
		"Foundry, Entra ID":        {"foundry", "/anthropic", tenants.AuthEntra, entraSecret, []string{"/v1/messages", "/anthropic/v1/messages"}, nil},
		"AWS, API key":             {"claude-aws", "", tenants.AuthXAPIKey, cloudKey, []string{"/v1/messages"}, []string{"Anthropic-Workspace-Id", "wrkspc_of_the_client"}},
		"AWS, access key":          {"claude-aws", "", tenants.AuthSigV4, accessKey + ":" + accessSecret, []string{"/v1/messages"}, []string{"X-Amz-Date", "20200101T000000Z"}},
		"Anthropic's offer, token": {"claude-google", googleBase + "/workspaces/wrkspc_1/invoke", tenants.AuthGoogle, "", []string{"/v1/messages"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, double := onCloud(t, test.preset, test.base, test.auth, test.secret)
			body := `{"model": "` + claudeModel + `", "stream":true,` + greeting + `}`
			for _, path := range test.paths {
				got := p.send(http.MethodPost, path, body, append([]string{"Anthropic-Beta", "claude-code-20250219", "Anthropic-Version", "2023-06-01"}, test.header...)...)
				if got.status != http.StatusOK || !bytes.Contains(got.body, []byte("event: message_stop")) {
					t.Fatalf("%s: %d %s", path, got.status, got.body)
				}
			}
			if used := p.last(1); used.Tokens.Input == 0 || used.Cost.CostMicroUSD == 0 {
				t.Errorf("recorded %+v", used)
			}
			if counted := p.send(http.MethodPost, "/v1/messages/count_tokens", `{"model":"`+claudeModel+`","messages":[{"role":"user","content":"Hello"}]}`, "Anthropic-Version", "2023-06-01"); counted.status != http.StatusOK {
				t.Errorf("count: %d %s", counted.status, counted.body)
			}
			for _, got := range double.Models.Requests()[:len(test.paths)] {
				if string(got.Body) != body || got.Header.Get("Anthropic-Beta") != "claude-code-20250219" || strings.Contains(got.Header.Get("Authorization"), testKey) {
					t.Errorf("%s: %s %v", got.Path, got.Body, got.Header)
				}
			}
			if test.secret != "" && strings.Contains(p.log.String(), test.secret) || double.Asked() > 1 {
				t.Errorf("%d tokens asked for, log %s", double.Asked(), p.log)
			}
		})
	}
}

// Azure OpenAI takes requests at its v1 API and at the paths of deployments, with a key or a token.
func TestAzureOpenAITakesKeysAndTokens(t *testing.T) {
	t.Parallel()
	for _, sign := range []struct {
		auth   tenants.Auth
		secret string
	}{{tenants.AuthAPIKey, cloudKey}, {tenants.AuthEntra, entraSecret}} {
		for base, paths := range map[string][]string{
			"/openai/v1": {"/v1/chat/completions", "/v1/responses"}, "/openai/deployments/{model}?api-version=2024-10-21": {"/v1/chat/completions"},
		} {
			t.Run(string(sign.auth)+base, func(t *testing.T) {
				t.Parallel()
				p, double := onCloud(t, "azure", base, sign.auth, sign.secret)
				for _, path := range paths {
					body := `{"model":"gpt-5.6","messages":[{"role":"user","content":"Hello"}]}`
					if path == "/v1/responses" {
						body = `{"model":"gpt-5.6","input":"Hello"}`
					}
					if got := p.send(http.MethodPost, path, body); got.status != http.StatusOK || string(double.Models.Requests()[len(double.Models.Requests())-1].Body) != body {
						t.Errorf("%s: %d %s", path, got.status, got.body)
					}
				}
			})
		}
	}
}

// A client that speaks Messages reaches Google Cloud: the model moves into the path, and the rest stays as it is.
func TestGoogleKeyServesMessages(t *testing.T) {
	t.Parallel()
	p, double := onCloud(t, "google", googleBase, tenants.AuthGoogle, "")
	for _, stream := range []string{"", `"stream":true,`} {
		got := p.send(http.MethodPost, "/v1/messages?beta=true", `{"model":"`+googleModel+`",`+stream+greeting+`}`, "Anthropic-Beta", "context-1m-2025-08-07")
		if got.status != http.StatusOK || !bytes.Contains(got.body, []byte(`"type":"message`)) {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if used := p.last(2); used.Tokens.Input == 0 || used.Tokens.Output == 0 || used.Cost.CostMicroUSD == 0 || used.Request.Model != googleModel {
		t.Errorf("recorded %+v", used)
	}
	counted := p.send(http.MethodPost, "/v1/messages/count_tokens", `{"model":"`+googleModel+`","messages":[{"role":"user","content":"Hello"}]}`)
	if counted.status != http.StatusOK || !bytes.HasPrefix(counted.body, []byte(`{"input_tokens":`)) {
		t.Errorf("count: %d %s", counted.status, counted.body)
	}
	got := double.Models.Requests()
	if want := `{"anthropic_version":"vertex-2023-10-16",` + greeting + `}`; string(got[0].Body) != want || !strings.HasSuffix(got[0].Path, "/models/"+googleModel+":rawPredict") {
		t.Errorf("%s %s, want %s", got[0].Path, got[0].Body, want)
	}
	if want := `{"anthropic_version":"vertex-2023-10-16","stream":true,` + greeting + `}`; string(got[1].Body) != want || got[1].Header.Get("Anthropic-Beta") != "context-1m-2025-08-07" {
		t.Errorf("%v %s, want %s", got[1].Header, got[1].Body, want)
	}
	if double.Asked() != 1 {
		t.Errorf("%d tokens for one key", double.Asked())
	}
}

// A client that speaks Google Cloud's protocol is served, and its body arrives byte for byte.
func TestGoogleClientsAreServed(t *testing.T) {
	t.Parallel()
	p, double := onCloud(t, "google", googleBase, tenants.AuthGoogle, "")
	own := "/projects/of-the-client/locations/global/publishers/anthropic/models/"
	body := "{ \"anthropic_version\": \"vertex-2023-10-16\",\n" + greeting + "}"
	stream := "{ \"anthropic_version\": \"vertex-2023-10-16\", \"stream\": true,\n" + greeting + "}"
	count := `{"anthropic_version":"vertex-2023-10-16","model":"` + googleModel + `","messages":[{"role":"user","content":"Hi"}]}`
	for _, base := range []string{"", "/v1"} {
		for _, sent := range [][2]string{
			{"claude-sonnet-4-5%4020250929:streamRawPredict", stream}, {googleModel + ":rawPredict", body}, {"count-tokens:rawPredict", count},
		} {
			got := p.send(http.MethodPost, base+own+sent[0], sent[1])
			received := double.Models.Requests()
			if got.status != http.StatusOK || string(received[len(received)-1].Body) != sent[1] {
				t.Errorf("%s: %d %s", sent[0], got.status, got.body)
			}
			if used := p.last(1); used.Tokens.Input == 0 || used.Tokens.Output == 0 || used.Request.Model != googleModel {
				t.Errorf("recorded %+v", used)
			}
		}
	}
}

// Refusals reach clients as Google Cloud wrote them; those of the proxy have the shape that its clients read.
func TestGoogleClientsGetErrorsTheyRead(t *testing.T) {
	t.Parallel()
	p, _ := onCloud(t, "google", googleBase, tenants.AuthGoogle, "")
	path := "/projects/p/locations/l/publishers/anthropic/models/"
	body := `{"anthropic_version":"vertex-2023-10-16",` + greeting + `}`
	for name, test := range map[string]struct {
		got    answer
		status int
		said   string
	}{
		"unknown model":  {p.send(http.MethodPost, path+"gemini-3:rawPredict", body), 404, `"status":"NOT_FOUND"`},
		"rate limit":     {p.send(http.MethodPost, path+googleModel+":rawPredict", body, providerdouble.MisbehaveHeader, providerdouble.MisbehaveRateLimit), 429, `"rate_limit_error"`},
		"with a model":   {p.send(http.MethodPost, path+googleModel+":rawPredict", `{"model":"x",`+greeting+`}`), 400, "The request body cannot be read"},
		"no key":         {p.send(http.MethodPost, path+googleModel+":rawPredict", body, "Authorization", "Basic of-the-client"), 401, "authentication_error"},
		"Google's model": {p.send(http.MethodPost, "/projects/p/locations/l/publishers/google/models/gemini-3:generateContent", body), 400, "This operation of Google Cloud is not supported. Palimpsest serves POST"},
		"get":            {p.send(http.MethodGet, path+googleModel+":rawPredict", ""), 400, "This operation of Google Cloud is not supported."},
		"dot segment":    {p.send(http.MethodPost, "/v1/messages", `{"model":"../x",`+greeting+`}`), 400, "path"},
		"other path":     {p.send(http.MethodGet, "/v1/files", "", "Anthropic-Version", "2023-06-01"), 400, "is not served by Google Cloud"},
	} {
		if test.got.status != test.status || !bytes.Contains(test.got.body, []byte(test.said)) {
			t.Errorf("%s: %d %s", name, test.got.status, test.got.body)
		}
	}
}

// Without a key of Google Cloud, such a request reaches no other provider.
func TestGoogleClientsNeedGoogleKey(t *testing.T) {
	t.Parallel()
	p := setup(t, func(http.ResponseWriter, *http.Request) { t.Error("a provider was asked") })
	got := p.send(http.MethodPost, "/v1/projects/p/locations/l/publishers/anthropic/models/"+googleModel+":rawPredict", `{"anthropic_version":"vertex-2023-10-16",`+greeting+`}`)
	if got.status != http.StatusBadRequest || !bytes.Contains(got.body, []byte("The workspace has no key for this provider")) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A token that the provider revokes is asked for again. A key that its sign-in service refuses is named as the cause, without
// the service's words.
func TestKeyWithoutAccessTokenIsNamed(t *testing.T) {
	t.Parallel()
	p, double := onCloud(t, "google", googleBase, tenants.AuthGoogle, "")
	body := `{"model":"` + googleModel + `",` + greeting + `}`
	p.send(http.MethodPost, "/v1/messages", body)
	double.Revoke()
	refused, again := p.send(http.MethodPost, "/v1/messages", body), p.send(http.MethodPost, "/v1/messages", body)
	if refused.status != http.StatusUnauthorized || again.status != http.StatusOK || double.Asked() != 2 {
		t.Errorf("%d, %d after %d tokens", refused.status, again.status, double.Asked())
	}
	p, _ = onCloud(t, "foundry", "/anthropic", tenants.AuthEntra, "contoso:1b2c3d4e-app:another-secret")
	got := p.send(http.MethodPost, "/v1/messages", body)
	if got.status != http.StatusBadGateway || !bytes.Contains(got.body, []byte("gives no access token")) || got.header.Get("X-Should-Retry") != "false" ||
		strings.Contains(string(got.body)+p.log.String(), "another-secret") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if kept := p.last(1); kept.Answer.Status != http.StatusBadGateway {
		t.Errorf("recorded %+v", kept)
	}
}

// With failover on, a request whose key gets no access token goes to the next key.
func TestRequestMovesOnFromKeyWithoutAccessToken(t *testing.T) {
	t.Parallel()
	p, double := onCloud(t, "foundry", "/anthropic", tenants.AuthEntra, "contoso:1b2c3d4e-app:another-secret")
	next := p.store.keys[0]
	next.ID, next.Name, next.Auth, next.Sealed, next.Order = uuid.New(), "next", tenants.AuthXAPIKey, []byte(cloudKey), 1
	p.store.mu.Lock()
	p.store.keys, p.store.data.Failover = append(p.store.keys, next), tenants.FailoverAccounts
	p.store.mu.Unlock()
	p.Settings.ForgetAll()
	var err error
	if p.Failover, err = failover.New(time.Now, failover.Sleep); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := p.send(http.MethodPost, "/v1/messages", `{"model":"`+claudeModel+`",`+greeting+`}`); got.status != http.StatusOK {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if kept := p.last(1); kept.Answer.Status != http.StatusOK || kept.Answer.ProviderKey != next.ID || double.Asked() != 1 {
		t.Errorf("key %s, %d tokens asked for", kept.Answer.ProviderKey, double.Asked())
	}
}

// Recorded sessions pass every cloud: no body is refused, and the messages arrive byte for byte.
func TestRecordedSessionsPassTheClouds(t *testing.T) {
	t.Parallel()
	files := sharedtest.Files(t, "data/transcripts/*.anthropic.json")
	for i := range fulltest.Part(len(files)) {
		file := files[i]
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			recorded, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			named := func(model string) []byte {
				return wire.Set(wire.Delete(recorded, "stream"), "model", json.RawMessage(`"`+model+`"`))
			}
			own := wire.Set(wire.Delete(named(""), "model"), "anthropic_version", json.RawMessage(`"vertex-2023-10-16"`))
			for _, cloud := range []struct {
				preset, base, path string
				auth               tenants.Auth
				secret             string
				body               []byte
			}{
				{"google", googleBase, "/v1/messages", tenants.AuthGoogle, "", named(googleModel)},
				{"google", googleBase, "/projects/p/locations/l/publishers/anthropic/models/" + googleModel + ":rawPredict", tenants.AuthGoogle, "", own},
				{"foundry", "/anthropic", "/v1/messages", tenants.AuthEntra, entraSecret, named(claudeModel)},
				{"claude-aws", "", "/v1/messages", tenants.AuthSigV4, accessKey + ":" + accessSecret, named(claudeModel)},
			} {
				p, double := onCloud(t, cloud.preset, cloud.base, cloud.auth, cloud.secret)
				double.Models.Trust(recorded)
				p.sendWhole(cloud.body, cloud.path)
				for _, got := range double.Models.Requests() {
					if got.Status != http.StatusOK || !bytes.Equal(wire.Get(got.Body, "messages"), wire.Get(recorded, "messages")) {
						t.Errorf("%s: status %d, %d bytes of messages", cloud.preset, got.Status, len(got.Body))
					}
				}
			}
		})
	}
}
