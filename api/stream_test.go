package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const streamed = `{"model":"claude-sonnet-4-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hi"}]}`

// prompts tells a provider to write its next chunk, and ends with the test.
type prompts chan string

// stream answers with an event stream of the chunks that come in.
func (c prompts) stream(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	_ = control.Flush()
	for {
		select {
		case chunk, more := <-c:
			if !more {
				return
			}
			_, _ = io.WriteString(w, chunk)
			_ = control.Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// read reads exactly the bytes of want from an answer.
func read(t testing.TB, from io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("read %q (%v), want %q", got, err, want)
	}
}

// W14, S26: the provider writes a chunk only once the client has seen the one before,
// so nothing is held back. How long one takes, BenchmarkChunk measures.
func TestEveryChunkArrivesBeforeTheNextIsWritten(t *testing.T) {
	t.Parallel()
	chunks := []string{
		"event: message_start\r\ndata: {\"type\":\"message_start\"}\r\n\r\n",
		"event: ping\ndata: {\"type\": \"ping\"}\n\n",
		": a comment\n\n",
		"data: {\"text\":\"half a word and \xe2\x82", "\xac and an emoji \xf0\x9f", "\x98\x80\"}\n", "\n",
		"event: nobody_knows\ndata: 1\ndata: 2\n\n", "retry: 3\n\n", "\r", "\n", "data: [DONE]",
	}
	for name, body := range map[string]string{messagesPath: streamed, chatPath: chatStream, responsesPath: `{"model":"gpt-5.5","stream":true,"input":"hi"}`} {
		next := make(prompts)
		p := setup(t, next.stream)
		response := p.open(t.Context(), http.MethodPost, name, body)
		for range 5 {
			for _, chunk := range chunks {
				next <- chunk
				read(t, response.Body, chunk)
			}
		}
		close(next)
		if rest, err := io.ReadAll(response.Body); len(rest) > 0 || err != nil {
			t.Errorf("%s: the stream goes on with %q (%v)", name, rest, err)
		}
		_ = response.Body.Close()
	}
}

// chatStream asks for the usage: nothing is taken out of its stream.
const chatStream = `{"model":"gpt-5.5","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`

// W14: the head of a stream does not wait for its first event.
func TestHeadOfAStreamGoesOutAtOnce(t *testing.T) {
	t.Parallel()
	next := make(prompts)
	p := setup(t, next.stream)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	response := p.open(ctx, http.MethodPost, messagesPath, streamed) // returns before any chunk
	if response.StatusCode != http.StatusOK || response.Header.Get("X-Palimpsest-Compression") != "none" {
		t.Errorf("status %d, headers %v", response.StatusCode, response.Header)
	}
	close(next)
	_ = response.Body.Close()
}

const (
	started = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-sonnet-4-5\",\"usage\":{\"input_tokens\":41,\"output_tokens\":1}}}\n\n"
	failed  = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
)

// W15: an error inside a stream is forwarded, the stream ends with it, and what
// was reported until then counts.
func TestErrorInsideAStreamIsForwarded(t *testing.T) {
	t.Parallel()
	next := make(prompts, 2)
	next <- started
	next <- failed
	close(next)
	p := setup(t, next.stream)
	got := p.send(http.MethodPost, messagesPath, streamed)
	if got.status != http.StatusOK || string(got.body) != started+failed || got.broken != nil {
		t.Errorf("status %d, %v: %q", got.status, got.broken, got.body)
	}
	recorded := p.last(1)
	if recorded.Answer.ErrorFrom != "provider" || recorded.Answer.ErrorType != "overloaded_error" || recorded.Tokens.Input != 41 || recorded.Tokens.Output != 1 {
		t.Errorf("recorded: %+v", recorded)
	}
}

// staysOpen is a provider that begins a stream, and then says nothing until its client has
// left.
func staysOpen(left func()) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, started)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		left()
	}
}

// W16, S24: when the client leaves, the provider hears of it, and the session goes on.
// How soon, BenchmarkLeaving measures.
func TestClientThatLeavesCancelsTheProvider(t *testing.T) {
	t.Parallel()
	left := make(chan struct{}, 1)
	p := setup(t, staysOpen(func() { left <- struct{}{} }))
	ctx, cancel := context.WithCancel(t.Context())
	response := p.open(ctx, http.MethodPost, messagesPath, streamed)
	read(t, response.Body, started)
	cancel()
	_ = response.Body.Close()
	awaitOne(t, left)
	recorded := p.last(1)
	if recorded.Tokens.Input != 41 || !p.log.holds(`"aborted":"client"`) {
		t.Errorf("recorded: %+v\n%s", recorded, p.log)
	}
	if writes := p.memory.writes(); writes[1] == 0 {
		t.Error("the request is not recorded")
	}
}

// W17: an answer that ends early ends early for the client too, and nothing is
// made up for its end.
func TestStreamThatBreaksOffIsNotMended(t *testing.T) {
	t.Parallel()
	const part = "data: {\"type\":\"content_block_delta\",\"del"
	for name, test := range map[string]struct{ path, body, whole string }{
		"messages":             {messagesPath, streamed, started},
		"chat":                 {chatPath, chatStream, "data: {\"choices\":[{\"index\":0}]}\n\n"},
		"chat, usage added":    {chatPath, strings.Replace(chatStream, "true}", "false}", 1), "data: {\"choices\":[{\"index\":0}]}\n\n"},
		"responses":            {responsesPath, `{"model":"gpt-5.5","stream":true,"input":"hi"}`, "event: response.created\ndata: {\"type\":\"response.created\"}\n\n"},
		"whole, with a length": {messagesPath, streamed, "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if strings.Contains(name, "length") {
					w.Header().Set("Content-Length", "1000")
				} else {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				_, _ = io.WriteString(w, test.whole+part)
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})
			got := p.send(http.MethodPost, test.path, test.body)
			if !errors.Is(got.broken, io.ErrUnexpectedEOF) || string(got.body) != test.whole+part {
				t.Errorf("ended with %v: %q", got.broken, got.body)
			}
			if recorded := p.last(1); recorded.Answer.ErrorFrom != "provider" {
				t.Errorf("recorded: %+v", recorded)
			}
		})
	}
}

const (
	chatFirst = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hi\"}}],\"usage\":null}\n\n"
	chatLast  = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n"
	chatUsage = "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":50,\"completion_tokens\":7,\"total_tokens\":57,\"prompt_tokens_details\":{\"cached_tokens\":20}}}\n\n"
	chatDone  = "data: [DONE]\n\n"
)

// W18, W19: a usage that the client did not ask for is asked for, counted and
// taken out again; one that it asked for comes once, untouched.
func TestUsageOfAChatStreamIsTheClientsIfItAskedForIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options string
		sent    string // stream_options at the provider
		want    string
		tokens  int
	}{
		"not asked for": {``, `"stream_options":{"include_usage":true}`, chatFirst + chatLast + chatDone, 30},
		"refused":       {`"stream_options":{"include_usage":false,"include_obfuscation":false},`, `"stream_options":{"include_usage":true,"include_obfuscation":false},`, chatFirst + chatLast + chatDone, 30},
		"asked for":     {`"stream_options":{"include_usage":true},`, `"stream_options":{"include_usage":true},`, chatFirst + chatLast + chatUsage + chatDone, 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived := make(chan string, 1)
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				content, _ := io.ReadAll(r.Body)
				arrived <- string(content)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, chatFirst+chatLast)
				if strings.Contains(string(content), `"include_usage":true`) {
					_, _ = io.WriteString(w, chatUsage)
				}
				_, _ = io.WriteString(w, chatDone)
			})
			body := `{"model":"gpt-5.5","stream":true, ` + test.options + `"messages":[ {"role":"user","content":"hi"} ] }`
			got := p.send(http.MethodPost, chatPath, body)
			if string(got.body) != test.want {
				t.Errorf("the client gets\n%s\nwant\n%s", got.body, test.want)
			}
			sent := <-arrived
			if !strings.Contains(sent, test.sent) || test.options != "" && strings.Replace(sent, test.sent, test.options, 1) != body {
				t.Errorf("the provider gets %s", sent)
			}
			if recorded := p.last(1); recorded.Tokens.Input != test.tokens || recorded.Tokens.CacheRead != 20 || recorded.Tokens.Output != 7 {
				t.Errorf("recorded: %+v", recorded)
			}
		})
	}
}

// W18, W26, W41, W54: a stream whose prompt is to be left alone goes out byte for byte. It is metered by
// the usage that it asks for itself, else by an estimate.
func TestBypassedChatStreamIsMetered(t *testing.T) {
	t.Parallel()
	options := `"stream_options":{"include_usage":true}`
	for name, test := range map[string]struct {
		body, want  string
		isEstimated bool
	}{
		"not asked for": {`{"model":"gpt-5.5",  "stream":true,"messages":[ {"role":"user","content":"hi"} ] }`, chatFirst + chatDone, true},
		"asked for":     {chatStream, chatFirst + chatUsage + chatDone, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived := make(chan string, 1)
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				content, _ := io.ReadAll(r.Body)
				arrived <- string(content)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, chatFirst)
				if strings.Contains(string(content), options) {
					_, _ = io.WriteString(w, chatUsage)
				}
				_, _ = io.WriteString(w, chatDone)
			})
			got := p.send(http.MethodPost, chatPath, test.body, "X-Palimpsest-Bypass", "true")
			if sent := <-arrived; sent != test.body || string(got.body) != test.want {
				t.Errorf("sent %s\ngot %s", sent, got.body)
			}
			recorded := p.last(1)
			isEstimated := recorded.Tokens.Input == recorded.Prompt.TokensAfter && strings.Contains(string(recorded.Prompt.Report), `"type":"estimated"`)
			isReported := recorded.Tokens.Input == 30 && recorded.Tokens.CacheRead == 20 && recorded.Tokens.Output == 7
			if recorded.Prompt.Compression != "bypassed" || isEstimated != test.isEstimated || isReported == test.isEstimated || recorded.Cost.CostMicroUSD == 0 {
				t.Errorf("recorded: %+v", recorded)
			}
		})
	}
}

// E7, E13, W20, W48: names, numbers and usage of a stream of Responses, and of any other
// answer, are the provider's.
func TestAnswersAreTheProvidersByteForByte(t *testing.T) {
	t.Parallel()
	var events strings.Builder
	for i, name := range []string{"response.created", "response.queued", "response.output_text.delta", "response.nobody_knows", "response.completed"} {
		_, _ = fmt.Fprintf(&events, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,\"response\":{\"usage\":{\"input_tokens\":199500,\"output_tokens\":%d}}}\n\n", name, name, i, i)
	}
	whole := `{"usage": {"input_tokens":199500,"future_tokens":1e400}, "content":[]}` + "\n"
	for path, test := range map[string]struct{ body, media, answer string }{
		responsesPath: {`{"model":"gpt-5.5","stream":true,"input":"hi"}`, "text/event-stream", events.String()},
		messagesPath:  {streamed, "application/json", whole},
		chatPath:      {chatStream, "text/event-stream; charset=utf-8", chatFirst + chatUsage + chatDone},
	} {
		p := setup(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", test.media)
			_, _ = io.WriteString(w, test.answer)
		})
		if got := p.send(http.MethodPost, path, test.body); string(got.body) != test.answer || got.header.Get("Content-Type") != test.media {
			t.Errorf("%s: %v: %q", path, got.header, got.body)
		}
	}
}

// W14, W17: a provider that answers at once, well or not, breaks no answer.
func TestQuickAnswersAreNeverBroken(t *testing.T) {
	t.Parallel()
	answers := []struct {
		status int
		media  string
		body   string
	}{
		{429, "application/json", `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`},
		{529, "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
		{400, "application/json", `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`},
		{500, "text/html", "<html>oops</html>"},
		{413, "application/json", `{}`},
		{200, "text/event-stream", started},
		{200, "application/json", `{"type":"message","content":[]}`},
		{204, "application/json", ""},
	}
	var served atomic.Int64
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) { // it reads nothing
		answer := answers[int(served.Add(1))%len(answers)]
		w.Header().Set("Content-Type", answer.media)
		w.Header().Set("X-Ms-Answer", fmt.Sprintf("%d %q", answer.status, answer.body))
		w.WriteHeader(answer.status)
		_, _ = io.WriteString(w, answer.body)
	})
	bodies := []string{streamed, toolSession("claude-sonnet-4-5", 20, 500), toolSession("claude-sonnet-4-5", 60, 1500)}
	var clients sync.WaitGroup
	for worker := range 4 {
		clients.Go(func() {
			for i := range 200 {
				got := p.send(http.MethodPost, messagesPath, bodies[(worker+i)%len(bodies)])
				if got.broken != nil || fmt.Sprintf("%d %q", got.status, got.body) != got.header.Get("X-Ms-Answer") {
					t.Errorf("status %d, %v: %s", got.status, got.broken, got.body)
				}
			}
		})
	}
	clients.Wait()
}

// Large uploads and downloads stream through, in both directions at once.
func TestLargeRelaysAreNotBuffered(t *testing.T) {
	t.Parallel()
	const size, piece = 40 << 20, 1 << 20
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		w.Header().Set("Content-Type", "application/octet-stream")
		buffer := make([]byte, piece)
		for {
			n, err := io.ReadFull(r.Body, buffer)
			_, _ = w.Write(buffer[:n])
			_ = control.Flush()
			if err != nil {
				return
			}
		}
	})
	reader, writer := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/v1/files", reader)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+testKey)
	seen := make(chan struct{}) // by the client: the piece it sent has come back
	var sender sync.WaitGroup
	sender.Go(func() {
		defer writer.Close()
		chunk := strings.Repeat("x", piece)
		for range size / piece {
			if _, err := io.WriteString(writer, chunk); err != nil {
				return
			}
			<-seen
		}
	})
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	from := bufio.NewReader(response.Body)
	buffer := make([]byte, piece)
	for range size / piece {
		if _, err := io.ReadFull(from, buffer); err != nil {
			t.Fatal(err)
		}
		seen <- struct{}{}
	}
	sender.Wait()
	if rest, err := io.ReadAll(from); len(rest) > 0 || err != nil {
		t.Errorf("%d bytes more (%v)", len(rest), err)
	}
}
