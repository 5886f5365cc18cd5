package traces

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// answers is a receiver that answers the first request as told, all later ones well, and
// counts them.
type answers struct {
	first  http.Response
	answer []byte
	asked  int
}

// RoundTrip implements http.RoundTripper.
func (a *answers) RoundTrip(request *http.Request) (*http.Response, error) {
	if a.asked++; a.asked > 1 {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: request}, nil
	}
	response := a.first
	response.Body, response.Request = io.NopCloser(bytes.NewReader(a.answer)), request
	return &response, nil
}

func senderTo(to http.RoundTripper) *traceSender {
	sender := newTraceSender("http://collector/v1/traces", nil)
	sender.client.Transport = to
	return sender
}

func TestTraceSenderRetriesOnlyWhileReceiverIsOverloaded(t *testing.T) {
	t.Parallel()
	encode := func(response *v1.ExportTraceServiceResponse) []byte {
		encoded, err := proto.Marshal(response)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	partial := func(count int64, reason string) []byte {
		return encode(&v1.ExportTraceServiceResponse{PartialSuccess: &v1.ExportTracePartialSuccess{RejectedSpans: count, ErrorMessage: reason}})
	}
	for name, test := range map[string]struct {
		status int
		answer []byte
		asked  int
		says   string // "" if the export succeeds
		after  string // the answer's Retry-After
	}{
		"taken":               {status: http.StatusOK, asked: 1},
		"taken, and said so":  {status: http.StatusOK, answer: partial(0, ""), asked: 1},
		"taken in part":       {status: http.StatusOK, answer: partial(3, "too large"), asked: 1, says: "too large"},
		"refused":             {status: http.StatusBadRequest, answer: []byte("no such path"), asked: 1, says: "no such path"},
		"overloaded":          {status: http.StatusServiceUnavailable, asked: 2},
		"too many":            {status: http.StatusTooManyRequests, asked: 2, after: "7"},
		"broken by the proxy": {status: http.StatusBadGateway, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				to := &answers{first: http.Response{StatusCode: test.status, Header: http.Header{"Content-Type": {tracesContent}, "Retry-After": {test.after}}}, answer: test.answer}
				began := time.Now()
				err := senderTo(to).UploadTraces(t.Context(), []*tracepb.ResourceSpans{{}})
				if to.asked != test.asked || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
					t.Errorf("%d requests, %v", to.asked, err)
				}
				if waited := time.Since(began); test.after != "" && waited != 7*time.Second {
					t.Errorf("it waited %s, not as long as the receiver said", waited)
				}
			})
		})
	}
}

func TestStoppedTraceSenderEndsItsWait(t *testing.T) {
	t.Parallel()
	sender := senderTo(&answers{first: http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"600"}}}})
	if err := sender.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sender.UploadTraces(t.Context(), nil); err == nil || !strings.Contains(err.Error(), errTracesClosed.Error()) {
		t.Errorf("got %v, want %v", err, errTracesClosed)
	}
}
