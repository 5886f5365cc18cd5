package demo

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

// Person is somebody who works with the product, logged in to its JSON API.
type Person struct {
	Email string

	url    string
	client *http.Client
}

func newPerson(url, email string) (*Person, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("make a cookie jar: %w", err)
	}
	return &Person{Email: email, url: url, client: &http.Client{Jar: jar, Timeout: requestTimeout}}, nil
}

// logIn logs the person in anew.
func (p *Person) logIn(ctx context.Context) error {
	return p.call(ctx, http.MethodPost, "/login", map[string]string{"email": p.Email, "password": Password}, nil)
}

// call sends question, unless it is nil, to the product's API as JSON and reads its
// answer, unless answer is nil. A status of 400 and above is an error that quotes it.
func (p *Person) call(ctx context.Context, method, path string, question, answer any) error {
	var body io.Reader = http.NoBody
	if question != nil {
		body = bytes.NewReader(encode(question))
	}
	request, err := http.NewRequestWithContext(ctx, method, p.url+"/api/v1"+path, body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	response, err := p.client.Do(request)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: answered %s: %.300s", method, path, response.Status, text)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}
