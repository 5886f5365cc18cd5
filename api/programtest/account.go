package programtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
)

// Workspace is what a workspace is to be like.
type Workspace struct {
	Name     string // in small letters; part of its owner's address
	Provider string // address of the provider of both families, without /v1
	Window   int    // context window in tokens; 0 is the model's
}

// Account is a workspace of a program and the login of its owner.
type Account struct {
	// Key is an API key of the workspace that may use the proxy.
	Key string

	program string
	client  *http.Client
}

// SignUp makes a workspace in the program that listens at an address.
func SignUp(ctx context.Context, program string, wanted Workspace) (*Account, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("make a cookie jar: %w", err)
	}
	account := &Account{program: program, client: &http.Client{Jar: jar, Timeout: startTime}}

	if err := account.Call(ctx, http.MethodPost, "/signup", map[string]string{
		"email": wanted.Name + "@example.com", "password": "a long password for " + wanted.Name, "workspace": wanted.Name,
	}, nil); err != nil {
		return nil, err
	}
	for _, provider := range []string{"anthropic", "openai"} {
		if err := account.Call(ctx, http.MethodPost, "/provider-keys", map[string]string{
			"provider": provider, "name": "double", "key": "sk-double", "base_url": wanted.Provider,
		}, nil); err != nil {
			return nil, err
		}
	}
	if wanted.Window > 0 {
		pipeline := map[string]map[string]int{"ipc": {"contextWindow": wanted.Window}}
		if err := account.Call(ctx, http.MethodPut, "/pipeline", pipeline, nil); err != nil {
			return nil, err
		}
	}
	var created struct {
		Secret string `json:"secret"`
	}
	key := map[string]any{"name": "proxy", "scopes": []string{"proxy"}}
	if err := account.Call(ctx, http.MethodPost, "/keys", key, &created); err != nil {
		return nil, err
	}
	if created.Secret == "" {
		return nil, errors.New("POST /keys: no secret in the answer")
	}
	account.Key = created.Secret

	return account, nil
}

// Call sends question, unless it is nil, to the product's API as JSON and reads
// its answer, unless answer is nil. The path is the one below /api/v1. A status of
// 400 and above is an error that quotes the answer.
func (a *Account) Call(ctx context.Context, method, path string, question, answer any) error {
	var body io.Reader = http.NoBody
	if question != nil {
		encoded, err := json.Marshal(question)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.program+"/api/v1"+path, body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
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
