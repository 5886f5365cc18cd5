package upstream

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"

	"palimpsest/pipeline/wire"
)

// EventStream is the content type of Amazon's event streams.
const EventStream = "application/vnd.amazon.eventstream"

// pingAfter is how long a stream may be silent before its client gets a ping, because Amazon Bedrock sends none.
// Claude Code gives a silent stream up after 300 seconds.
const pingAfter = 15 * time.Second

// ping is a ping of Anthropic's API.
const ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n"

// eventBody turns an event stream of Amazon Bedrock into server-sent events: each chunk holds the data of one
// event of Anthropic's API, which is passed on byte for byte. It adds pings while the stream is silent.
type eventBody struct {
	body    io.Closer
	events  chan []byte
	failure error         // why events was closed
	closed  chan struct{} // by Close
	ready   []byte
	silence *time.Timer
}

// unframe replaces the body of an answer that is an event stream.
func unframe(response *http.Response) {
	stream := &eventBody{body: response.Body, events: make(chan []byte), closed: make(chan struct{}), silence: time.NewTimer(pingAfter)}
	go stream.decode(response.Body)
	response.Body, response.ContentLength = stream, -1
	response.Header.Del("Content-Length")
	response.Header.Set("Content-Type", "text/event-stream; charset=utf-8")
}

// decode reads the stream until it ends.
func (b *eventBody) decode(body io.Reader) {
	defer close(b.events)
	decoder, reader := eventstream.NewDecoder(), bufio.NewReader(body)
	var memory []byte
	for {
		if _, err := reader.Peek(1); errors.Is(err, io.EOF) {
			b.failure = io.EOF // between two messages
			return
		}
		message, err := decoder.Decode(reader, memory[:0])
		if err == nil {
			memory = message.Payload
			var event []byte
			if event, err = eventOf(message); err == nil && event == nil {
				continue
			} else if err == nil {
				select {
				case b.events <- event:
					continue
				case <-b.closed:
					err = io.ErrClosedPipe
				}
			}
		}
		b.failure = fmt.Errorf("read event stream: %w", noEOF(err))
		return
	}
}

// noEOF returns an error that nobody takes for the end of a stream.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Read implements io.Reader.
func (b *eventBody) Read(p []byte) (int, error) {
	for len(b.ready) == 0 {
		select {
		case event, more := <-b.events:
			if !more {
				b.silence.Stop()
				return 0, b.failure
			}
			b.ready = event
		case <-b.silence.C:
			b.ready = []byte(ping)
		}
		b.silence.Reset(pingAfter)
	}
	n := copy(p, b.ready)
	b.ready = b.ready[n:]
	return n, nil
}

// Close implements io.Closer.
func (b *eventBody) Close() error {
	select {
	case <-b.closed:
	default:
		close(b.closed)
	}
	b.silence.Stop()
	return b.body.Close()
}

// eventOf returns the server-sent event of a message; nil if it has none.
func eventOf(message eventstream.Message) ([]byte, error) {
	switch kind := headerOf(message, eventstreamapi.MessageTypeHeader); kind {
	case eventstreamapi.EventMessageType:
		if headerOf(message, eventstreamapi.EventTypeHeader) != "chunk" {
			return nil, nil // such as an announcement of the stream
		}
		text, isText := wire.String(wire.Get(message.Payload, "bytes"))
		data, err := base64.StdEncoding.DecodeString(text)
		if !isText || err != nil {
			return nil, errors.New("a chunk holds no bytes in base64")
		}
		return serverSent(wire.Text(data, "type"), data), nil
	case eventstreamapi.ExceptionMessageType:
		return exception(headerOf(message, eventstreamapi.ExceptionTypeHeader), message.Payload), nil
	case eventstreamapi.ErrorMessageType:
		said := wire.AppendQuote([]byte(`{"message":`), headerOf(message, eventstreamapi.ErrorMessageHeader))
		return exception(headerOf(message, eventstreamapi.ErrorCodeHeader), append(said, '}')), nil
	default:
		return nil, fmt.Errorf("a message has the type %q", kind)
	}
}

// headerOf returns a header of a message; "" if absent.
func headerOf(message eventstream.Message, name string) string {
	if value := message.Headers.Get(name); value != nil {
		return value.String()
	}
	return ""
}

// serverSent writes an event. Its data is one line, unless the provider wrote line breaks into it.
func serverSent(name string, data []byte) []byte {
	event := make([]byte, 0, len("event: \ndata: \n\n")+len(name)+len(data))
	event = append(append(event, "event: "...), name...)
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		event = append(append(event, "\ndata: "...), line...)
	}
	return append(event, "\n\n"...)
}

// exception writes an exception inside a stream as an error event, the only place for it in server-sent events.
// The event also holds the exception as it came, so that ExceptionOf can return it.
func exception(name string, payload []byte) []byte {
	data := wire.AppendQuote([]byte(`{"type":"error","error":{"type":`), errorType(name))
	data = wire.AppendQuote(append(data, `,"message":`...), wire.Text(payload, "message"))
	data = wire.AppendQuote(append(data, `,"exception":{"type":`...), name)
	if json.Valid(payload) {
		data = append(append(data, `,"payload":`...), bytes.ReplaceAll(payload, []byte("\n"), []byte(" "))...)
	}
	return serverSent("error", append(data, "}}}"...))
}

// ExceptionOf returns the exception of an error event's data, as Amazon Bedrock sent it or would send it.
func ExceptionOf(data []byte) (name string, payload []byte) {
	said := wire.Get(data, "error")
	raw := wire.Get(said, "exception")
	if name = wire.Text(raw, "type"); name != "" && len(wire.Get(raw, "payload")) > 0 {
		return name, wire.Get(raw, "payload")
	}
	for _, known := range exceptions() {
		if known.is == wire.Text(said, "type") {
			name = known.name
			break
		}
	}
	if name == "" {
		name = "internalServerException"
	}
	return name, append(wire.AppendQuote([]byte(`{"message":`), wire.Text(said, "message")), '}')
}

// known is the type of an error for an exception.
type known struct{ name, is string }

// exceptions lists the exceptions of InvokeModelWithResponseStream with the types that Anthropic's API has for
// such errors.
func exceptions() []known {
	return []known{
		{"throttlingException", "rate_limit_error"}, {"serviceUnavailableException", "overloaded_error"},
		{"validationException", "invalid_request_error"}, {"modelTimeoutException", "timeout_error"},
		{"internalServerException", "api_error"}, {"modelStreamErrorException", "api_error"},
	}
}

// errorType returns the type of an error for an exception.
func errorType(name string) string {
	for _, known := range exceptions() {
		if known.name == name {
			return known.is
		}
	}
	return "api_error"
}
