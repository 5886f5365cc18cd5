package credentials

import (
	"cmp"
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
		signs := key.Auth == tenants.AuthSigV4
		key = change.Apply(key)
		if signs != (key.Auth == tenants.AuthSigV4) {
			return key, tenants.Invalid{Field: "auth", Message: "can't change to or from sigv4, because the stored secret has another form; add another key"}
		}
		return key, checkProviderKey(&key)
	})
}

// ReplaceProviderKey gives a key another secret and, unless baseURL is nil, another base URL. Requests in
// flight end with the old one. Its errors are those of EditProviderKey.
func (s *Service) ReplaceProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, secret string, baseURL *string) (tenants.ProviderKey, error) {
	return s.ChangeProviderKey(ctx, workspace, id, tenants.ProviderKeyReplaced, func(key tenants.ProviderKey) (tenants.ProviderKey, error) {
		if baseURL != nil {
			key.BaseURL = *baseURL
			if there := tenants.AWSRegionOf(*baseURL); there != "" && key.Platform() != "" {
				key.Region = there
			}
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
	readable := secret
	if key.Auth == tenants.AuthSigV4 {
		signing, err := tenants.ParseAWSKey(secret)
		if err != nil {
			return tenants.ProviderKey{}, err
		}
		readable = signing.ID
	}
	sealed, err := s.config.Vault.Seal(key, secret)
	if err != nil {
		return tenants.ProviderKey{}, fmt.Errorf("seal provider key: %w", err)
	}
	key.Sealed, key.Last4, key.SealedAt = sealed, readable[len(readable)-shown:], s.config.Now()
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
	if len(named(key.Models)) == 0 {
		key.Models = preset.Models
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
	if err = checkAuth(*key); err != nil {
		return err
	}
	if err = placeAtRegion(key); err != nil {
		return err
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

// checkAuth checks how a key is sent.
func checkAuth(key tenants.ProviderKey) error {
	switch {
	case key.Platform() == tenants.PlatformBedrock:
		if key.Auth != tenants.AuthBearer && key.Auth != tenants.AuthSigV4 {
			return tenants.Invalid{Field: "auth", Message: "must be bearer, for a Bedrock API key, or sigv4, for an access key of AWS"}
		}
		if key.Both {
			return tenants.Invalid{Field: "dialects", Message: "must be anthropic alone, because Amazon Bedrock takes Claude's requests in that format"}
		}
		return nil
	case slices.Contains([]tenants.Auth{tenants.AuthUsual, tenants.AuthBearer, tenants.AuthXAPIKey, tenants.AuthAPIKey}, key.Auth):
		return nil
	default:
		return tenants.Invalid{Field: "auth", Message: "must be bearer, x-api-key or api-key; empty: as the dialect has it"}
	}
}

// placeAtRegion checks the region of a platform's key and puts it into the platform's base URL.
func placeAtRegion(key *tenants.ProviderKey) error {
	const place = "REGION"
	key.Region = strings.TrimSpace(key.Region)
	if key.Platform() == "" {
		if key.Region != "" {
			return tenants.Invalid{Field: "region", Message: "is for keys of Amazon Bedrock only; leave it out"}
		}
		return nil
	}
	key.Region = cmp.Or(key.Region, tenants.AWSRegionOf(key.BaseURL))
	if !tenants.IsAWSRegion(key.Region) {
		return tenants.Invalid{Field: "region", Message: "must be a region of AWS, such as us-east-1"}
	}
	if strings.TrimSpace(key.BaseURL) == "" {
		preset, _ := tenants.PresetOf(key.Preset)
		key.BaseURL = preset.BaseURL
	}
	key.BaseURL = strings.Replace(key.BaseURL, place, key.Region, 1)
	if there := tenants.AWSRegionOf(key.BaseURL); there != "" && there != key.Region {
		return tenants.Invalid{Field: "region", Message: "is not the base URL's, which is " + there}
	}
	return nil
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
	for _, pattern := range named(wanted) {
		switch {
		case slices.Contains(models, pattern):
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

// named returns patterns of models without the space around them and without empty ones.
func named(patterns []string) []string {
	var named []string
	for _, pattern := range patterns {
		if pattern = strings.TrimSpace(pattern); pattern != "" {
			named = append(named, pattern)
		}
	}
	return named
}

// notInHeader reports whether a character is invalid in a key's header.
func notInHeader(r rune) bool { return r <= ' ' || r > '~' }
