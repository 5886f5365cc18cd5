package credentials

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/upstream"
	"palimpsest/tenants"
)

// Bounds of the length of a provider's secret, in bytes.
const (
	minSecret = 8
	maxSecret = 4096
)

// Bounds of a key's routing settings.
const (
	maxPatterns = 200
	maxPattern  = 200 // characters
	maxOrder    = 1000
	maxWait     = 24 * time.Hour
)

// shown is how many characters of a provider's secret remain readable.
const shown = 4

// CreateProviderKey seals and stores a wanted key. Its provider may be a preset's id; then the preset
// completes wanted's empty fields. The name defaults to the preset's or the provider's. Errors that the asker
// can correct are a tenants.Invalid, including a base URL on a private address if those are not allowed.
func (s *Service) CreateProviderKey(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.ProviderKey, secret string) (tenants.ProviderKey, error) {
	key := completed(wanted)
	key.ID, key.Workspace, key.CreatedAt = uuid.Must(uuid.NewV7()), workspace, s.config.Now()
	key.Check = tenants.ProviderKeyCheck{}
	if err := checkProviderKey(&key); err != nil {
		return tenants.ProviderKey{}, err
	}
	key, err := s.sealed(key, secret)
	if err != nil {
		return tenants.ProviderKey{}, err
	}
	if err := s.AddProviderKey(ctx, workspace, key); err != nil {
		return tenants.ProviderKey{}, err
	}
	return key, nil
}

// EditProviderKey changes the use of a key. Errors that the asker can correct are a tenants.Invalid;
// tenants.ErrNotFound says that the workspace has no such key.
func (s *Service) EditProviderKey(ctx context.Context, tenant tenants.Tenant, id uuid.UUID, change tenants.ProviderKeyChange) (tenants.ProviderKey, error) {
	return s.ChangeProviderKey(ctx, tenant, id, tenants.ProviderKeyChanged, func(key tenants.ProviderKey) (tenants.ProviderKey, error) {
		key = change.Apply(key)
		return key, checkProviderKey(&key)
	})
}

// ReplaceProviderKey gives a key another secret and, unless baseURL is nil, another base URL. Requests in
// flight end with the old one. Its errors are those of EditProviderKey.
func (s *Service) ReplaceProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, secret string, baseURL *string) (tenants.ProviderKey, error) {
	return s.ChangeProviderKey(ctx, workspace, id, tenants.ProviderKeyReplaced, func(key tenants.ProviderKey) (tenants.ProviderKey, error) {
		if baseURL != nil {
			key.BaseURL = *baseURL
		}
		if err := checkProviderKey(&key); err != nil {
			return tenants.ProviderKey{}, err
		}
		return s.sealed(key, secret)
	})
}

// sealed returns a key with its sealed secret, bound to its base URL.
func (s *Service) sealed(key tenants.ProviderKey, secret string) (tenants.ProviderKey, error) {
	if err := s.checkBaseURL(key.BaseURL); err != nil {
		return tenants.ProviderKey{}, err
	}
	secret = strings.TrimSpace(secret)
	if len(secret) < minSecret || len(secret) > maxSecret || strings.ContainsFunc(secret, notInHeader) {
		return tenants.ProviderKey{}, tenants.Invalid{Field: "key", Message: fmt.Sprintf("must have %d to %d visible ASCII characters", minSecret, maxSecret)}
	}
	sealed, err := s.config.Vault.Seal(key, secret)
	if err != nil {
		return tenants.ProviderKey{}, fmt.Errorf("seal provider key: %w", err)
	}
	key.Sealed, key.Last4, key.SealedAt = sealed, secret[len(secret)-shown:], s.config.Now()
	return key, nil
}

// completed returns wanted with the values of its preset.
func completed(wanted tenants.ProviderKey) tenants.ProviderKey {
	key := wanted
	preset, known := tenants.PresetOf(string(wanted.Provider))
	if !known {
		return key
	}
	key.Provider, key.Both = preset.Provider, wanted.Both || preset.Both
	if preset.ID != string(preset.Provider) {
		key.Preset = preset.ID
	}
	if strings.TrimSpace(key.BaseURL) == "" {
		key.BaseURL = preset.BaseURL
	}
	if key.Auth == tenants.AuthUsual {
		key.Auth = preset.Auth
	}
	if strings.TrimSpace(key.Name) == "" {
		key.Name = preset.ID
	}
	return key
}

// presetIDs lists the accepted names of a key's provider.
func presetIDs() string {
	var ids []string
	for _, preset := range tenants.Presets() {
		ids = append(ids, preset.ID)
	}
	return strings.Join(ids, ", ")
}

// checkProviderKey normalizes a key and checks everything but its secret and its base URL.
func checkProviderKey(key *tenants.ProviderKey) error {
	if !key.Provider.IsKnown() {
		return tenants.Invalid{Field: "provider", Message: "must be one of " + presetIDs() + "; for another compatible API, the one whose dialect it speaks, with its base_url"}
	}
	if strings.TrimSpace(key.Name) == "" {
		key.Name = string(key.Provider)
	}
	var err error
	if key.Name, err = checkName(key.Name); err != nil {
		return err
	}
	switch key.Auth {
	case tenants.AuthUsual, tenants.AuthBearer, tenants.AuthXAPIKey, tenants.AuthAPIKey:
	default:
		return tenants.Invalid{Field: "auth", Message: "must be bearer, x-api-key or api-key; empty: as the dialect has it"}
	}
	if key.Wait < 0 || key.Wait > maxWait {
		return tenants.Invalid{Field: "wait_seconds", Message: fmt.Sprintf("must be between 1 and %d, or 0 to wait as long as the client does", int(maxWait/time.Second))}
	}
	if key.Order < 0 || key.Order > maxOrder {
		return tenants.Invalid{Field: "order", Message: fmt.Sprintf("must be between 0 and %d", maxOrder)}
	}
	if key.Models, err = checkModels(key.Models); err != nil {
		return err
	}
	key.BaseURL = strings.TrimRight(strings.TrimSpace(key.BaseURL), "/")
	if key.BaseURL == "" && key.Both {
		return tenants.Invalid{Field: "base_url", Message: "is needed for a provider that takes both dialects"}
	}
	return upstream.VerifyHeaders(key.Headers)
}

// checkBaseURL checks the base URL of a key.
func (s *Service) checkBaseURL(baseURL string) error {
	switch {
	case baseURL == "":
		return nil
	case strings.Contains(baseURL, "//RESOURCE."):
		return tenants.Invalid{Field: "base_url", Message: "still says RESOURCE; put the name of your own resource there"}
	default:
		return upstream.VerifyBaseURL(baseURL, s.config.AllowPrivate)
	}
}

// checkModels returns patterns of models without the space around them and without
// repetitions.
func checkModels(wanted []string) ([]string, error) {
	var models []string
	for _, pattern := range wanted {
		pattern = strings.TrimSpace(pattern)
		switch {
		case pattern == "" || slices.Contains(models, pattern):
		case len(pattern) > maxPattern || strings.ContainsFunc(pattern, notInHeader):
			return nil, tenants.Invalid{Field: "models", Message: fmt.Sprintf("%.40q is not the name of a model or a pattern such as gpt-*", pattern)}
		default:
			models = append(models, pattern)
		}
	}
	if len(models) > maxPatterns {
		return nil, tenants.Invalid{Field: "models", Message: fmt.Sprintf("has %d lines; at most %d are allowed", len(models), maxPatterns)}
	}
	return models, nil
}

// notInHeader reports whether a character is invalid in a key's header.
func notInHeader(r rune) bool { return r <= ' ' || r > '~' }
