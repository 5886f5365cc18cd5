package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/google/uuid"

	"palimpsest/api/upstream"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/tenants"
)

const (
	bedrockKey   = "bedrock-api-key-abcdefgh"
	accessKey    = "AKIAIOSFODNN7EXAMPLE"
	accessSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY="
	bedrockModel = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
	greeting     = `"max_tokens":100,"messages":[{"role":"user","content":"Hello, all of you"}]`
)

// onBedrock starts a proxy whose only provider key is one of Amazon Bedrock.
func onBedrock(t testing.TB, auth tenants.Auth, secret string, change ...func(*providerdouble.BedrockConfig)) (*proxy, *providertest.BedrockServer) {
	t.Helper()
	config := providerdouble.BedrockConfig{
		Region: "us-east-1", Keys: []string{bedrockKey},
		Access: []providerdouble.BedrockAccess{{ID: accessKey, Secret: accessSecret}},
	}
	for _, change := range change {
		change(&config)
	}
	double := providertest.NewBedrock(t, config)
	p := setupAt(t, double.URL)
	p.store.keys = []tenants.ProviderKey{bedrockProvider(double.URL, auth, secret)}
	return p, double
}

func bedrockProvider(url string, auth tenants.Auth, secret string) tenants.ProviderKey {
	return tenants.ProviderKey{
		ID: uuid.New(), Provider: tenants.ProviderAnthropic, Preset: "bedrock", Name: "bedrock", BaseURL: url, Region: "us-east-1", Auth: auth,
		ProviderKeySecret: tenants.ProviderKeySecret{Sealed: []byte(secret)},
	}
}

// A client that speaks Messages gets Messages, whichever sign-in the provider key has.
func TestBedrockKeyServesMessages(t *testing.T) {
	t.Parallel()
	for name, sign := range map[string]struct {
		auth   tenants.Auth
		secret string
	}{
		"API key": {tenants.AuthBearer, bedrockKey}, "access key": {tenants.AuthSigV4, accessKey + ":" + accessSecret},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, double := onBedrock(t, sign.auth, sign.secret)
			whole := p.send(http.MethodPost, "/v1/messages", `{"model":"`+bedrockModel+`",`+greeting+`}`, "Anthropic-Beta", "interleaved-thinking-2025-05-14,claude-code-20250219", "X-Amz-Date", "20200101T000000Z")
			if whole.status != http.StatusOK || !bytes.Contains(whole.body, []byte(`"type":"message"`)) {
				t.Fatalf("%d %s", whole.status, whole.body)
			}
			stream := p.send(http.MethodPost, "/v1/messages", `{"stream":true,"model":"`+bedrockModel+`",`+greeting+`}`)
			if stream.status != http.StatusOK || !strings.HasPrefix(stream.header.Get("Content-Type"), "text/event-stream") {
				t.Fatalf("%d %v %s", stream.status, stream.header, stream.body)
			}
			for _, event := range []string{"event: message_start\ndata: {\"", "event: content_block_delta\ndata: {\"", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"} {
				if !bytes.Contains(stream.body, []byte(event)) {
					t.Errorf("no %q in %s", event, stream.body)
				}
			}
			if used := p.last(2); used.Tokens.Input == 0 || used.Tokens.Output == 0 || used.Cost.CostMicroUSD == 0 || used.Answer.Status != http.StatusOK {
				t.Errorf("recorded %+v", used)
			}
			counted := p.send(http.MethodPost, "/v1/messages/count_tokens", `{"model":"`+bedrockModel+`","messages":[{"role":"user","content":"Hello"}]}`)
			var count struct {
				Tokens int `json:"input_tokens"`
			}
			if err := json.Unmarshal(counted.body, &count); err != nil || count.Tokens == 0 {
				t.Errorf("count: %d %s", counted.status, counted.body)
			}
			listed := p.send(http.MethodGet, "/v1/models", "", "Anthropic-Version", "2023-06-01")
			if shape(t, listed.body) != "anthropic list" || !bytes.Contains(listed.body, []byte(`"id":"`+bedrockModel+`"`)) || bytes.Contains(listed.body, []byte("llama")) {
				t.Errorf("models: %d %s", listed.status, listed.body)
			}
			got := double.Models.Requests()
			if want := "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke"; got[0].Path != want {
				t.Errorf("path %s, want %s", got[0].Path, want)
			}
			if want := `{"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["interleaved-thinking-2025-05-14"],` + greeting + `}`; string(got[0].Body) != want {
				t.Errorf("body %s, want %s", got[0].Body, want)
			}
			if want := `{"anthropic_version":"bedrock-2023-05-31",` + greeting + `}`; string(got[1].Body) != want {
				t.Errorf("streamed body %s, want %s", got[1].Body, want)
			}
			if got[0].Header.Get("Anthropic-Beta") != "" || strings.Contains(p.log.String(), sign.secret) {
				t.Errorf("headers %v", got[0].Header)
			}
		})
	}
}

// A refusal by Amazon Bedrock goes to the client as it is, and never with a part of the key.
func TestBedrockRefusalsReachTheClientUnchanged(t *testing.T) {
	t.Parallel()
	early := func() time.Time { return time.Now().Add(-10 * time.Minute) }
	expired := []providerdouble.BedrockAccess{{ID: accessKey, Secret: accessSecret, Token: "IQoJb3JpZ2luX2Vj", Expires: time.Unix(0, 0)}}
	signed := accessKey + ":" + accessSecret
	for name, test := range map[string]struct {
		auth    tenants.Auth
		secret  string
		model   string
		header  []string
		change  func(*providerdouble.BedrockConfig)
		status  int
		message string
	}{
		"another API key":     {tenants.AuthBearer, "bedrock-api-key-other", bedrockModel, nil, nil, 403, "Authentication failed: Please make sure your API Key is valid."},
		"another secret":      {tenants.AuthSigV4, accessKey + ":other", bedrockModel, nil, nil, 403, "The request signature we calculated does not match"},
		"unknown access key":  {tenants.AuthSigV4, "AKIAIOSFODNN7UNKNOWN:x", bedrockModel, nil, nil, 403, "The security token included in the request is invalid."},
		"expired token":       {tenants.AuthSigV4, signed + ":IQoJb3JpZ2luX2Vj", bedrockModel, nil, func(c *providerdouble.BedrockConfig) { c.Access = expired }, 403, "The security token included in the request is expired"},
		"clock that is wrong": {tenants.AuthSigV4, signed, bedrockModel, nil, func(c *providerdouble.BedrockConfig) { c.Now = early }, 403, "Signature not yet current"},
		"another region":      {tenants.AuthSigV4, signed, bedrockModel, nil, func(c *providerdouble.BedrockConfig) { c.Region = "eu-west-1" }, 403, "Credential should be scoped to a valid region."},
		"unknown model":       {tenants.AuthBearer, bedrockKey, "claude-sonnet-4-5", nil, nil, 400, "The provided model identifier is invalid."},
		"throttling":          {tenants.AuthBearer, bedrockKey, bedrockModel, []string{providerdouble.MisbehaveHeader, providerdouble.MisbehaveRateLimit}, nil, 429, "Too many requests, please wait before trying again."},
		"unavailable":         {tenants.AuthBearer, bedrockKey, bedrockModel, []string{providerdouble.MisbehaveHeader, providerdouble.MisbehaveOverloaded}, nil, 503, "Overloaded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := []func(*providerdouble.BedrockConfig){func(*providerdouble.BedrockConfig) {}}
			if test.change != nil {
				changes = append(changes, test.change)
			}
			p, _ := onBedrock(t, test.auth, test.secret, changes...)
			got := p.send(http.MethodPost, "/v1/messages", `{"model":"`+test.model+`",`+greeting+`}`, test.header...)
			var said struct {
				Message string `json:"message"`
			}
			if err := json.Unmarshal(got.body, &said); err != nil || got.status != test.status || !strings.HasPrefix(said.Message, test.message) {
				t.Errorf("%d %s", got.status, got.body)
			}
			if got.header.Get("X-Amzn-Errortype") == "" {
				t.Errorf("no type of the error in %v", got.header)
			}
		})
	}
}

// Two workspaces may store one access key's id: a wrong secret gets no one else's signature.
func TestSignatureNeedsItsOwnSecret(t *testing.T) {
	t.Parallel()
	p, _ := onBedrock(t, tenants.AuthSigV4, accessKey+":"+accessSecret)
	body := `{"model":"` + bedrockModel + `",` + greeting + `}`
	if got := p.send(http.MethodPost, "/v1/messages", body); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	wrong := bedrockProvider(p.provider, tenants.AuthSigV4, accessKey+":wrong")
	p.store.mu.Lock()
	p.store.keys = []tenants.ProviderKey{wrong}
	p.store.mu.Unlock()
	p.Settings.ForgetAll()
	if got := p.send(http.MethodPost, "/v1/messages", body); got.status != http.StatusForbidden {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// An exception inside a stream ends it as an error event of Anthropic's API.
func TestExceptionInsideBedrockStreamIsErrorEvent(t *testing.T) {
	t.Parallel()
	p, _ := onBedrock(t, tenants.AuthBearer, bedrockKey)
	got := p.send(http.MethodPost, "/v1/messages", `{"stream":true,"model":"`+bedrockModel+`",`+greeting+`}`, providerdouble.MisbehaveHeader, providerdouble.MisbehaveMidstream)
	if !bytes.Contains(got.body, []byte("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"")) {
		t.Errorf("%s", got.body)
	}
	if kept := p.last(1); kept.Answer.ErrorType != "overloaded_error" {
		t.Errorf("recorded error %q", kept.Answer.ErrorType)
	}
}

// A message with a wrong checksum ends the answer early; the client does not take it for complete.
func TestWrongChecksumEndsBedrockStream(t *testing.T) {
	t.Parallel()
	p, _ := onBedrock(t, tenants.AuthBearer, bedrockKey, func(c *providerdouble.BedrockConfig) { c.Broken = true })
	got := p.send(http.MethodPost, "/v1/messages", `{"stream":true,"model":"`+bedrockModel+`",`+greeting+`}`)
	if got.broken == nil || bytes.Contains(got.body, []byte("message_start")) {
		t.Errorf("%d %s, %v", got.status, got.body, got.broken)
	}
}

// frames decodes an event stream.
func frames(t *testing.T, stream []byte) (all []eventstream.Message) {
	t.Helper()
	reader := bytes.NewReader(stream)
	for reader.Len() > 0 {
		message, err := eventstream.NewDecoder().Decode(reader, nil)
		if err != nil {
			t.Fatalf("%v in %q", err, stream)
		}
		all = append(all, message)
	}
	return all
}

// A client that speaks Amazon Bedrock's protocol gets its framing, and its body reaches Bedrock byte for byte.
func TestBedrockClientsAreServed(t *testing.T) {
	t.Parallel()
	p, double := onBedrock(t, tenants.AuthSigV4, accessKey+":"+accessSecret)
	body := "{ \"anthropic_version\": \"bedrock-2023-05-31\", \"anthropic_beta\":[\"context-1m-2025-08-07\"],\n" + greeting + "}"
	for _, base := range []string{"", "/v1"} {
		whole := p.send(http.MethodPost, base+"/model/"+bedrockModel+"/invoke", body)
		if whole.status != http.StatusOK || !bytes.Contains(whole.body, []byte(`"type":"message"`)) {
			t.Fatalf("%d %s", whole.status, whole.body)
		}
	}
	stream := p.send(http.MethodPost, "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream", body)
	if stream.status != http.StatusOK || stream.header.Get("Content-Type") != upstream.EventStream {
		t.Fatalf("%d %v %s", stream.status, stream.header, stream.body)
	}
	var events []string
	for _, message := range frames(t, stream.body) {
		var chunk struct{ Bytes []byte }
		var event struct{ Type string }
		if err := json.Unmarshal(message.Payload, &chunk); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(chunk.Bytes, &event); err != nil {
			t.Fatal(err)
		}
		events = append(events, event.Type)
	}
	if len(events) < 5 || events[0] != "message_start" || events[len(events)-1] != "message_stop" {
		t.Errorf("events %v", events)
	}
	if used := p.last(3); used.Tokens.Input == 0 || used.Tokens.Output == 0 || used.Request.Model != bedrockModel {
		t.Errorf("recorded %+v", used)
	}
	counted := p.send(http.MethodPost, "/model/anthropic.claude-sonnet-4-5-20250929-v1:0/count-tokens",
		`{"input":{"invokeModel":{"body":"eyJhbnRocm9waWNfdmVyc2lvbiI6ImJlZHJvY2stMjAyMy0wNS0zMSIsIm1heF90b2tlbnMiOjEsIm1lc3NhZ2VzIjpbeyJyb2xlIjoidXNlciIsImNvbnRlbnQiOiJIaSJ9XX0="}}}`)
	if !strings.HasPrefix(string(counted.body), `{"inputTokens":`) || counted.status != http.StatusOK {
		t.Errorf("count: %d %s", counted.status, counted.body)
	}
	if list := p.send(http.MethodGet, "/inference-profiles?type=SYSTEM_DEFINED", ""); list.status != http.StatusOK || !bytes.Contains(list.body, []byte("inferenceProfileSummaries")) {
		t.Errorf("list: %d %s", list.status, list.body)
	}
	for i, got := range double.Models.Requests()[:3] {
		if string(got.Body) != body {
			t.Errorf("request %d: body %q, want %q", i, got.Body, body)
		}
	}
}

// Errors for such clients have Amazon Bedrock's shape, inside a stream too.
func TestBedrockClientsGetBedrockErrors(t *testing.T) {
	t.Parallel()
	p, _ := onBedrock(t, tenants.AuthBearer, bedrockKey)
	body := `{"anthropic_version":"bedrock-2023-05-31",` + greeting + `}`
	path := "/model/" + bedrockModel + "/invoke-with-response-stream"
	stream := p.send(http.MethodPost, path, body, providerdouble.MisbehaveHeader, providerdouble.MisbehaveMidstream)
	all := frames(t, stream.body)
	last := all[len(all)-1]
	if kind := last.Headers.Get(":exception-type"); kind == nil || kind.String() != "serviceUnavailableException" || string(last.Payload) != `{"message":"Overloaded"}` {
		t.Errorf("exception %v %s", kind, last.Payload)
	}
	for name, test := range map[string]struct {
		got     answer
		status  int
		message string
	}{
		"no key":        {p.send(http.MethodPost, path, body, "Authorization", "AWS4-HMAC-SHA256 Credential=x"), 401, "No Palimpsest API key"},
		"not an object": {p.send(http.MethodPost, path, "[]"), 400, "The request body cannot be read"},
		"with a model":  {p.send(http.MethodPost, path, `{"model":"x",`+greeting+`}`), 400, "The request body cannot be read"},
		"get":           {p.send(http.MethodGet, path, ""), 400, "This operation of Amazon Bedrock is not supported."},
		"changed list":  {p.send(http.MethodPost, "/inference-profiles", "{}"), 400, "This operation of Amazon Bedrock is not supported."},
		"converse":      {p.send(http.MethodPost, "/model/"+bedrockModel+"/converse", body), 400, "This operation of Amazon Bedrock is not supported. Palimpsest serves invoke"},
		"throttled":     {p.send(http.MethodPost, path, body, providerdouble.MisbehaveHeader, providerdouble.MisbehaveRateLimit), 429, "Too many requests"},
	} {
		var said struct{ Message string }
		if err := json.Unmarshal(test.got.body, &said); err != nil || test.got.status != test.status || !strings.HasPrefix(said.Message, test.message) {
			t.Errorf("%s: %d %s", name, test.got.status, test.got.body)
		}
	}
}

// Without a key of Amazon Bedrock, such clients learn what is missing, and no other provider gets their request.
func TestBedrockClientsNeedBedrockKey(t *testing.T) {
	t.Parallel()
	p := setup(t, func(http.ResponseWriter, *http.Request) { t.Error("a provider was asked") })
	for _, got := range []answer{
		p.send(http.MethodPost, "/model/"+bedrockModel+"/invoke", `{"anthropic_version":"bedrock-2023-05-31",`+greeting+`}`),
		p.send(http.MethodGet, "/inference-profiles", ""),
	} {
		if got.status != http.StatusBadRequest || !bytes.HasPrefix(got.body, []byte(`{"__type":"ValidationException","message":"The workspace has no key for this provider`)) {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

// S2: a prompt that Amazon Bedrock finds too long is compressed and sent again.
func TestPromptTooLongForBedrockIsSentAgain(t *testing.T) {
	t.Parallel()
	p, double := onBedrock(t, tenants.AuthBearer, bedrockKey)
	got := p.send(http.MethodPost, "/v1/messages", toolSession(bedrockModel, 30, 400), providerdouble.MisbehaveHeader, providerdouble.MisbehaveOverflowOnce)
	received := double.Models.Requests()
	if got.status != http.StatusOK || len(received) != 2 || received[0].Status != http.StatusBadRequest || len(received[1].Body) >= len(received[0].Body) {
		t.Errorf("%d %s after %d requests", got.status, got.body, len(received))
	}
}
