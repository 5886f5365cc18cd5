package upstream

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// frame returns a message of an event stream.
func frame(t testing.TB, payload string, headers ...string) []byte {
	t.Helper()
	message := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i+1 < len(headers); i += 2 {
		message.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var out bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&out, message); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func opened(body io.ReadCloser) *http.Response {
	response := &http.Response{Header: http.Header{"Content-Type": {EventStream}}, Body: body}
	unframe(response)
	return response
}

// Claude Code gives a silent stream up after 300 seconds, and Amazon Bedrock sends no pings.
func TestSilentEventStreamGetsPings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		response := opened(reader)
		chunk := frame(t, `{"bytes":"eyJ0eXBlIjoieCIsICJhIjoxfQ==","p":"ab"}`, ":message-type", "event", ":event-type", "chunk")
		go func() {
			<-time.NewTimer(2*pingAfter + time.Second).C
			_, _ = writer.Write(chunk)
			_ = writer.Close()
		}()
		got, err := io.ReadAll(response.Body)
		if want := ping + ping + "event: x\ndata: {\"type\":\"x\", \"a\":1}\n\n"; err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
		_ = response.Body.Close()
	})
}

func TestEventStreamThatEndsEarlyIsNoCompleteAnswer(t *testing.T) {
	t.Parallel()
	chunk := frame(t, `{"bytes":"eyJ0eXBlIjoieCJ9"}`, ":message-type", "event", ":event-type", "chunk")
	wrong := bytes.Clone(chunk)
	wrong[len(wrong)-6]++
	for name, stream := range map[string][]byte{
		"inside a message": chunk[:len(chunk)-3], "before its checksum": chunk[:len(chunk)-4], "wrong checksum": wrong, "no event stream": []byte("event: x\ndata: {}\n\nevent: y\ndata: {}\n\n"),
		"no base64": frame(t, `{"bytes":"%%"}`, ":message-type", "event", ":event-type", "chunk"), "no type": frame(t, `{}`),
	} {
		response := opened(io.NopCloser(bytes.NewReader(append(bytes.Clone(chunk), stream...))))
		got, err := io.ReadAll(response.Body)
		if err == nil || errors.Is(err, io.EOF) || string(got) != "event: x\ndata: {\"type\":\"x\"}\n\n" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		_ = response.Body.Close()
	}
}

// An exception keeps its name and its bytes inside the error event, for clients that speak the platform's protocol.
func TestExceptionComesBackFromItsErrorEvent(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"throttlingException": "rate_limit_error", "serviceUnavailableException": "overloaded_error", "modelTimeoutException": "timeout_error",
		"modelStreamErrorException": "api_error", "somethingNewException": "api_error",
	} {
		const payload = `{"message":"Too \"many\"","originalStatusCode":500}`
		body := opened(io.NopCloser(bytes.NewReader(frame(t, payload, ":message-type", "exception", ":exception-type", name)))).Body
		got, err := io.ReadAll(body)
		data, isError := strings.CutPrefix(string(got), "event: error\ndata: ")
		if err != nil || !isError || !strings.HasPrefix(data, `{"type":"error","error":{"type":"`+want+`","message":"Too \"many\""`) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if kept, raw := ExceptionOf([]byte(data)); kept != name || string(raw) != payload {
			t.Errorf("%s: comes back as %s %s", name, kept, raw)
		}
		_ = body.Close()
	}
	if name, raw := ExceptionOf([]byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)); name != "serviceUnavailableException" || string(raw) != `{"message":"Overloaded"}` {
		t.Errorf("%s %s", name, raw)
	}
}
