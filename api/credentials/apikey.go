package credentials

import (
	"context"
	"errors"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// CreateAPIKey stores a key with the name, scopes, pipeline, author and expiry of
// wanted and returns it with its secret, which nobody can read again. Without
// scopes it may use the proxy. What the asker can mend is a tenants.Invalid.
func (k *Keeper) CreateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.APIKey) (key tenants.APIKey, secret string, err error) {
	if err := k.checkAPIKey(&wanted); err != nil {
		return tenants.APIKey{}, "", err
	}
	key, secret, hash := k.config.Issuer.Create(workspace, wanted.Name, wanted.Scopes, wanted.CreatedBy, wanted.ExpiresAt)
	key.Pipeline = wanted.Pipeline
	if err := k.Store.CreateAPIKey(ctx, workspace, key, hash); err != nil {
		return tenants.APIKey{}, "", err
	}
	return key, secret, nil
}

// checkAPIKey completes what is wanted with defaults and checks it.
func (k *Keeper) checkAPIKey(wanted *tenants.APIKey) error {
	var err error
	if wanted.Name, err = checkName(wanted.Name); err != nil {
		return err
	}
	if len(wanted.Scopes) == 0 {
		wanted.Scopes = []tenants.Scope{tenants.ScopeProxy}
	}
	names := make([]string, len(wanted.Scopes))
	for i, scope := range wanted.Scopes {
		names[i] = string(scope)
	}
	if wanted.Scopes, err = tenants.ParseScopes(strings.Join(names, ",")); err != nil {
		return err
	}
	if wanted.ExpiresAt != nil && !wanted.ExpiresAt.After(k.config.Now()) {
		return tenants.Invalid{Field: "expires_at", Message: "lies in the past"}
	}
	if wanted.Pipeline == "" {
		return nil
	}
	_, _, err = pipeline.Resolve(k.config.Defaults, pipeline.Layer{Source: pipeline.FromAPIKey, YAML: wanted.Pipeline})
	if invalid, is := errors.AsType[pipeline.Invalid](err); is {
		field := strings.TrimSuffix("pipeline."+invalid.Field, ".")
		return tenants.Invalid{Field: field, Message: invalid.Message}
	}
	return err
}
