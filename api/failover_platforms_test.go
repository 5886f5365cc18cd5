package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/google/uuid"

	"palimpsest/api/failover"
	"palimpsest/api/upstream"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
)

// platformAccount is an account of a platform, with a double of its own.
type platformAccount struct {
	http.Handler

	models *providerdouble.Double
	key    tenants.ProviderKey
}

// failing is a platform whose keys fail: how its accounts are made, what a client sends, and how the platform refuses.
type failing struct {
	name    string
	account func(t *testing.T, n int, url string, now func() time.Time) platformAccount
	path    string // of whole answers
	streams string // of streams, if it is another one
	format  string
	model   string
	tariff  providerdouble.Tariff

	throttled, dead, revoked, broken http.HandlerFunc
}

// failingPlatforms are the platforms under test, in the order of their turns.
func failingPlatforms() []failing {
	opus := providerdouble.Tariff{Input: 4, Output: 20, Read: 0.2, Write: 5, WriteHour: 8}
	anthropicError := func(kind, message string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, kind, message)
	}
	openaiError := func(kind, code, message string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%q}}`, message, kind, code)
	}
	googleError := func(code int, status, message, details string) string {
		return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q,"details":[%s]}}`, code, message, status, details)
	}
	sse := func(stream string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(stream))
		}
	}
	onCloudOf := func(preset, base string, auth tenants.Auth) func(*testing.T, int, string, func() time.Time) platformAccount {
		return func(t *testing.T, n int, url string, now func() time.Time) platformAccount {
			t.Helper()
			location := []string{"us-east5", "europe-west1", "asia-southeast1"}[n]
			cloud, err := providerdouble.NewCloud(providerdouble.CloudConfig{Config: providerdouble.Config{Now: now}, Keys: []string{cloudKey}, Project: "northbeam", Location: location})
			if err != nil {
				t.Fatal(err)
			}
			secret := cloudKey
			if auth == tenants.AuthGoogle {
				secret = cloud.ServiceAccount(url)
			}
			return platformAccount{cloud, cloud.Models, tenants.ProviderKey{
				Provider: tenants.ProviderAnthropic, Preset: preset, BaseURL: url + strings.Replace(base, "us-east5", location, 1), Auth: auth, ProviderKeySecret: tenants.ProviderKeySecret{Sealed: []byte(secret)},
			}}
		}
	}
	of := func(provider tenants.Provider, base string) func(*testing.T, int, string, func() time.Time) platformAccount {
		return func(_ *testing.T, n int, url string, now func() time.Time) platformAccount {
			secret := fmt.Sprint("secret-of-account-", n)
			double := providerdouble.NewHandler(providerdouble.Config{Key: secret, Now: now})
			return platformAccount{double, double, tenants.ProviderKey{Provider: provider, BaseURL: url + base, ProviderKeySecret: tenants.ProviderKeySecret{Sealed: []byte(secret)}}}
		}
	}
	return []failing{
		{
			name: "Anthropic", account: of(tenants.ProviderAnthropic, ""), path: messagesPath, format: providerdouble.Anthropic, model: "claude-opus-5-5", tariff: opus,
			throttled: refuses(429, anthropicError("rate_limit_error", "slow down"), "Retry-After", "600"),
			dead:      refuses(401, anthropicError("authentication_error", "invalid x-api-key")),
			revoked:   refuses(403, anthropicError("permission_error", "This API key has been disabled.")),
			broken:    sse(overloadedStream),
		},
		{
			name: "OpenAI", account: of(tenants.ProviderOpenAI, ""), path: chatPath, format: providerdouble.OpenAIChat, model: "gpt-5.5", tariff: providerdouble.Tariff{Input: 5, Output: 30, Read: 0.5},
			throttled: refuses(429, openaiError("requests", "rate_limit_exceeded", "Rate limit reached"), "Retry-After-Ms", "600000"),
			dead:      refuses(401, openaiError("invalid_request_error", "invalid_api_key", "Incorrect API key provided")),
			revoked:   refuses(429, openaiError("insufficient_quota", "insufficient_quota", "You exceeded your current quota")),
			broken:    sse("data: " + openaiError("server_error", "server_error", "The server had an error") + "\n\n"),
		},
		{
			name: "Amazon Bedrock", account: onBedrockOf, path: messagesPath, format: providerdouble.Anthropic, model: "us.anthropic.claude-opus-5-5-v1:0", tariff: opus,
			throttled: refuses(429, `{"message":"Too many requests, please wait before trying again."}`, "X-Amzn-Errortype", "ThrottlingException"),
			dead:      refuses(403, `{"message":"The security token included in the request is invalid."}`, "X-Amzn-Errortype", "UnrecognizedClientException"),
			revoked:   refuses(403, `{"message":"Authentication failed: Please make sure your API Key is valid."}`, "X-Amzn-Errortype", "AccessDeniedException"),
			broken:    throwsThrottling,
		},
		{
			name: "Google Cloud", account: onCloudOf("google", googleBase, tenants.AuthGoogle), path: messagesPath, format: providerdouble.Anthropic, model: "claude-opus-5-5", tariff: opus,
			throttled: refuses(429, googleError(429, "RESOURCE_EXHAUSTED", "Quota exceeded for aiplatform.googleapis.com/online_prediction_requests_per_base_model", "")),
			dead:      refuses(403, googleError(403, "PERMISSION_DENIED", "Permission 'aiplatform.endpoints.predict' denied", "")),
			revoked:   refuses(401, googleError(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", "")),
			broken:    sse(overloadedStream),
		},
		{
			name: "Microsoft Foundry", account: onCloudOf("foundry", "/anthropic", tenants.AuthXAPIKey), path: messagesPath, format: providerdouble.Anthropic, model: "claude-opus-5-5", tariff: opus,
			throttled: refuses(429, anthropicError("rate_limit_error", "Requests have exceeded the call rate limit"), "Retry-After", "600"),
			dead:      refuses(401, `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`),
			revoked:   refuses(403, `{"error":{"code":"403","message":"Access denied due to Virtual Network/Firewall rules."}}`),
			broken:    sse(overloadedStream),
		},
		{
			name: "Gemini", account: of(tenants.ProviderGemini, "/v1beta"), path: "/v1beta/models/gemini-3.8-flash:generateContent", streams: "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
			format: providerdouble.Gemini, model: "gemini-3.8-flash", tariff: providerdouble.Tariff{Input: 0.75, Output: 3.75, Read: 0.075},
			throttled: refuses(429, googleError(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"599.5s"}`)),
			dead:      refuses(400, googleError(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}`)),
			revoked:   refuses(403, googleError(403, "PERMISSION_DENIED", "Your API key was reported as leaked.", "")),
			broken:    sse("data: " + googleError(503, "UNAVAILABLE", "The model is overloaded.", "") + "\n\n"),
		},
	}
}

// onBedrockOf makes an account of Amazon Bedrock in a region of its own. Its clock is the real one, which signs.
func onBedrockOf(_ *testing.T, n int, url string, _ func() time.Time) platformAccount {
	region := []string{"us-east-1", "us-west-2", "eu-central-1"}[n]
	double := providerdouble.NewBedrock(providerdouble.BedrockConfig{Region: region, Keys: []string{bedrockKey}, Access: []providerdouble.BedrockAccess{{ID: accessKey, Secret: accessSecret}}})
	key := bedrockProvider(url, tenants.AuthBearer, bedrockKey)
	if n == 1 {
		key = bedrockProvider(url, tenants.AuthSigV4, accessKey+":"+accessSecret)
	}
	key.Region = region
	return platformAccount{double, double.Models, key}
}

// throwsThrottling answers with a stream of Amazon Bedrock that holds an exception and nothing else.
func throwsThrottling(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", upstream.EventStream)
	var frame bytes.Buffer
	_ = eventstream.NewEncoder().Encode(&frame, eventstream.Message{
		Headers: eventstream.Headers{
			{Name: ":exception-type", Value: eventstream.StringValue("throttlingException")}, {Name: ":message-type", Value: eventstream.StringValue("exception")},
		},
		Payload: []byte(`{"message":"Too many requests, please wait before trying again."}`),
	})
	_, _ = w.Write(frame.Bytes())
}

// longSession is a session on a platform whose keys fail one after the other.
type longSession struct {
	*proxy
	failing

	clock    *movingClock
	accounts []platformAccount

	mu    sync.Mutex
	fails []http.HandlerFunc // by account; nil: it answers
	turns [][2]string        // what the user and the assistant said
}

func startLongSession(t *testing.T, platform failing) *longSession {
	t.Helper()
	const keys = 3
	s := &longSession{failing: platform, clock: &movingClock{}, fails: make([]http.HandlerFunc, keys), accounts: make([]platformAccount, keys)}
	s.proxy = setupAt(t, "http://127.0.0.1:1")
	s.store.keys = nil
	for n := range keys {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			fails := s.fails[n]
			s.mu.Unlock()
			if fails == nil || r.URL.Path == "/token" {
				fails = s.accounts[n].ServeHTTP
			}
			fails(w, r)
		}))
		t.Cleanup(server.Close)
		s.accounts[n] = platform.account(t, n, server.URL, s.clock.now)
		key := s.accounts[n].key
		key.ID, key.Name, key.Order = uuid.New(), fmt.Sprint("key ", n), n
		s.store.keys = append(s.store.keys, key)
	}
	s.store.data.Failover = tenants.FailoverAccounts
	var err error
	if s.Failover, err = failover.New(s.clock.now, func(context.Context, time.Duration) error { return nil }); err != nil {
		t.Fatal(err)
	}
	s.Now, s.Prompts.Now = s.clock.now, s.clock.now
	return s
}

// fail has an account answer by a handler from now on; nil: as the platform does.
func (s *longSession) fail(account int, by http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails[account] = by
}

// body returns the session's request.
func (s *longSession) body(streams bool) string {
	var items []string
	add := func(role, text string) {
		switch {
		case s.format != providerdouble.Gemini:
			items = append(items, fmt.Sprintf(`{"role":%q,"content":%q}`, role, text))
		case role == "assistant":
			items = append(items, fmt.Sprintf(`{"role":"model","parts":[{"text":%q}]}`, text))
		default:
			items = append(items, fmt.Sprintf(`{"role":"user","parts":[{"text":%q}]}`, text))
		}
	}
	for _, turn := range s.turns {
		add("user", turn[0])
		if turn[1] != "" {
			add("assistant", turn[1])
		}
	}
	list := strings.Join(items, ",")
	if s.format == providerdouble.Gemini {
		return `{"contents":[` + list + `],"generationConfig":{"maxOutputTokens":50}}`
	}
	head := fmt.Sprintf(`{"model":%q,"stream":%t,"max_tokens":50,"cache_control":{"type":"ephemeral"},`, s.model, streams)
	if s.format == providerdouble.OpenAIChat {
		head = fmt.Sprintf(`{"model":%q,"stream":%t,"max_completion_tokens":50,`, s.model, streams)
	}
	return head + `"messages":[` + list + `]}`
}

// A session of 600 requests whose keys fail in turn, on every platform: the client sees no failure while any of them
// works, the prompt is read from the start at most once for each move, and moves and their cost are recorded to the cent.
func TestALongSessionSurvivesItsKeys(t *testing.T) {
	t.Parallel()
	all := failingPlatforms()
	for n := range fulltest.Part(len(all)) {
		t.Run(all[n].name, func(t *testing.T) {
			t.Parallel()
			requests := 600
			if !fulltest.Everything() {
				requests = 150
			}
			s := startLongSession(t, all[n])
			at := func(share int) int { return share * requests / 600 }
			storm := map[int]func(){
				at(50):      func() { s.fail(0, s.throttled) },
				at(90):      func() { s.fail(1, s.broken) },
				at(120):     func() { s.fail(0, nil); s.fail(1, nil) },
				at(200):     func() { s.fail(2, cuts) }, // a region is out
				at(260):     func() { s.fail(1, s.dead); s.fail(0, nil) },
				at(330):     func() { s.fail(0, s.revoked); s.fail(2, nil); s.fail(1, nil) },
				at(400):     func() { s.fail(1, refuses(http.StatusServiceUnavailable, "")); s.fail(2, nil) },
				at(450):     func() { s.fail(0, nil); s.fail(1, nil); s.clock.advance(15 * time.Minute) },
				at(520):     func() { s.fail(0, s.throttled) },
				at(520) + 2: func() { s.fail(1, s.throttled) },
			}
			for i := range requests {
				if inject := storm[i]; inject != nil {
					inject()
				}
				words := 80
				if i == 0 {
					words = 5000
				}
				s.turns = append(s.turns, [2]string{fmt.Sprintf("Step %d: %s", i, strings.Repeat("word ", words))})
				path, streams := s.path, i%2 == 1
				if streams && s.streams != "" {
					path = s.streams
				}
				got := s.send(http.MethodPost, path, s.body(streams), "X-Palimpsest-Session-Id", "long")
				if got.status != http.StatusOK || got.broken != nil || bytes.Contains(got.body, []byte(`"error"`)) {
					t.Fatalf("request %d: %d, %v, %s", i, got.status, got.broken, got.body)
				}
				s.turns[i][1] = fmt.Sprintf("Did %d.", i)
				s.clock.advance(time.Second)
			}
			s.check(requests)
		})
	}
}

// check compares what is recorded of a session with what its keys did.
func (s *longSession) check(requests int) {
	s.t.Helper()
	rewrites, moves, costs, changes := 0, 0, 0, 0
	recorded, estimated := int64(0), 0
	before := s.last(1)
	for n := 1; n <= requests; n++ {
		one := s.last(n)
		recorded += one.Cost.CostMicroUSD
		hasMoved := one.Answer.ProviderKey != before.Answer.ProviderKey
		if hasMoved {
			changes++
		}
		var report pipeline.Report
		if err := json.Unmarshal(one.Prompt.Report, &report); err != nil {
			s.t.Fatal(err)
		}
		for _, event := range report.Events {
			if event.Module != "failover" || event.Type != "moved" {
				continue
			}
			moves++
			estimated += event.Counts["estimated_micro_usd"]
			if cost := event.Counts["micro_usd"]; cost > 0 {
				costs++
				// The next key reads what this one had in its cache.
				tokens := float64(before.Tokens.Input + before.Tokens.CacheRead + before.Tokens.CacheWrite)
				if want := tokens * (max(s.tariff.Input, s.tariff.Write) - s.tariff.Read); math.Abs(float64(cost)-want) > 10_000 {
					s.t.Errorf("request %d: a move costs %d millionths of a dollar, want %.0f", n, cost, want)
				}
			}
		}
		if n > 1 && one.Tokens.CacheRead*2 < one.Tokens.Input+one.Tokens.CacheRead+one.Tokens.CacheWrite {
			rewrites++
			if !hasMoved {
				s.t.Errorf("request %d was read from the start at the same key: %d of %d tokens from the cache", n, one.Tokens.CacheRead, one.Tokens.Input+one.Tokens.CacheRead+one.Tokens.CacheWrite)
			}
		}
		before = one
	}
	bill := 0.0
	for n := range s.accounts {
		models := s.accounts[n].models
		tariffs := map[string]providerdouble.Tariff{}
		for _, request := range models.Requests() {
			tariffs[request.Model] = s.tariff
		}
		bill += models.Bill(tariffs) * 1e6
	}
	if math.Abs(float64(recorded-int64(estimated))-bill) > 10_000 || bill == 0 {
		s.t.Errorf("%d millionths of a dollar are recorded and %d of them estimated, the bill has %.0f", recorded, estimated, bill)
	}
	if moves < 5 || changes < 5 || rewrites > changes || costs == 0 {
		s.t.Errorf("%d moves, %d of them with a cost, %d changes of the key, %d prompts read from the start", moves, costs, changes, rewrites)
	}
	s.t.Logf("%d moves, %d of them with a cost, %d changes of the key, %d prompts read from the start, bill %.0f", moves, costs, changes, rewrites, bill)
}
