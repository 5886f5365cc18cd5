package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// counts are the results of the flood.
type counts struct {
	up                              chan struct{} // closed after each connection was opened once
	opened, open, bodies, refused   atomic.Int64
	signUps, signUpsRefused, failed atomic.Int64
}

func (c *counts) print() {
	fmt.Fprintf(os.Stdout, "the flood: %d connections were opened, %d of them are open; %d large bodies were sent, %d refused; %d sign-ups, %d refused; %d attempts failed\n",
		c.opened.Load(), c.open.Load(), c.bodies.Load(), c.refused.Load(), c.signUps.Load(), c.signUpsRefused.Load(), c.failed.Load())
}

const (
	again     = 30 * time.Second // until a closed connection is opened again
	bodyBytes = 8 << 20
	opening   = 64 // connections opened at once
)

// flood starts all attacks, which continue until the context ends.
func (o options) flood(ctx context.Context, hostile *sync.WaitGroup) (*counts, error) {
	address, err := url.Parse(o.url)
	if err != nil || address.Host == "" {
		return nil, errors.New("-url is not an address such as http://127.0.0.1:8080")
	}
	c := &counts{up: make(chan struct{})}
	var first sync.WaitGroup
	turns := make(chan struct{}, opening)
	for range o.connections {
		first.Add(1)
		hostile.Go(func() {
			tried := sync.OnceFunc(first.Done)
			defer tried()
			for ctx.Err() == nil {
				o.keepOpen(ctx, address.Host, c, turns, tried)
				pause(ctx, again)
			}
		})
	}
	go func() { first.Wait(); close(c.up) }()
	slow := o.slow
	if slow == "" {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("start a provider that does not answer: %w", err)
		}
		provider := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })}
		go func() { _ = provider.Serve(listener) }() // ends with the context
		context.AfterFunc(ctx, func() { _ = provider.Close() })
		slow = "http://" + listener.Addr().String()
	}
	body := strings.Replace(question, "hi", strings.Repeat("a ", bodyBytes/2), 1)
	for range o.bodies {
		hostile.Go(func() {
			for ctx.Err() == nil {
				o.holdBody(ctx, slow, body, c)
			}
		})
	}
	for client := range o.signUps {
		hostile.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				o.signUp(ctx, client, i, c)
			}
		})
	}
	return c, nil
}

// keepOpen opens a connection, sends a request of the hostile key, and returns after the installation has
// closed the connection or the context ends. It calls tried after the installation has answered.
func (o options) keepOpen(ctx context.Context, host string, c *counts, turns chan struct{}, tried func()) {
	turns <- struct{}{}
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", host)
	if err == nil {
		err = first(conn, o.hostile)
	}
	<-turns
	tried()
	if conn == nil || err != nil {
		c.failed.Add(1)
		if conn != nil {
			_ = conn.Close()
		}
		return
	}
	c.opened.Add(1)
	c.open.Add(1)
	defer c.open.Add(-1)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }()
	_, _ = conn.Read(make([]byte, 1)) // until it is closed
}

// first sends a request that does not reach a provider and reads the answer.
func first(conn net.Conn, key string) error {
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(conn, "GET /v1/pipeline HTTP/1.1\r\nHost: flood\r\nX-Api-Key: %s\r\n\r\n", key); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// holdBody sends a large body to the provider that does not answer.
func (o options) holdBody(ctx context.Context, slow, body string, c *counts) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url+"/v1/messages", strings.NewReader(body))
	if err != nil {
		return
	}
	request.Close = true // don't wait for the rest of the body
	request.Header = http.Header{
		"X-Api-Key": {o.hostile}, "Anthropic-Version": {"2023-06-01"}, "Content-Type": {"application/json"},
		"X-Palimpsest-Provider-Key": {"flood"}, "X-Palimpsest-Base-Url": {slow},
	}
	c.bodies.Add(1)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		pause(ctx, time.Second)
		return
	}
	_ = response.Body.Close()
	c.refused.Add(1)
	pause(ctx, time.Second)
}

// signUp signs up an unused address.
func (o options) signUp(ctx context.Context, client, number int, c *counts) {
	header := http.Header{}
	if o.forwarded {
		header.Set("X-Forwarded-For", fmt.Sprintf("198.18.%d.%d", rand.IntN(256), rand.IntN(256))) //nolint:gosec // any address
	}
	body := fmt.Sprintf(`{"email":"flood-%d-%d@example.com","password":"long words of flood %d","workspace":"flood"}`, client, number, number)
	c.signUps.Add(1)
	if status, err := ask(ctx, http.MethodPost, o.url+"/api/v1/signup", body, header); err != nil || status == http.StatusTooManyRequests {
		c.signUpsRefused.Add(1)
		pause(ctx, 100*time.Millisecond)
	}
}
