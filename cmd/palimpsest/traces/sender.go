package traces

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// The limits of one export. The SDK's own context ends it after 30 seconds.
const (
	traceTimeout = 10 * time.Second // for one request
	traceRetry   = 5 * time.Second  // before the first retry, if the receiver does not name a time
	maxTraceSays = 64 << 10         // bytes read of an answer

	tracesContent = "application/x-protobuf"
)

// errTracesClosed ends the running requests when the program closes.
var errTracesClosed = errors.New("the exporter of traces is closed")

// traceSender sends spans as OTLP over HTTP. OpenTelemetry's own sender, otlptracehttp, would link gRPC and
// its gateway for no use here.
type traceSender struct {
	to      string
	headers map[string]string
	client  *http.Client
	stopped context.Context //nolint:containedctx // ends with Stop, not with a call
	stop    context.CancelCauseFunc
}

func newTraceSender(to string, headers map[string]string) *traceSender {
	stopped, stop := context.WithCancelCause(context.Background())
	return &traceSender{to: to, headers: headers, client: &http.Client{Timeout: traceTimeout}, stopped: stopped, stop: stop}
}

// Start implements otlptrace.Client.
func (*traceSender) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client. It ends running requests.
func (s *traceSender) Stop(context.Context) error {
	s.stop(errTracesClosed)
	return nil
}

// UploadTraces implements otlptrace.Client. It retries while the receiver is overloaded.
func (s *traceSender) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// On the wire this is the same message as an ExportTraceServiceRequest.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.stopped, func() { cancel(context.Cause(s.stopped)) })()
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval = traceRetry
	_, err = backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, s.post(ctx, body) }, backoff.WithBackOff(waits))
	return err
}

// post sends a batch once. The error is a backoff.PermanentError unless a retry may help.
func (s *traceSender) post(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.to, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(fmt.Errorf("send spans: %w", err))
	}
	for name, value := range s.headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", tracesContent)
	request.Header.Set("User-Agent", "OTel OTLP Exporter Go/"+otlptrace.Version())
	response, err := s.client.Do(request)
	if failure, is := errors.AsType[*url.Error](err); is && failure.Temporary() {
		return fmt.Errorf("send spans: %w", err)
	}
	if err != nil {
		return backoff.Permanent(fmt.Errorf("send spans: %w", err))
	}
	defer response.Body.Close()
	says, err := io.ReadAll(io.LimitReader(response.Body, maxTraceSays))
	if err != nil {
		return backoff.Permanent(fmt.Errorf("read answer to spans: %w", err))
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		failure := fmt.Errorf("send spans: %s: %s", response.Status, bytes.TrimSpace(says))
		if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
			return errors.Join(failure, backoff.RetryAfter(seconds))
		}
		return failure
	}
	if response.StatusCode/100 != 2 {
		return backoff.Permanent(fmt.Errorf("send spans: %s: %s", response.Status, bytes.TrimSpace(says)))
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), tracesContent) {
		return backoff.Permanent(rejection(says))
	}
	return nil
}

// rejection returns an error if an answer says that the receiver rejected spans or warns of something. The
// answer is an ExportTraceServiceResponse, which is empty or holds an empty message on success. The error
// shows it undecoded because the decoding package links gRPC.
func rejection(answer []byte) error {
	const well = "\n\x00" // field 1, of length 0
	if said := strings.TrimPrefix(string(answer), well); said != "" {
		return fmt.Errorf("send spans: the receiver took some and says %q", said)
	}
	return nil
}

var _ otlptrace.Client = (*traceSender)(nil)
