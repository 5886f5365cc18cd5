// Package apiclient calls the product's JSON API as a person's script does: with the cookie of a login.
package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"time"
)

const requestTimeout = time.Minute

// Client calls one product, as the person who has logged in. It is safe for concurrent use.
type Client struct {
	// HTTP sends the requests; its jar holds the login.
	HTTP *http.Client

	url       string
	userAgent string
}

// New returns a client of the product at an address, which sends a user agent unless that is empty. It starts
// without a login; a Call to /signup or /login changes that.
func New(url, userAgent string) (*Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("make a cookie jar: %w", err)
	}
	return &Client{HTTP: &http.Client{Jar: jar, Timeout: requestTimeout}, url: url, userAgent: userAgent}, nil
}

// Call sends question as JSON and reads the answer into answer; both may be nil. The path is relative to
// /api/v1. A status of 400 and above is an error that quotes the answer.
func (c *Client) Call(ctx context.Context, method, path string, question, answer any) error {
	text, err := c.call(ctx, method, path, question)
	if err == nil && answer != nil {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

func (c *Client) call(ctx context.Context, method, path string, question any) ([]byte, error) {
	var body io.Reader = http.NoBody
	if question != nil {
		encoded, err := json.Marshal(question)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+"/api/v1"+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.userAgent != "" {
		request.Header.Set("User-Agent", c.userAgent)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("answered %s: %.300s", response.Status, text)
	}
	return text, err
}
