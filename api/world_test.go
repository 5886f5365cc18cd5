package api

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/tenants"
)

// plainStream is a stream whose client does not ask for its usage.
const plainStream = `{"model":"gpt-5.1","stream":true,"messages":[{"role":"user","content":"hi"}]}`

// W53: the usage of every dialect is read, streamed or not, and cached tokens are never counted as
// uncached.
func TestUsageOfEveryDialectIsRead(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(sharedtest.Path(t, "data", "reports", "usage.json"))
	if err != nil {
		t.Fatal(err)
	}
	type count struct {
		Input      int
		CacheRead  int `json:"cache_read"`
		CacheWrite int `json:"cache_write"`
		Output     int
	}
	type dialect struct {
		Name, Format, Answer string
		Stream               bool
		Usage                count
	}
	var all []dialect
	if err := json.Unmarshal(content, &all); err != nil {
		t.Fatal(err)
	}
	chat := func(usage string) string {
		return `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":` + usage + `}`
	}
	const done = `{"type":"response.completed","response":{"status":"completed","model":"m","output":[],"usage":{"input_tokens":1336,"input_tokens_details":{"cached_tokens":1280},"output_tokens":31}}}`
	all = append(all,
		dialect{"litellm", "chat", chat(`{"prompt_tokens":1336,"completion_tokens":31,"total_tokens":1367,"prompt_tokens_details":{"cached_tokens":1000},"cache_read_input_tokens":1000,"cache_creation_input_tokens":300}`), false, count{36, 1000, 300, 31}},
		dialect{"cache beside the prompt", "chat", chat(`{"prompt_tokens":56,"completion_tokens":31,"total_tokens":1367,"cache_read_input_tokens":1280}`), false, count{56, 1280, 0, 31}},
		dialect{"xai, reasoning beside the answer", "chat", chat(`{"prompt_tokens":1336,"completion_tokens":11,"total_tokens":1367,"prompt_tokens_details":{"cached_tokens":1280},"completion_tokens_details":{"reasoning_tokens":20}}`), false, count{56, 1280, 0, 31}},
		dialect{"names of Responses", "chat", chat(`{"input_tokens":1336,"output_tokens":31,"input_tokens_details":{"cached_tokens":1280}}`), false, count{56, 1280, 0, 31}},
		dialect{"mistral", "chat", chat(`{"prompt_tokens":1336,"completion_tokens":31,"total_tokens":1367,"num_cached_tokens":1280,"prompt_tokens_details":{"cached_tokens":null}}`), false, count{56, 1280, 0, 31}},
		dialect{"google's cache at openrouter, read as it is written", "chat", chat(`{"prompt_tokens":2168,"completion_tokens":100,"total_tokens":2268,"prompt_tokens_details":{"cached_tokens":2161,"cache_write_tokens":2161}}`), false, count{7, 2161, 2161, 100}},
		dialect{"what the provider's own compaction took", "anthropic", `{"type":"message","role":"assistant","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","usage":{"input_tokens":229,"output_tokens":8,"iterations":[{"type":"compaction","input_tokens":100,"cache_creation_input_tokens":55096,"output_tokens":128},{"type":"message","input_tokens":229,"output_tokens":8}]}}`, false, count{329, 0, 55096, 136}},
		dialect{"details null", "chat", chat(`{"prompt_tokens":1336,"completion_tokens":31,"prompt_tokens_details":null}`), false, count{1336, 0, 0, 31}},
		dialect{"groq, older", "chat", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}],\"x_groq\":{\"usage\":{\"prompt_tokens\":1336,\"completion_tokens\":31}}}\n\ndata: [DONE]\n\n", true, count{1336, 0, 0, 31}},
		dialect{"no blank line behind the usage", "chat", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1336,\"completion_tokens\":31}}", true, count{1336, 0, 0, 31}},
		dialect{"zeros at the end", "anthropic", "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":56,\"cache_read_input_tokens\":1280,\"output_tokens\":1}}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":0,\"cache_read_input_tokens\":0,\"output_tokens\":31}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}", true, count{56, 1280, 0, 31}},
		dialect{"estimate first", "anthropic", "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1336,\"output_tokens\":0}}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":56,\"cache_read_input_tokens\":1280,\"output_tokens\":31}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", true, count{56, 1280, 0, 31}},
		dialect{"OpenAI's names in Anthropic's format", "anthropic", `{"type":"message","role":"assistant","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","usage":{"input_tokens":1336,"cached_tokens":1280,"output_tokens":31}}`, false, count{56, 1280, 0, 31}},
		dialect{"counts as strings", "anthropic", `{"type":"message","role":"assistant","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","usage":{"input_tokens":"56","cache_read_input_tokens":"1280","output_tokens":"31"}}`, false, count{56, 1280, 0, 31}},
		dialect{"google's own", "chat", strings.Replace(chat(`null`), `"usage":null`, `"usageMetadata":{"promptTokenCount":1336,"candidatesTokenCount":11,"thoughtsTokenCount":20,"totalTokenCount":1367,"cachedContentTokenCount":1280}`, 1), false, count{56, 1280, 0, 31}},
		dialect{"google's own, growing", "chat", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}],\"usageMetadata\":{\"promptTokenCount\":1336,\"totalTokenCount\":1336}}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usageMetadata\":{\"promptTokenCount\":1336,\"candidatesTokenCount\":31,\"totalTokenCount\":1367}}\n\ndata: [DONE]\n\n", true, count{1336, 0, 0, 31}},
		dialect{"cohere's own", "chat", strings.Replace(chat(`null`), `"usage":null`, `"meta":{"billed_units":{"input_tokens":56,"output_tokens":31},"tokens":{"input_tokens":122,"output_tokens":33}}`, 1), false, count{56, 0, 0, 31}},
		dialect{"no blank line", "responses", "event: response.completed\ndata: " + done, true, count{56, 1280, 0, 31}},
		dialect{"one line end", "responses", "event: response.completed\r\ndata: " + done + "\r\n", true, count{56, 1280, 0, 31}},
		dialect{"usage beside the response", "responses", `data: {"type":"response.completed","response":{"status":"completed","output":[]},"usage":{"input_tokens":1336,"input_tokens_details":{"cached_tokens":1280},"output_tokens":31}}` + "\n\n", true, count{56, 1280, 0, 31}},
	)
	for _, test := range all {
		t.Run(test.Format+" "+test.Name, func(t *testing.T) {
			t.Parallel()
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[test.Stream && !strings.HasPrefix(test.Answer, "{")])
				_, _ = io.WriteString(w, test.Answer)
			})
			path, body := chatPath, `{"model":"gpt-5.1","messages":[{"role":"user","content":"hi"}]`
			switch test.Format {
			case "anthropic":
				path, body = messagesPath, `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"hi"}]`
			case "responses":
				path, body = responsesPath, `{"model":"gpt-5.1","input":"hi"`
			}
			if test.Stream {
				body += `,"stream":true`
			}
			p.send(http.MethodPost, path, body+"}")
			got := p.last(1)
			if read := (count{got.Tokens.Input, got.Tokens.CacheRead, got.Tokens.CacheWrite, got.Tokens.Output}); read != test.Usage {
				t.Errorf("read %+v, want %+v", read, test.Usage)
			}
		})
	}
}

// W18, W54: a usage that the client did not ask for stays out of its stream in every dialect.
func TestUsageNobodyAskedForIsTakenOutInEveryDialect(t *testing.T) {
	t.Parallel()
	const said = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n"
	for name, usage := range map[string]string{
		"no choices": "data: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n", "null": "data: {\"choices\":null,\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n",
		"no blank line": "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}",
	} {
		var asked atomic.Int32
		p := setup(t, streams(&asked, said+usage))
		if got := p.send(http.MethodPost, chatPath, plainStream); string(got.body) != said {
			t.Errorf("%s: %q", name, got.body)
		}
		if recorded := p.last(1); recorded.Tokens.Input != 1 {
			t.Errorf("%s: recorded %+v", name, recorded.Tokens)
		}
	}
}

// W54: a server that refuses stream_options answers all the same, is asked for them once for each
// provider key, and never with bypass.
func TestServersThatRefuseStreamOptionsAreAskedOnce(t *testing.T) {
	t.Parallel()
	const answer = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	for name, test := range map[string]struct {
		status int
		body   string
	}{
		"azure":   {400, `{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error"}}`},
		"mistral": {422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}}`},
		"a field": {400, `{"detail":"unknown field include_usage"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var with, without atomic.Int32
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if bytes.Contains(body, []byte("stream_options")) {
					with.Add(1)
					w.WriteHeader(test.status)
					_, _ = io.WriteString(w, test.body)
					return
				}
				without.Add(1)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, answer)
			})
			for _, header := range [][]string{{"X-Palimpsest-Bypass", "true"}, nil, nil, nil} {
				if got := p.send(http.MethodPost, chatPath, plainStream, header...); got.status != http.StatusOK || string(got.body) != answer {
					t.Fatalf("%v: status %d: %s", header, got.status, got.body)
				}
			}
			if with.Load() != 1 || without.Load() != 4 {
				t.Errorf("asked %d times with and %d times without", with.Load(), without.Load())
			}
			own := strings.Replace(plainStream, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)
			if got := p.send(http.MethodPost, chatPath, own); got.status != test.status || string(got.body) != test.body || with.Load() != 2 {
				t.Errorf("what the client asks for itself: status %d after %d requests: %s", got.status, with.Load(), got.body)
			}
		})
	}
}

// W51: an answer that is not waited for any longer is told as it is, and charged for.
func TestLateProviderIsToldAndCharged(t *testing.T) {
	t.Parallel()
	p := setup(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	p.store.limit(tenants.Limits{Quota: tenants.Quota{MonthMicroUSD: 1_000_000}})
	p.store.mu.Lock()
	for i := range p.store.keys {
		p.store.keys[i].Wait = time.Second // long enough to send the request on a loaded machine
	}
	p.store.mu.Unlock()
	got := p.send(http.MethodPost, messagesPath, askClaude)
	text := string(got.body)
	if got.status != http.StatusGatewayTimeout || !strings.Contains(text, "charge") || strings.Contains(text, "Nothing was lost") || got.header.Get("X-Should-Retry") != "false" {
		t.Errorf("status %d, headers %v: %s", got.status, got.header, text)
	}
	if recorded := p.last(1); recorded.Cost.CostMicroUSD == 0 || !strings.Contains(string(recorded.Prompt.Report), `"type":"estimated"`) {
		t.Errorf("recorded: %+v", recorded)
	}
}

// W51: a connection that ended before an answer may have been charged for.
func TestEndedConnectionIsNotCalledUnreachable(t *testing.T) {
	t.Parallel()
	if unanswered := problem(upstream.ErrUnanswered); unanswered.Status != http.StatusBadGateway || strings.Contains(unanswered.Message, "Nothing was lost") || !strings.Contains(unanswered.Message, "charge") {
		t.Errorf("%+v", unanswered)
	}
	if unreachable := problem(upstream.ErrUnreachable); !strings.Contains(unreachable.Message, "Nothing was lost") {
		t.Errorf("%+v", unreachable)
	}
}

// W10: bodies in every coding that clients use, in any case, several in turn, and none larger than it may be.
func TestBodiesOfEveryCodingAreRead(t *testing.T) {
	t.Parallel()
	body := `{"model":"gpt-5.1","input":"` + strings.Repeat("x y z ", 4000) + `"}`
	coded := func(wrap func(io.Writer) io.WriteCloser, text string) string {
		var out bytes.Buffer
		writer := wrap(&out)
		_, _ = io.WriteString(writer, text)
		_ = writer.Close()
		return out.String()
	}
	zip := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	zlibbed := func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
	raw := func(w io.Writer) io.WriteCloser {
		writer, err := flate.NewWriter(w, 6)
		if err != nil {
			t.Error(err)
		}
		return writer
	}
	zst := func(options ...zstd.EOption) func(w io.Writer) io.WriteCloser {
		return func(w io.Writer) io.WriteCloser {
			writer, err := zstd.NewWriter(w, options...)
			if err != nil {
				t.Error(err)
			}
			return writer
		}
	}
	large := strings.Repeat(" ", maxBody+1)
	for name, test := range map[string]struct {
		encoding, body string
		status         int
	}{
		"x-gzip": {"x-gzip", coded(zip, body), 200}, "capitals": {"ZSTD", coded(zst(), body), 200}, "gzip in capitals": {"GZip", coded(zip, body), 200},
		"zlib": {"deflate", coded(zlibbed, body), 200}, "raw": {"deflate", coded(raw, body), 200},
		"two": {"gzip, zstd", coded(zst(), coded(zip, body)), 200}, "identity too": {"identity, gzip", coded(zip, body), 200}, "three": {"deflate,gzip,x-gzip", coded(zip, coded(zip, coded(zlibbed, body))), 200},
		"a large window": {"zstd", coded(zst(zstd.WithWindowSize(128<<20), zstd.WithSingleSegment(false)), body), 200},
		"four":           {"gzip,gzip,gzip,gzip", coded(zip, body), 415}, "unknown": {"lz4", body, 415}, "one of them unknown": {"gzip, lz4", body, 415},
		"not zlib": {"deflate", body, 400}, "cut": {"gzip", coded(zip, body)[:40], 400}, "empty": {"deflate", "", 400},
		"too large": {"deflate", coded(zlibbed, large), 413}, "too large inside": {"gzip, zstd", coded(zst(), coded(zip, large)), 413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got atomic.Value
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body)
				got.Store(string(text) + r.Header.Get("Content-Encoding"))
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"status":"completed","output":[]}`)
			})
			answer := p.send(http.MethodPost, responsesPath, test.body, "Content-Encoding", test.encoding)
			if sent, _ := got.Load().(string); answer.status != test.status || (test.status == 200) != (sent == body) {
				t.Errorf("status %d: %.200s", answer.status, answer.body)
			}
		})
	}
}
