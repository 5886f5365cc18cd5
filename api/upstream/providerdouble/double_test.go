package providerdouble_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
)

func askOnce(text string) []byte {
	return bodyOf("claude-sonnet-4-5", "", `{"role":"user","content":"`+text+`"}`)
}

func TestEveryRequestIsRecorded(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{KeepBodies: 1})
	first, second := askOnce("one"), askOnce("")
	post(t, server.URL+"/v1/messages?beta=true", first, "X-Claude-Code-Session-Id", "s1", "X-Claude-Code-Agent-Id", "a1")
	post(t, server.URL+"/v1/messages", second)
	if err := server.WaitDone(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	all := server.Requests()
	if len(all) != 2 || all[0].Path != "/v1/messages?beta=true" || all[0].Conversation != "s1/a1" || all[0].Status != 200 || all[0].Prompt != 4 || all[0].Model != "claude-sonnet-4-5" {
		t.Fatalf("first request is %+v", all[0])
	}
	if all[0].Body != nil || !bytes.Equal(all[1].Body, second) {
		t.Fatal("not just the newest body is kept")
	}
	if last, ok := server.Last(); !ok || last.Status != 400 || last.Invalid == nil || last.Header.Get("X-Api-Key") != "sk-ant-test" || server.Rejected() != 1 {
		t.Fatalf("last request is %+v", last)
	}
	server.Reset()
	if _, ok := server.Last(); ok || len(server.Requests()) != 0 {
		t.Fatal("requests are left after a reset")
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	double := providerdouble.NewHandler(providerdouble.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := double.Wait(ctx, 1); err == nil {
		t.Fatal("waiting for a request that never comes ends without an error")
	}
}

func TestBustsAreCountedPerConversation(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	ask := func(conversation string, messages ...string) {
		post(t, server.URL+"/v1/messages", bodyOf("claude-sonnet-4-5", "", messages...), "X-Session-Id", conversation)
	}
	long := []string{userA, assistantOf(text("b")), userOf(text("c"))}
	ask("one", userA)
	ask("two", userOf(text("another")))
	ask("one", long...)
	ask("one", append(long[:2:2], userOf(markedText("c", mark)), assistantOf(text("d")), userA)...)
	if n := server.BustCount("one"); n != 0 {
		t.Fatalf("a growing conversation has %d busts", n)
	}
	ask("one", userOf(text("shortened")), assistantOf(text("b")), userA)
	if one, two, all := server.BustCount("one"), server.BustCount("two"), server.BustCount(""); one != 1 || two != 0 || all != 1 {
		t.Fatalf("busts are %d, %d and %d in all", one, two, all)
	}
}

func TestOverflowComesOnceUntilAnotherBodyComes(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	for i, step := range []struct {
		text string
		want int
	}{{"long", 400}, {"long", 400}, {"short", 200}, {"long", 400}, {"short", 200}} {
		status, answer := post(t, server.URL+"/v1/messages", askOnce(step.text), providerdouble.MisbehaveHeader, "overflow-once")
		if status != step.want || status == 400 && !strings.Contains(answer, `"prompt is too long: 200001 tokens \u003e 200000 maximum"`) {
			t.Fatalf("request %d is answered %d %s", i, status, answer)
		}
	}
}

// sleeper is a Sleep that tells how long it was asked to sleep, and sleeps until
// it is let go.
type sleeper struct {
	asked chan time.Duration
	wake  chan struct{}
}

func (s *sleeper) Sleep(ctx context.Context, d time.Duration) error {
	s.asked <- d
	select {
	case <-s.wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestAStreamWaitsBeforeEachChunk(t *testing.T) {
	t.Parallel()
	pace := &sleeper{asked: make(chan time.Duration), wake: make(chan struct{})}
	server := providertest.NewServer(t, providerdouble.Config{Sleep: pace.Sleep, Script: func(providerdouble.Request) providerdouble.Reply {
		return providerdouble.Reply{Text: "one two", Chunks: 2, Delay: time.Minute}
	}})
	request := bodyOf("claude-sonnet-4-5", `"stream":true`, userA)
	response := send(t, server.URL+"/v1/messages", request)
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	readUntil(t, lines, "content_block_start")
	if d := <-pace.asked; d != time.Minute {
		t.Fatalf("asked to wait for %s", d)
	}
	pace.wake <- struct{}{}
	readUntil(t, lines, `"one`)
	<-pace.asked
	pace.wake <- struct{}{}
	readUntil(t, lines, "message_stop")
}

func readUntil(t *testing.T, lines *bufio.Reader, words string) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("stream ended before %q: %v", words, err)
		}
		if strings.Contains(line, words) {
			return
		}
	}
}

// W16
func TestAClientThatLeavesIsNoticed(t *testing.T) {
	t.Parallel()
	pace := &sleeper{asked: make(chan time.Duration, 1), wake: make(chan struct{})}
	server := providertest.NewServer(t, providerdouble.Config{Sleep: pace.Sleep, Slow: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/messages", bytes.NewReader(askOnce("a")))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"X-Api-Key": {"k"}, "Anthropic-Version": {"2023-06-01"}, providerdouble.MisbehaveHeader: {"slow"}}
	go func() {
		if <-pace.asked == time.Hour {
			cancel()
		}
	}()
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		_ = response.Body.Close()
		t.Fatal("the request was answered")
	}
	if err = server.WaitDone(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if last, _ := server.Last(); !last.Disconnected {
		t.Fatalf("request is %+v", last)
	}
}

// W42
func TestOtherPathsEchoTheRequest(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	body := []byte("any\x00bytes")
	status, answer := post(t, server.URL+"/v1/audio/speech?x=1&y=2", body, "X-Custom", "c")
	var echoed providerdouble.Echoed
	if err := json.Unmarshal([]byte(answer), &echoed); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	if status != 200 || echoed.Method != http.MethodPost || echoed.Path != "/v1/audio/speech" || echoed.Query != "x=1&y=2" || echoed.SHA256 != hex.EncodeToString(sum[:]) ||
		echoed.Size != len(body) || echoed.Header.Get("X-Custom") != "c" {
		t.Fatalf("answer is %d %s", status, answer)
	}
	if status, _ = post(t, server.URL+"/v2/other", nil); status != 404 {
		t.Fatalf("a path outside /v1 is answered %d", status)
	}
}

func TestBodiesAreDecompressedAndBounded(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write(askOnce("packed"))
	_ = writer.Close()
	if status, answer := post(t, server.URL+"/v1/messages", packed.Bytes(), "Content-Encoding", "gzip"); status != 200 || !strings.Contains(answer, "You said: packed") {
		t.Fatalf("gzip is answered %d %s", status, answer)
	}
	if status, _ := post(t, server.URL+"/v1/messages", askOnce("a"), "Content-Encoding", "gzip"); status != 400 {
		t.Fatalf("broken gzip is answered %d", status)
	}
	if status, _ := post(t, server.URL+"/v1/messages", askOnce("a"), "Content-Encoding", "zstd"); status != 415 {
		t.Fatalf("zstd is answered %d", status)
	}
	// W11
	full := append(askOnce("a"), bytes.Repeat([]byte(" "), providerdouble.MaxBody)...)
	if status, answer := post(t, server.URL+"/v1/messages", full[:providerdouble.MaxBody]); status != 200 {
		t.Fatalf("a body of the largest size is answered %d %s", status, answer)
	}
	if status, answer := post(t, server.URL+"/v1/messages", full[:providerdouble.MaxBody+1]); status != 413 || !strings.Contains(answer, "request_too_large") {
		t.Fatalf("a body one byte larger is answered %d %s", status, answer)
	}
	// A14: another provider takes less.
	small := providertest.NewServer(t, providerdouble.Config{MaxBody: len(askOnce("a"))})
	if status, answer := post(t, small.URL+"/v1/messages", askOnce("a")); status != 200 {
		t.Fatalf("a body of the largest size is answered %d %s", status, answer)
	}
	if status, answer := post(t, small.URL+"/v1/messages", askOnce("ab")); status != 413 || !strings.Contains(answer, "request_too_large") {
		t.Fatalf("a body one byte larger is answered %d %s", status, answer)
	}
}

func TestBrokenJSONAndOldVersionsAreRefused(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	for name, test := range map[string]struct {
		path, body string
		headers    []string
		want       string
	}{
		"broken":           {path: "/v1/messages", body: `{"model":`, want: "The request body is not valid JSON"},
		"broken chat":      {path: "/v1/chat/completions", body: `[1`, want: "We could not parse the JSON body of your request."},
		"broken responses": {path: "/v1/responses", body: ``, want: "We could not parse the JSON body of your request."},
		"no version":       {path: "/v1/messages", body: string(askOnce("a")), headers: []string{"Anthropic-Version", ""}, want: "anthropic-version: header is required"},
		"temperature": {path: "/v1/messages", body: string(bodyOf("claude-sonnet-4-5", `"temperature":1`, userA)), headers: []string{"Anthropic-Version", "2026-10-21"},
			want: "temperature: Extra inputs are not permitted"},
		"document": {path: "/v1/messages", body: string(bodyOf("claude-sonnet-4-5", "", userA, assistantOf(`{"type":"document","source":{"type":"text","data":"d"}}`), userA)),
			headers: []string{"Anthropic-Version", "2026-10-21"}, want: "messages.1.content.0: `document` blocks can only be in `user` messages"},
	} {
		status, answer := post(t, server.URL+test.path, []byte(test.body), test.headers...)
		if status != 400 || !strings.Contains(answer, test.want) {
			t.Errorf("%s is answered %d %s", name, status, answer)
		}
	}
}

func TestLongAnswersStopAtTheirLimit(t *testing.T) {
	t.Parallel()
	script := func(providerdouble.Request) providerdouble.Reply { return providerdouble.Reply{Text: words(1000)} }
	server := providertest.NewServer(t, providerdouble.Config{Window: 2000, Script: script})
	limited := strings.Replace(string(askOnce("a")), "4096", "100", 1)
	for name, test := range map[string]struct{ path, body, want string }{
		"anthropic":      {"/v1/messages", limited, `"stop_reason":"max_tokens"`},
		"warm-up":        {"/v1/messages", strings.Replace(limited, "100", "0", 1), `"content":[],"stop_reason":"max_tokens"`},
		"window":         {"/v1/messages", string(askOnce(words(1500))), `"stop_reason":"model_context_window_exceeded"`},
		"chat":           {"/v1/chat/completions", `{"model":"gpt-5.5","max_completion_tokens":100,"messages":[{"role":"user","content":"a"}]}`, `"finish_reason":"length"`},
		"responses":      {"/v1/responses", `{"model":"gpt-5.5","max_output_tokens":100,"input":"a"}`, `"incomplete_details":{"reason":"max_output_tokens"}`},
		"responses, all": {"/v1/responses", `{"model":"gpt-5.5","input":"a"}`, `"status":"completed"`},
	} {
		if status, answer := post(t, server.URL+test.path, []byte(test.body)); status != 200 || !strings.Contains(answer, test.want) {
			t.Errorf("%s is answered %d %s", name, status, answer[:min(len(answer), 300)])
		}
	}
}

func TestScriptsSeeTheRequestAndDecide(t *testing.T) {
	t.Parallel()
	var seen providerdouble.Request
	server := providertest.NewServer(t, providerdouble.Config{Script: func(r providerdouble.Request) providerdouble.Reply {
		seen = r
		if r.User == "refuse" {
			return providerdouble.Reply{Rejection: &providerdouble.Rejection{Status: 402, Type: "billing_error", Message: "pay"}}
		}
		return providerdouble.Reply{Text: "ok", StopReason: "refusal", Usage: &providerdouble.Usage{Input: 7, CacheRead: 5, CacheWrite: 3, CacheWrite1h: 1, Output: 2}}
	}})
	reminder := text("<system-reminder>r</system-reminder>")
	status, answer := post(t, server.URL+"/v1/messages", bodyOf("claude-sonnet-4-5", "", userOf(reminder, text("hi")), callsXY, userOf(resultX, resultY, reminder)))
	if status != 200 || !strings.Contains(answer, `"stop_reason":"refusal"`) || !strings.Contains(answer, `"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":1}`) {
		t.Fatalf("answer is %d %s", status, answer)
	}
	if seen.User != "hi" || strings.Join(seen.Results, "|") != "x|y" || seen.Answers != 1 || seen.Format != providerdouble.Anthropic || seen.Header.Get("X-Api-Key") == "" {
		t.Fatalf("script saw %+v", seen)
	}
	if status, answer = post(t, server.URL+"/v1/messages", askOnce("refuse")); status != 402 || !strings.Contains(answer, "billing_error") {
		t.Fatalf("answer is %d %s", status, answer)
	}
}

func TestResponsesCompactCountAndUpgrade(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{})
	body := []byte(`{"model":"gpt-5.5","input":[{"role":"user","content":"keep me"},{"role":"assistant","content":"b"},{"type":"compaction_trigger"}],"store":false}`)
	status, answer := post(t, server.URL+"/v1/responses", body)
	if status != 200 || !strings.Contains(answer, `"output":[{"type":"compaction","id":"cmp_`) {
		t.Fatalf("a compaction trigger is answered %d %s", status, answer)
	}
	status, answer = post(t, server.URL+"/v1/responses/compact", body)
	var compacted struct {
		Output []json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal([]byte(answer), &compacted); err != nil || status != 200 || len(compacted.Output) != 2 {
		t.Fatalf("compact is answered %d %s", status, answer)
	}
	next := `{"model":"gpt-5.5","input":[` + string(compacted.Output[0]) + `,` + string(compacted.Output[1]) + `]}`
	if err := server.Validate(providerdouble.OpenAIResponses, []byte(next)); err != nil {
		t.Fatalf("what compact answered is refused: %v", err)
	}
	if status, answer = post(t, server.URL+"/v1/responses/input_tokens", body); status != 200 || !strings.Contains(answer, `"input_tokens":`) {
		t.Fatalf("input_tokens is answered %d %s", status, answer)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/responses", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer sk-test")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err = io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusUpgradeRequired {
		t.Fatalf("a WebSocket is answered %d, %v", response.StatusCode, err)
	}
}

func TestMeasureIsWhatIsReported(t *testing.T) {
	t.Parallel()
	server := providertest.NewServer(t, providerdouble.Config{TokensPerO200k: 1.33})
	for path, test := range map[string]struct{ format, body string }{
		"/v1/messages":         {providerdouble.Anthropic, string(askOnce(words(1000)))},
		"/v1/chat/completions": {providerdouble.OpenAIChat, `{"model":"gpt-5.5","messages":[{"role":"user","content":"` + words(1000) + `"}]}`},
		"/v1/responses":        {providerdouble.OpenAIResponses, `{"model":"gpt-5.5","input":"` + words(1000) + `"}`},
	} {
		measured, err := server.Measure(test.format, []byte(test.body))
		if err != nil || measured != 1334 {
			t.Errorf("%s measures %d, %v", test.format, measured, err)
		}
		post(t, server.URL+path, []byte(test.body))
		if last, _ := server.Last(); last.Prompt != measured {
			t.Errorf("%s reports %d, measured %d", test.format, last.Prompt, measured)
		}
	}
	if _, err := server.Measure(providerdouble.Anthropic, askOnce("")); err == nil {
		t.Error("a refused body has a measure")
	}
}

// A client may send Anthropic's version with every request.
func TestThePathDecidesTheFormat(t *testing.T) {
	t.Parallel()

	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/responses", strings.NewReader(`{"model":"gpt-5.6-sol","input":"hi"}`))
	request.Header.Set("Anthropic-Version", "2023-06-01")
	request.Header.Set("X-Api-Key", "sk-ant-test")
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	if providerdouble.NewHandler(providerdouble.Config{}).ServeHTTP(answer, request); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"object":"response"`) {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}
