package credentials

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/proxysettings"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
)

// CreateAPIKey stores a key with the name, scopes, pipeline, limits, author and expiry of wanted. It returns
// the key with its secret, which can't be read again. Without scopes, the key may use the proxy. Errors that
// the asker can correct are a tenants.Invalid; tenants.ErrDenied and a tenants.Forbidden say that the
// context's actor may not create it.
func (s *Service) CreateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.APIKey) (key tenants.APIKey, secret string, err error) {
	if err := s.checkAPIKey(ctx, workspace, &wanted); err != nil {
		return tenants.APIKey{}, "", err
	}
	key, secret, hash := s.config.Issuer.Create(workspace, wanted.Name, wanted.Scopes, wanted.CreatedBy, wanted.ExpiresAt)
	key.Pipeline, key.Limits = wanted.Pipeline, wanted.Limits
	if err := s.Store.CreateAPIKey(ctx, workspace, key, hash); err != nil {
		return tenants.APIKey{}, "", err
	}
	return key, secret, nil
}

// ChangeAPIKey sets the name, pipeline, expiry and limits of a key to those of wanted. It returns
// tenants.ErrNotFound, and a tenants.Invalid for errors that the asker can correct.
func (s *Service) ChangeAPIKey(ctx context.Context, tenant tenants.Tenant, wanted tenants.APIKey) error {
	if err := s.checkAPIKey(ctx, tenant, &wanted); err != nil {
		return err
	}
	return s.Store.ChangeAPIKey(ctx, tenant, wanted)
}

// RotateAPIKey gives a key another secret and returns it; it can't be read again. The old secret works for
// grace, 30 days at most. It returns tenants.ErrNotFound, and a tenants.Invalid for a grace out of range or a
// revoked key.
func (s *Service) RotateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, grace time.Duration) (rotation tenants.Rotation, secret string, err error) {
	if grace < 0 || grace > tenants.MaxGrace {
		return tenants.Rotation{}, "", tenants.Invalid{Field: "grace", Message: "must be a duration from 0s to 720h, which is 30 days"}
	}
	rotation, secret = s.config.Issuer.Renew(grace)
	if err := s.Store.RotateAPIKey(ctx, workspace, id, rotation); err != nil {
		return tenants.Rotation{}, "", err
	}
	return rotation, secret, nil
}

// checkAPIKey adds defaults to wanted and checks it.
func (s *Service) checkAPIKey(ctx context.Context, tenant tenants.Tenant, wanted *tenants.APIKey) error {
	var err error
	if wanted.Name, err = checkName(wanted.Name); err != nil {
		return err
	}
	if len(wanted.Scopes) == 0 {
		wanted.Scopes = []tenants.Scope{tenants.ScopeProxy}
	}
	if wanted.Scopes, err = tenants.CheckScopes(wanted.Scopes); err != nil {
		return err
	}
	if wanted.ExpiresAt != nil && !wanted.ExpiresAt.After(s.config.Now()) {
		return tenants.Invalid{Field: "expires_at", Message: "lies in the past"}
	}
	if err := wanted.Limits.Validate(); err != nil {
		return err
	}
	if wanted.Pipeline == "" {
		return nil
	}
	err = s.checkPipeline(ctx, tenant, wanted)
	if invalid, is := errors.AsType[pipeline.Invalid](err); is {
		field := strings.TrimSuffix("pipeline."+invalid.Field, ".")
		return tenants.Invalid{Field: field, Message: invalid.Message}
	}
	return err
}

// checkPipeline checks the settings of a key: new ones must not exceed the rights of the people behind it.
// The error is a pipeline.Invalid, or one of KeyRights.
func (s *Service) checkPipeline(ctx context.Context, tenant tenants.Tenant, wanted *tenants.APIKey) error {
	layer := pipeline.Layer{Source: pipeline.FromAPIKey, YAML: wanted.Pipeline}
	if _, _, err := modules.Catalog().Resolve(s.config.Defaults, layer); err != nil {
		return err
	}
	rights, before, err := s.Store.KeyRights(ctx, tenant, *wanted)
	if err != nil || before == wanted.Pipeline {
		return err
	}
	return proxysettings.RightsOf(rights).Check(modules.Catalog(), layer)
}
