package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// measured is the flood's effect on a tenant.
type measured struct {
	p50, p99 time.Duration
	failed   int
	ready    time.Duration // maximum time of /readyz; more than a second if it failed
}

const question = `{"model":"claude-sonnet-4-5","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}`

// patience is the timeout of a request.
const patience = 10 * time.Second

// measure sends the requests of the measured tenant, one after the other, and asks /readyz beside them.
func (o options) measure(ctx context.Context, when string) (m measured) {
	asking, end := context.WithCancel(ctx)
	ready := make(chan time.Duration)
	go func() { ready <- o.askReady(asking) }()
	var took []time.Duration
	why := ""
	for range o.requests {
		if ctx.Err() != nil {
			break
		}
		began := time.Now()
		status, err := ask(ctx, http.MethodPost, o.url+"/v1/messages", question, http.Header{"X-Api-Key": {o.quiet}, "Anthropic-Version": {"2023-06-01"}})
		took = append(took, time.Since(began))
		if err != nil || status != http.StatusOK {
			m.failed++
			why = fmt.Sprintf("; the last with status %d, %v", status, err)
		}
	}
	end()
	m.ready = <-ready
	slices.Sort(took)
	if len(took) > 0 {
		m.p50, m.p99 = took[len(took)/2], took[len(took)*99/100]
	}
	fmt.Fprintf(os.Stdout, "%-16s  p50 %6.1f ms  p99 %6.1f ms  %d of %d failed%s  /readyz at most %.1f ms\n",
		when, milliseconds(m.p50), milliseconds(m.p99), m.failed, len(took), why, milliseconds(m.ready))
	return m
}

// askReady asks /readyz ten times a second and returns the maximum time.
func (o options) askReady(ctx context.Context) (most time.Duration) {
	for o.admin != "" && ctx.Err() == nil {
		began := time.Now()
		status, err := ask(ctx, http.MethodGet, o.admin+"/readyz", "", nil)
		took := time.Since(began)
		if ctx.Err() != nil {
			break
		}
		if err != nil || status != http.StatusOK {
			took = max(took, patience)
		}
		most = max(most, took)
		pause(ctx, 100*time.Millisecond)
	}
	return most
}

// ask sends a request on a new connection.
func ask(ctx context.Context, method, url, body string, header http.Header) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	if header != nil {
		request.Header = header
	}
	request.Header.Set("Content-Type", "application/json")
	request.Close = true
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// pause waits for a time, or until the context ends.
func pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
