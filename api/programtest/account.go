package programtest

import (
	"context"
	"errors"
	"net/http"

	"palimpsest/api/apiclient"
)

// Workspace is what a workspace is to be like.
type Workspace struct {
	Name     string // in small letters; part of its owner's address
	Provider string // address of the provider of both families, without /v1
	Window   int    // context window in tokens; 0 is the model's
}

// Account is a workspace of a program and the login of its owner.
type Account struct {
	*apiclient.Client

	// Key is an API key of the workspace that may use the proxy.
	Key string
}

// SignUp makes a workspace in the program that listens at an address.
func SignUp(ctx context.Context, program string, wanted Workspace) (*Account, error) {
	client, err := apiclient.New(program, "")
	if err != nil {
		return nil, err
	}
	account := &Account{Client: client}

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
