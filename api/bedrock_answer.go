package api

import (
	"encoding/base64"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/wire"
)

// bedrockAnswer gives an answer the form that Amazon Bedrock has: streams become event streams with checksums, and
// a count of tokens has another name. Everything else passes as it is.
type bedrockAnswer struct {
	http.ResponseWriter

	isCount  bool
	isStream bool
	split    wire.Splitter
	encoder  *eventstream.Encoder
	count    []byte // an answer with a count, until end writes it
	status   int
}

// WriteHeader implements http.ResponseWriter.
func (a *bedrockAnswer) WriteHeader(status int) {
	header := a.Header()
	a.status = status
	switch a.isStream = status == http.StatusOK && isStream(header.Get("Content-Type")); {
	case a.isStream:
		a.encoder = eventstream.NewEncoder()
		header.Set("Content-Type", upstream.EventStream)
		header.Set("X-Amzn-Bedrock-Content-Type", "application/json")
		header.Del("Content-Length")
	case a.isCount && status == http.StatusOK:
		header.Del("Content-Length")
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *bedrockAnswer) Write(p []byte) (int, error) {
	switch {
	case a.isCount && a.status == http.StatusOK:
		a.count = append(a.count, p...)
		return len(p), nil
	case !a.isStream:
		return a.ResponseWriter.Write(p) //nolint:wrapcheck // it stands for the writer
	}
	var failure error
	a.split.Write(p, func(event wire.Event) {
		if failure == nil {
			failure = a.encoder.Encode(a.ResponseWriter, messageOf(event))
		}
	})
	if failure != nil {
		return 0, fmt.Errorf("write event stream: %w", failure)
	}
	return len(p), nil
}

// end writes a count.
func (a *bedrockAnswer) end() error {
	if a.count == nil {
		return nil
	}
	_, err := a.ResponseWriter.Write(append(append([]byte(`{"inputTokens":`), wire.Get(a.count, "input_tokens")...), '}'))
	if err != nil {
		return fmt.Errorf("write count: %w", err)
	}
	return nil
}

// Unwrap returns the writer below, for http.ResponseController.
func (a *bedrockAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// messageOf returns the message of an event stream for an event of Anthropic's API.
func messageOf(event wire.Event) eventstream.Message {
	var message eventstream.Message
	set := func(name, value string) { message.Headers.Set(name, eventstream.StringValue(value)) }
	set(eventstreamapi.ContentTypeHeader, "application/json")
	if wire.Text(event.Data, "type") == "error" {
		name, payload := upstream.ExceptionOf(event.Data)
		set(eventstreamapi.MessageTypeHeader, eventstreamapi.ExceptionMessageType)
		set(eventstreamapi.ExceptionTypeHeader, name)
		message.Payload = payload
		return message
	}
	set(eventstreamapi.MessageTypeHeader, eventstreamapi.EventMessageType)
	set(eventstreamapi.EventTypeHeader, "chunk")
	message.Payload = append(base64.StdEncoding.AppendEncode([]byte(`{"bytes":"`), event.Data), `"}`...)
	return message
}
