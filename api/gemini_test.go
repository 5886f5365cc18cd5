package api

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
)

const (
	googleSecret = "AIzaSyTest-1234567890"
	generatePath = "/v1beta/models/gemini-2.5-pro:generateContent"
	streamPath   = "/v1beta/models/gemini-2.5-pro:streamGenerateContent"
)

// onGoogle starts a proxy with a provider key of the Gemini API.
func onGoogle(t testing.TB, config providerdouble.Config) (*proxy, *providertest.Server) {
	t.Helper()
	config.Key = googleSecret
	double := providertest.NewServer(t, config)
	p := setupAt(t, double.URL)
	p.store.keys = []tenants.ProviderKey{{
		ID: uuid.New(), Provider: tenants.ProviderGemini, Name: "gemini", BaseURL: double.URL + "/v1beta",
		ProviderKeySecret: tenants.ProviderKeySecret{Sealed: []byte(googleSecret)},
	}}
	return p, double
}

// W13, W26: Google gets the client's bytes, and the client Google's.
func TestGeminiRequestsPassByteForByte(t *testing.T) {
	t.Parallel()
	p, double := onGoogle(t, providerdouble.Config{})
	const body = " {\n \"contents\" : [ {\"role\":\"user\",\"parts\":[{\"text\":\"h\\u00e9\"}]} ] , \"generationConfig\":{\"temperature\":1.0}}"
	for _, path := range []string{generatePath, generatePath + "?prettyPrint=false", streamPath + "?alt=sse", streamPath, "/v1" + generatePath, "/v1/models/gemini-2.5-pro:generateContent"} {
		got := p.send(http.MethodPost, path, body)
		sent, _ := double.Last()
		if got.status != http.StatusOK || string(sent.Body) != body || sent.Header.Get("X-Goog-Api-Key") != googleSecret || sent.Header.Get("Authorization") != "" {
			t.Errorf("%s: %d %s\nsent %s %q", path, got.status, got.body, sent.Path, sent.Body)
		}
		want := generatePath
		if strings.HasPrefix(path, streamPath) {
			want = streamPath + "?alt=sse"
		} else if strings.Contains(path, "pretty") {
			want = path
		}
		if sent.Path != want {
			t.Errorf("%s went to %s", path, sent.Path)
		}
		switch {
		case path == streamPath:
			var chunks []json.RawMessage
			if err := json.Unmarshal(got.body, &chunks); err != nil || len(chunks) == 0 || got.header.Get("Content-Type") != "application/json; charset=UTF-8" {
				t.Errorf("%v: %s", err, got.body)
			}
		case strings.Contains(path, "alt=sse"):
			if !bytes.HasPrefix(got.body, []byte(`data: {"candidates":`)) || !strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") {
				t.Errorf("%v %s", got.header, got.body)
			}
		case !bytes.HasPrefix(got.body, []byte(`{"candidates":`)):
			t.Errorf("%s", got.body)
		}
	}
	used := p.last(6)
	if used.Request.Model != "gemini-2.5-pro" || used.Request.Endpoint != "/v1beta/models/{model}:generateContent" || used.Tokens.Input == 0 || used.Tokens.Output == 0 || used.Cost.CostMicroUSD == 0 {
		t.Errorf("recorded %+v", used)
	}
}

// S3: a key in the query never leaves, and is in no log.
func TestGeminiKeyIsReadInEveryPlaceAndStaysHere(t *testing.T) {
	t.Parallel()
	p, double := onGoogle(t, providerdouble.Config{})
	const body = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
	for name, how := range map[string][2]string{
		"header": {"", "X-Goog-Api-Key"}, "bearer": {"", "Authorization"}, "query": {"?key=" + testKey, ""}, "query beside others": {"?a=b&key=" + testKey + "&c=d", ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+generatePath+how[0], strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if how[1] != "" {
			request.Header.Set(how[1], map[string]string{"X-Goog-Api-Key": testKey, "Authorization": "Bearer " + testKey}[how[1]])
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		sent, _ := double.Last()
		if response.StatusCode != http.StatusOK || strings.Contains(sent.Path+sent.Header.Get("X-Goog-Api-Key")+sent.Header.Get("Authorization"), testKey) {
			t.Errorf("%s: %d, %s %v", name, response.StatusCode, sent.Path, sent.Header)
		}
		if name == "query beside others" && sent.Path != generatePath+"?a=b&c=d" {
			t.Errorf("sent %s", sent.Path)
		}
	}
	if strings.Contains(p.log.String(), testKey) || strings.Contains(p.log.String(), googleSecret) {
		t.Error("a key is in the log")
	}
}

// Models are listed and counted as Google does.
func TestGeminiModelsAndCounts(t *testing.T) {
	t.Parallel()
	p, double := onGoogle(t, providerdouble.Config{})
	for path, want := range map[string]string{"/v1beta/models": `"models":[{"name":"models/gemini-`, "/v1beta/models/gemini-2.5-pro": `{"name":"models/gemini-2.5-pro"`} {
		if got := p.send(http.MethodGet, path, ""); got.status != http.StatusOK || !strings.Contains(string(got.body), want) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	const contents = `"contents":[{"role":"user","parts":[{"text":"how long is this?"}]}]`
	counts := map[string]bool{}
	for _, body := range []string{`{` + contents + `}`, `{"generateContentRequest":{"model":"models/gemini-2.5-pro",` + contents + `}}`} {
		got := p.send(http.MethodPost, "/v1beta/models/gemini-2.5-pro:countTokens", body)
		if got.status != http.StatusOK || !bytes.HasPrefix(got.body, []byte(`{"totalTokens":`)) {
			t.Errorf("%d %s", got.status, got.body)
		}
		counts[string(got.body)] = true
	}
	if sent, _ := double.Last(); len(counts) != 1 || string(sent.Body) != `{`+contents+`}` {
		t.Errorf("counts %v of %s", counts, sent.Body)
	}
	got := p.send(http.MethodPost, "/v1beta/models/gemini-2.5-pro:countTokens", `{"generateContentRequest":{"model":"models/gemini-2.5-pro","systemInstruction":{"parts":[{"text":"s"}]},`+contents+`}}`)
	if sent, _ := double.Last(); got.status != http.StatusOK || string(sent.Body) != `{"generateContentRequest":{"model":"models/gemini-2.5-pro","systemInstruction":{"parts":[{"text":"s"}]},`+contents+`}}` {
		t.Errorf("%d %s: %s", got.status, got.body, sent.Body)
	}
}

// Google's refusals reach the client unchanged, and ours have their form.
func TestGeminiRefusalsHaveGooglesForm(t *testing.T) {
	t.Parallel()
	p, _ := onGoogle(t, providerdouble.Config{})
	const hello = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
	for name, test := range map[string]struct {
		path, body string
		header     []string
		status     int
		said, kind string
	}{
		"unknown model":  {"/v1beta/models/nope:generateContent", hello, nil, 404, "models/nope is not found", "NOT_FOUND"},
		"unknown member": {generatePath, `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"messages":[]}`, nil, 400, `Invalid JSON payload received. Unknown name "messages"`, "INVALID_ARGUMENT"},
		"rate limit":     {streamPath, hello, []string{providerdouble.MisbehaveHeader, providerdouble.MisbehaveRateLimit}, 429, "You exceeded your current quota", "RESOURCE_EXHAUSTED"},
		"overloaded":     {generatePath, hello, []string{providerdouble.MisbehaveHeader, providerdouble.MisbehaveOverloaded}, 503, "The model is overloaded", "UNAVAILABLE"},
		"no contents":    {generatePath, `{}`, nil, 400, "The request body cannot be read", "INVALID_ARGUMENT"},
		"model twice":    {generatePath, `{"model":"x","contents":[]}`, nil, 400, "The request body cannot be read: read body: model: is there twice", "INVALID_ARGUMENT"},
		"another path":   {"/v1beta/models/x:generate%43ontent", hello, nil, 400, "The request's path could be taken for another one", "INVALID_ARGUMENT"},
		"a dot segment":  {"/v1beta/x/../models/x:generateContent", hello, nil, 400, "The request's path could be taken for another one", "INVALID_ARGUMENT"},
	} {
		got := p.send(http.MethodPost, test.path, test.body, test.header...)
		var body struct {
			Error struct {
				Code            int
				Message, Status string
			}
		}
		if err := json.Unmarshal(got.body, &body); err != nil || got.status != test.status || body.Error.Code != test.status || !strings.HasPrefix(body.Error.Message, test.said) || body.Error.Status != test.kind {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// A workspace without a key of the Gemini API reads what to do, in the form that its client shows.
func TestGeminiWithoutAProviderKeySaysWhatToDo(t *testing.T) {
	t.Parallel()
	p := setup(t, func(http.ResponseWriter, *http.Request) { t.Error("the provider was asked") })
	for _, path := range []string{generatePath, streamPath + "?alt=sse", "/v1beta/cachedContents"} {
		got := p.send(http.MethodPost, path, `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`)
		if got.status != http.StatusBadRequest || !bytes.Contains(got.body, []byte(`"status":"INVALID_ARGUMENT"`)) || !bytes.Contains(got.body, []byte("has no key for this provider")) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

// A request that uses cached content is never edited.
func TestCachedContentIsNeverEdited(t *testing.T) {
	t.Parallel()
	p, double := onGoogle(t, providerdouble.Config{})
	p.store.windows["gemini-2.5-pro"] = 3000
	session := sessiontest.Generate(1, sessiontest.Options{Format: conversation.Gemini, Model: "gemini-2.5-pro", Turns: 30, Signer: double.Double})
	body := googleBody(session.Body(session.Steps() - 1))
	body = wire.Delete(wire.Delete(body, "tools"), "systemInstruction")
	got := p.send(http.MethodPost, generatePath, string(body))
	if shortened, _ := double.Last(); got.status != http.StatusOK || len(shortened.Body) >= len(body) {
		t.Fatalf("%d, %d bytes of %d", got.status, len(shortened.Body), len(body))
	}
	body = wire.Set(body, "cachedContent", json.RawMessage(`"cachedContents/x"`))
	got = p.send(http.MethodPost, generatePath, string(body))
	if sent, _ := double.Last(); got.status != http.StatusOK || !bytes.Equal(sent.Body, body) {
		t.Errorf("%d, %d bytes of %d", got.status, len(sent.Body), len(body))
	}
}

// W22: a prompt that Google finds too long goes out once more, smaller.
func TestGeminiOverflowIsAnsweredByOneSmallerPrompt(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"gemini-2.5-pro", "gemini-3-pro-preview"} {
		p, double := onGoogle(t, providerdouble.Config{Window: small})
		session := sessiontest.Generate(2, sessiontest.Options{Format: conversation.Gemini, Model: model, Turns: 60, Parallel: true, ToolErrors: true, Signer: double.Double, TargetTokens: 2 * small})
		body := googleBody(session.Body(session.Steps() - 1))
		got := p.send(http.MethodPost, "/v1beta/models/"+model+":streamGenerateContent?alt=sse", string(body))
		sent := double.Requests()
		if got.status != http.StatusOK || got.header.Get("X-Palimpsest-Compression") != "emergency" || len(sent) != 2 || sent[1].Prompt > small || !bytes.Equal(sent[0].Body, body) {
			t.Errorf("%s: %d %s, %d requests: %.300s", model, got.status, got.header.Get("X-Palimpsest-Compression"), len(sent), got.body)
		}
	}
}

// W36, W39, W40: recorded sessions, as bodies of the Gemini API, are refused nowhere; unshortened ones arrive byte
// for byte.
func TestRecordedSessionsPassGemini(t *testing.T) {
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
			body := fromMessages(t, recorded)
			p, double := onGoogle(t, providerdouble.Config{Window: 2_000_000})
			p.sendWhole(body, streamPath+"?alt=sse")
			if got, _ := double.Last(); got.Status != http.StatusOK || !bytes.Equal(got.Body, body) {
				t.Errorf("status %d, %d bytes of %d: %v", got.Status, len(got.Body), len(body), got.Invalid)
			}
			p.store.windows["gemini-2.5-pro"] = 20_000
			got := p.send(http.MethodPost, generatePath, string(body), "X-Palimpsest-Session-Id", "short")
			sent, _ := double.Last()
			if got.status != http.StatusOK || sent.Invalid != nil {
				t.Errorf("%d %.300s: %v", got.status, got.body, sent.Invalid)
			}
		})
	}
}

// googleBody returns a body as Google's clients send it, without the members that the proxy adds.
func googleBody(body []byte) []byte { return wire.Delete(wire.Delete(body, "model"), "stream") }

// fromMessages returns a recorded body of Messages as one of the Gemini API.
func fromMessages(t *testing.T, recorded []byte) []byte {
	t.Helper()
	var from struct {
		Messages []struct {
			Role    string
			Content []struct {
				Type, Text, Thinking, Name, ID string
				ToolUseID                      string `json:"tool_use_id"`
				Input, Content                 json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(recorded, &from); err != nil {
		t.Fatal(err)
	}
	type object map[string]any
	names := map[string]string{}
	var contents []object
	for _, message := range from.Messages {
		role := map[string]string{"user": "user", "assistant": "model"}[message.Role]
		var parts []object
		for _, block := range message.Content {
			switch block.Type {
			case "text":
				parts = append(parts, object{"text": block.Text})
			case "thinking":
				parts = append(parts, object{"text": block.Thinking, "thought": true})
			case "tool_use":
				names[block.ID] = block.Name
				parts = append(parts, object{"functionCall": object{"id": block.ID, "name": block.Name, "args": block.Input}})
			case "tool_result":
				parts = append(parts, object{"functionResponse": object{"id": block.ToolUseID, "name": names[block.ToolUseID], "response": object{"output": string(block.Content)}}})
			default:
				parts = append(parts, object{"text": "[" + block.Type + "]"})
			}
		}
		contents = append(contents, object{"role": role, "parts": parts})
	}
	body, err := json.Marshal(object{"contents": contents})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// S47, W52: Google's own tools are charged for as the catalog says, for each search or for each prompt with one, and
// count for budgets.
func TestGooglesOwnToolsAreCharged(t *testing.T) {
	t.Parallel()
	const contents = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[{"google_search":{}},{"urlContext":{}}]}`
	tariffs := map[string]providerdouble.Tariff{"gemini-3.8-flash": {Input: 0.75, Output: 3.75}, "gemini-2.5-pro": {Input: 1.25, Output: 10}}
	for name, test := range map[string]struct {
		path, body string
		fee        int64
	}{
		"each search":      {"/v1beta/models/gemini-3.8-flash:generateContent", contents, 28_000},
		"in a stream":      {"/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse", contents, 28_000},
		"in an array":      {"/v1beta/models/gemini-3.8-flash:streamGenerateContent", contents, 28_000},
		"each prompt":      {generatePath, contents, 35_000},
		"of interactions":  {"/v1beta/interactions", `{"model":"gemini-3.8-flash","input":"hi","store":false,"tools":[{"type":"google_search"}]}`, 28_000},
		"of a long stream": {"/v1beta/interactions", `{"model":"gemini-3.8-flash","input":"hi","store":false,"stream":true,"tools":[{"type":"google_search"}]}`, 28_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, double := onGoogle(t, providerdouble.Config{Script: func(providerdouble.Request) providerdouble.Reply {
				return providerdouble.Reply{Text: "It rains.", Terms: providerdouble.Terms{Searches: 2}}
			}})
			p.store.limit(tenants.Limits{Quota: tenants.Quota{DayMicroUSD: 20_000}})
			if got := p.send(http.MethodPost, test.path, test.body); got.status != http.StatusOK {
				t.Fatalf("%d %s", got.status, got.body)
			}
			used := p.last(1)
			if want := double.Bill(tariffs)*1e6 + float64(test.fee); math.Abs(float64(used.Cost.CostMicroUSD)-want) > 1 || used.Tokens.Input == 0 {
				t.Errorf("recorded %d millionths of a dollar, want %.1f", used.Cost.CostMicroUSD, want)
			}
			if strings.Contains(string(used.Prompt.Report), "unlisted_tool") {
				t.Errorf("the report has a tool without a price: %s", used.Prompt.Report)
			}
			if got := p.send(http.MethodPost, test.path, test.body); got.status != http.StatusTooManyRequests {
				t.Errorf("the fees have used up the budget: %d %s", got.status, got.body)
			}
		})
	}
}
