package apibench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// chunks is the number of deltas in a streamed answer.
const chunks = 50

// Below slowPath a provider waits slowPause before each chunk of a stream.
const (
	slowPath  = "/slow"
	slowPause = 40 * time.Millisecond
)

// Provider answers the Messages API at once, always with the same answer, because it only has to be fast.
type Provider struct{ buffers sync.Pool }

// NewProvider returns a Provider.
func NewProvider() *Provider {
	provider := &Provider{}
	provider.buffers.New = func() any { return bytes.NewBuffer(make([]byte, 0, 1<<20)) }

	return provider
}

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, is := p.buffers.Get().(*bytes.Buffer)
	if !is {
		body = &bytes.Buffer{}
	}
	body.Reset()
	defer p.buffers.Put(body)
	if _, err := io.Copy(body, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	if bytes.Contains(body.Bytes(), []byte(`"stream":true`)) {
		stream(w, r, body.Len()/4)
		return
	}
	answer := fmt.Sprintf(`{"id":"msg_bench","type":"message","role":"assistant","model":"`+model+`","content":[{"type":"text","text":"%s"}],`+
		`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":140}}`,
		strings.Repeat("The answer still sees what matters. ", 16), body.Len()/4)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = io.WriteString(w, answer) // fails only if the client is gone
}

func stream(w http.ResponseWriter, r *http.Request, tokens int) {
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	send := func(event, data string) bool {
		_, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data)
		return err == nil && control.Flush() == nil
	}

	send("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_bench","type":"message","role":"assistant","model":"`+model+`",`+
		`"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":1}}}`, tokens))
	send("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	for range chunks {
		if !pause(r) || !send("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"still sees "}}`) {
			return
		}
	}
	send("content_block_stop", `{"type":"content_block_stop","index":0}`)
	send("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":%d}}`, chunks))
	send("message_stop", `{"type":"message_stop"}`)
}

// pause waits if the provider is slow. It reports whether the client is still connected.
func pause(r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, slowPath) {
		return true
	}
	select {
	case <-time.After(slowPause):
		return true
	case <-r.Context().Done():
		return false
	}
}
