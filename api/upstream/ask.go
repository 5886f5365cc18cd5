package upstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxAnswer bounds the answer to a request of our own, in bytes.
const maxAnswer = 16 << 20

// Question is a request of our own: for a summary, for embeddings.
type Question struct {
	Path   string
	Header map[string]string // beside the key and the content's type
	Body   []byte
}

// Answer is a provider's answer to a request of our own.
type Answer struct {
	Status int
	Stream bool // Body is a stream of events
	Body   []byte
}

// Sender sends requests to providers.
type Sender interface {
	Send(ctx context.Context, request Request, target Target) (*http.Response, error)
}

// Ask sends a request of our own and reads the whole answer, whatever its status. It adds no retries. Its
// errors are those of Client.Send, and errors for an answer that ended early or is longer than 16 MiB.
func Ask(ctx context.Context, sender Sender, question Question, target Target) (Answer, error) {
	header := http.Header{"Content-Type": {"application/json"}}
	for name, value := range question.Header {
		header.Set(name, value)
	}
	if dialect, known := DialectOf(target.Provider); known {
		dialect.AddTo(header)
	}
	response, err := sender.Send(ctx, Request{Method: http.MethodPost, Path: question.Path, Header: header, Body: question.Body}, target)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return Answer{}, context.Cause(ctx)
	case err != nil:
		return Answer{}, fmt.Errorf("%w: the answer ended early", ErrUnreachable)
	case len(body) > maxAnswer:
		return Answer{}, fmt.Errorf("%w: the answer has more than %d bytes", ErrUnreachable, maxAnswer)
	}
	stream := strings.HasPrefix(strings.ToLower(response.Header.Get("Content-Type")), "text/event-stream")
	return Answer{Status: response.StatusCode, Stream: stream, Body: body}, nil
}

// Interface guard.
var _ Sender = (*Client)(nil)
