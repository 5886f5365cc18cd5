package api

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
)

// streamedSession is a session of Responses whose answer is streamed. It fills more
// than half of largeEnough, and less than would have it compressed.
var streamedSession = strings.Replace(responsesSession(500), `"store":false`, `"store":false,"stream":true`, 1)

const largeEnough = 60_000

// W22, E4, B6: a stream that turns out to be a refusal before it has said anything of an
// answer is made good as any other refusal is, and the client sees one stream.
func TestLateOverflowIsAnsweredByOneSmallerPrompt(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{Window: small, LateOverflow: true})
	p := setupAt(t, double.URL)
	p.store.windows["gpt-5.5"] = largeEnough
	got := p.send(http.MethodPost, responsesPath, streamedSession)
	if got.status != http.StatusOK || got.header.Get("X-Palimpsest-Compression") != "emergency" || got.header.Get("X-Palimpsest-Attempts") != "2" {
		t.Fatalf("status %d, headers %v: %.300s", got.status, got.header, got.body)
	}
	stream := string(got.body)
	for event, times := range map[string]int{"created": 1, "in_progress": 1, "completed": 1, "failed": 0} {
		if found := strings.Count(stream, "event: response."+event+"\n"); found != times {
			t.Errorf("the stream has %d events %s", found, event)
		}
	}
	sent := double.Requests()
	if len(sent) != 2 || string(sent[0].Body) != streamedSession || len(sent[1].Body) >= len(sent[0].Body) || sent[1].Prompt > small {
		t.Fatalf("%d requests, the last of %d tokens", len(sent), sent[len(sent)-1].Prompt)
	}
	recorded := p.last(1)
	if recorded.Answer.Attempts != 2 || recorded.Answer.ErrorType != "" || recorded.Tokens.Input == 0 || !strings.Contains(string(recorded.Prompt.Report), `"type":"overflow"`) {
		t.Errorf("recorded: %+v %s", recorded, recorded.Prompt.Report)
	}
	next := p.send(http.MethodPost, responsesPath, streamedSession)
	if again, _ := double.Last(); next.header.Get("X-Palimpsest-Compression") != "frozen" || string(again.Body) != string(sent[1].Body) {
		t.Errorf("the next request sends another prompt: %v", next.header)
	}
}

const (
	opening    = "event: response.created\r\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\",\"future\":1e400}}\r\n\r\n"
	opened     = "event: response.in_progress\ndata: {\"type\":\"response.in_progress\",\"response\":{}}\n\n"
	overflowed = "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model.\"}}}\n\n"
	asError    = "event: error\ndata: {\"type\":\"error\",\"code\":\"context_length_exceeded\",\"message\":\"too long\",\"param\":null}\n\n"
	nested     = "data: {\"type\":\"error\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"too long\"}}\n\n"
	limited    = "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"Rate limit reached: too many tokens per minute\"}}}\n\n"
	delta      = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\n"
)

// streams answers one request after the other with the next stream, a byte a write
// where it is short, and the last one permanently. A stream that ends with cut ends early.
func streams(asked *atomic.Int32, answers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		stream, broken := strings.CutSuffix(answers[min(int(asked.Add(1)), len(answers))-1], "cut")
		control := http.NewResponseController(w)
		for i := range len(stream) {
			_, _ = io.WriteString(w, stream[i:i+1])
			_ = control.Flush()
		}
		if broken {
			panic(http.ErrAbortHandler)
		}
	}
}

// W20, W22, W23, E4, B6: whatever a stream says is the client's byte for byte, but for a
// refusal that a smaller prompt mends; and there are never more than two attempts.
func TestOpeningOfAStreamIsHeldBackForARefusalOnly(t *testing.T) {
	t.Parallel()
	answered := opening + opened + delta
	for name, test := range map[string]struct {
		first, second string
		want          string
		asked         int32
		broken        bool
	}{
		"refused":                {first: opening + opened + overflowed, second: answered, want: answered, asked: 2},
		"refused at once":        {first: overflowed, second: answered, want: answered, asked: 2},
		"refused as an error":    {first: opening + asError, second: answered, want: answered, asked: 2},
		"refused without a name": {first: opening + nested, second: answered, want: answered, asked: 2},
		"refused twice":          {first: opening + opened + overflowed, second: opening + asError, want: opening + opened + overflowed, asked: 2},
		"smaller one ends early": {first: opening + overflowed, second: answered + "cut", want: answered, asked: 2, broken: true},
		"answered":               {first: answered, want: answered, asked: 1},
		"refused for its rate":   {first: opening + limited, want: opening + limited, asked: 1},
		"refused in the middle":  {first: answered + overflowed, want: answered + overflowed, asked: 1},
		"ends early":             {first: opening + opened[:20] + "cut", want: opening + opened[:20], asked: 1, broken: true},
		"says nothing":           {first: "", want: "", asked: 1},
		"ends with its opening":  {first: opening, want: opening, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			p := setup(t, streams(&asked, test.first, test.second))
			p.store.windows["gpt-5.5"] = largeEnough
			got := p.send(http.MethodPost, responsesPath, streamedSession)
			if got.status != http.StatusOK || string(got.body) != test.want || asked.Load() != test.asked || (got.broken != nil) != test.broken {
				t.Errorf("asked %d times, status %d, %v:\n%s", asked.Load(), got.status, got.broken, got.body)
			}
		})
	}
}

// B6: where the smaller prompt is refused too, the client's next one is made smaller.
func TestLateOverflowMakesTheNextPromptSmaller(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	p.store.windows["gpt-5.5"] = largeEnough
	late := p.send(http.MethodPost, responsesPath, streamedSession, providerdouble.MisbehaveHeader, providerdouble.MisbehaveOverflowLate)
	if late.status != http.StatusOK || !strings.Contains(string(late.body), "context_length_exceeded") || late.header.Get("X-Palimpsest-Compression") != "none" {
		t.Fatalf("status %d, headers %v: %s", late.status, late.header, late.body)
	}
	if late.header.Get("X-Palimpsest-Attempts") != "2" {
		t.Errorf("headers %v", late.header)
	}
	p.last(1)
	next := p.send(http.MethodPost, responsesPath, streamedSession)
	if next.status != http.StatusOK || len(double.Requests()) != 3 || next.header.Get("X-Palimpsest-Compression") == "none" {
		t.Errorf("status %d, headers %v", next.status, next.header)
	}
}

// W14: nothing is held back of a stream whose prompt is far from too long, or must stay as
// it is, nor behind a second comment that keeps the connection alive.
func TestOpeningOfAStreamIsPassedOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body   string
		header []string
		first  string
	}{
		"short":    {body: `{"model":"gpt-5.5","stream":true,"input":"hi"}`, first: opening},
		"bypassed": {body: streamedSession, header: []string{"X-Palimpsest-Bypass", "true"}, first: opening},
		"comment":  {body: streamedSession, first: opening + ": keep alive\n\n: keep alive\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := make(prompts)
			p := setup(t, next.stream)
			p.store.windows["gpt-5.5"] = largeEnough
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			go func() { next <- test.first }()
			response := p.open(ctx, http.MethodPost, responsesPath, test.body, test.header...)
			read(t, response.Body, test.first) // before anything more is said
			close(next)
			_ = response.Body.Close()
		})
	}
}
