package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls a server's JSON API with an API key.
type Client struct {
	server, key string
	http        *http.Client
}

// callTimeout limits one request to the JSON API.
const callTimeout = 30 * time.Second

// Problem is an error response of the server.
type Problem struct {
	Status int
	Detail string
}

// Error implements error.
func (p Problem) Error() string {
	if p.Detail == "" {
		return fmt.Sprintf("the server answered %d %s", p.Status, http.StatusText(p.Status))
	}
	return p.Detail
}

// get reads the answer of a path below /api/v1.
func (c *Client) get(ctx context.Context, path string, query url.Values, into any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.call(ctx, http.MethodGet, path, nil, into)
}

// call sends question as JSON and reads the answer into into. Both may be nil.
func (c *Client) call(ctx context.Context, method, path string, question, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var body io.Reader = http.NoBody
	if question != nil {
		encoded, err := json.Marshal(question)
		if err != nil {
			return err
		}
		body = bytes.NewReader(encoded)
	}
	response, err := c.send(ctx, method, "/api/v1"+path, "application/json", body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.server, err)
	}
	return nil
}

// send sends a request, with the key if there is one. It returns an unsuccessful answer as a Problem.
func (c *Client) send(ctx context.Context, method, path, contentType string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, body)
	if err != nil {
		return nil, err
	}
	if body != nil && body != http.NoBody {
		request.Header.Set("Content-Type", contentType)
	}
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, unreachable(c.server, err)
	}
	if response.StatusCode < http.StatusMultipleChoices {
		return response, nil
	}
	defer response.Body.Close()
	return nil, problemOf(response)
}

// errUnreachable is returned if a server does not answer.
var errUnreachable = errors.New("the server does not answer")

func unreachable(server string, err error) error {
	if address, is := errors.AsType[*url.Error](err); is {
		err = address.Err
	}
	return fmt.Errorf("%s: %w; check the address and your network: %w", server, errUnreachable, err)
}

func problemOf(response *http.Response) error {
	if to := response.Header.Get("Location"); to != "" && response.StatusCode < http.StatusBadRequest {
		return Problem{Status: response.StatusCode, Detail: "the server redirects to " + oneLine(to) + ": use that address"}
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return err
	}
	var said struct {
		Detail      string          `json:"detail"`
		Description string          `json:"error_description"`
		Error       json.RawMessage `json:"error"`
	}
	if json.Unmarshal(text, &said) != nil {
		return Problem{Status: response.StatusCode}
	}
	var provider struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(said.Error, &provider) // of the proxy; empty elsewhere
	for _, detail := range []string{said.Detail, said.Description, provider.Message} {
		if detail != "" {
			return Problem{Status: response.StatusCode, Detail: oneLine(detail)}
		}
	}
	return Problem{Status: response.StatusCode}
}

// oneLine returns text without characters that move the cursor or begin a line, because it may come from a
// model.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, text)
}
