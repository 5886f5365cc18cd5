package programtest

import (
	"context"
	"errors"
	"maps"
	"net/http"

	"palimpsest/api/apiclient"
)

// Workspace describes a workspace to create.
type Workspace struct {
	Name     string        // in lower case; part of its owner's address
	Provider string        // address of the provider of both families, without /v1
	Keys     []ProviderKey // nil for one of each family at Provider
	Window   int           // context window in tokens; 0 means the model's

	// Limits are those of its API key, by their names in the JSON API; nil for no limits.
	Limits map[string]any

	// Answers lets the workspace answer clients' own requests for a summary if it can.
	Answers bool
}

// ProviderKey is a provider key to store, by the names of the JSON API.
type ProviderKey struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	Key      string `json:"key"`
	BaseURL  string `json:"base_url"`
	Region   string `json:"region,omitempty"`
}

// Account is a workspace of a program and its owner's login.
type Account struct {
	*apiclient.Client

	// Key is an API key of the workspace that may use the proxy.
	Key string
}

// SignUp creates a workspace in the program at an address.
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
	if err := account.furnish(ctx, wanted); err != nil {
		return nil, err
	}
	return account, nil
}

// Create creates another workspace of the owner and switches to it. It helps to make many, since an
// installation accepts few sign-ups from one place.
func (a *Account) Create(ctx context.Context, wanted Workspace) error {
	if err := a.Call(ctx, http.MethodPost, "/workspaces", map[string]string{"name": wanted.Name}, nil); err != nil {
		return err
	}
	return a.furnish(ctx, wanted)
}

// furnish configures a new workspace as wanted.
func (a *Account) furnish(ctx context.Context, wanted Workspace) error {
	keys := wanted.Keys
	if keys == nil {
		for _, provider := range []string{"anthropic", "openai"} {
			keys = append(keys, ProviderKey{Provider: provider, Name: "double", Key: "sk-double", BaseURL: wanted.Provider})
		}
	}
	for _, key := range keys {
		if err := a.Call(ctx, http.MethodPost, "/provider-keys", key, nil); err != nil {
			return err
		}
	}
	pipeline := map[string]map[string]any{}
	if wanted.Window > 0 {
		pipeline["ipc"] = map[string]any{"contextWindow": wanted.Window}
	}
	if wanted.Answers {
		pipeline["compaction-bridge"] = map[string]any{"clientCompaction": "answer"}
	}
	if len(pipeline) > 0 {
		if err := a.Call(ctx, http.MethodPut, "/pipeline", pipeline, nil); err != nil {
			return err
		}
	}
	var created struct {
		Secret string `json:"secret"`
	}
	key := map[string]any{"name": "proxy", "scopes": []string{"proxy"}}
	maps.Copy(key, wanted.Limits)
	if err := a.Call(ctx, http.MethodPost, "/keys", key, &created); err != nil {
		return err
	}
	if created.Secret == "" {
		return errors.New("POST /keys: no secret in the answer")
	}
	a.Key = created.Secret

	return nil
}
