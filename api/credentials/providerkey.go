package credentials

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
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
	maxWeight   = 100
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
		before := key.Auth
		key = change.Apply(key)
		for _, auth := range []tenants.Auth{before, key.Auth} {
			if before != key.Auth && hasForm(auth) {
				return key, tenants.Invalid{Field: "auth", Message: "can't change to or from " + string(auth) + ", because the stored secret has another form; add another key"}
			}
		}
		return key, checkProviderKey(&key)
	})
}

// hasForm reports whether the secret of a key has a form of its own.
func hasForm(auth tenants.Auth) bool {
	return slices.Contains([]tenants.Auth{tenants.AuthSigV4, tenants.AuthGoogle, tenants.AuthEntra}, auth)
}

// ReplaceProviderKey gives a key another secret and, unless baseURL is nil, another base URL. Requests in
// flight end with the old one. Its errors are those of EditProviderKey.
func (s *Service) ReplaceProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, secret string, baseURL *string) (tenants.ProviderKey, error) {
	return s.ChangeProviderKey(ctx, workspace, id, tenants.ProviderKeyReplaced, func(key tenants.ProviderKey) (tenants.ProviderKey, error) {
		if baseURL != nil {
			key.BaseURL = *baseURL
			if there := regionOf(key.MadeFrom(), *baseURL); there != "" {
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
	secret = strings.TrimSpace(secret)
	isFile := key.Auth == tenants.AuthGoogle // which holds spaces
	if len(secret) < minSecret || len(secret) > maxSecret || !isFile && strings.ContainsFunc(secret, notInHeader) {
		return tenants.ProviderKey{}, tenants.Invalid{Field: "key", Message: fmt.Sprintf("must have %d to %d visible ASCII characters", minSecret, maxSecret)}
	}
	read, err := tenants.ReadSecret(key.Auth, secret)
	if err != nil {
		return tenants.ProviderKey{}, err
	}
	if isFile {
		if key, err = s.atGoogle(key, read.Stored); err != nil {
			return tenants.ProviderKey{}, err
		}
	}
	if err := s.checkBaseURL(key.BaseURL); err != nil {
		return tenants.ProviderKey{}, err
	}
	sealed, err := s.config.Vault.Seal(key, read.Stored)
	if err != nil {
		return tenants.ProviderKey{}, fmt.Errorf("seal provider key: %w", err)
	}
	key.Sealed, key.Last4, key.SealedAt = sealed, read.Shown[len(read.Shown)-shown:], s.config.Now()
	return key, nil
}

// atGoogle puts the project of a service account into a key's base URL, and checks where its tokens come from.
func (s *Service) atGoogle(key tenants.ProviderKey, secret string) (tenants.ProviderKey, error) {
	account, err := tenants.ParseGoogleAccount(secret)
	if err != nil {
		return key, err
	}
	if upstream.VerifyBaseURL(account.TokenURL, s.config.AllowPrivate) != nil {
		return key, tenants.Invalid{Field: "key", Message: "has a token_uri that is not allowed; Google's own is https://oauth2.googleapis.com/token"}
	}
	key.BaseURL = strings.Replace(key.BaseURL, "/projects/PROJECT/", "/projects/"+url.PathEscape(account.Project)+"/", 1)
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
	if key.Weight = cmp.Or(key.Weight, 1); key.Weight < 1 || key.Weight > maxWeight {
		return tenants.Invalid{Field: "weight", Message: fmt.Sprintf("must be between 1 and %d", maxWeight)}
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

// checkAuth checks how a key is sent, and what its preset needs.
func checkAuth(key tenants.ProviderKey) error {
	preset := key.MadeFrom()
	possible := preset.Auths
	if len(possible) == 0 {
		possible = []tenants.Auth{tenants.AuthUsual, tenants.AuthBearer, tenants.AuthXAPIKey, tenants.AuthAPIKey, tenants.AuthGoogAPIKey}
	}
	hasNeeded := slices.ContainsFunc(key.Headers, func(header tenants.Header) bool {
		return strings.EqualFold(header.Name, preset.Needs) && strings.TrimSpace(header.Value) != ""
	})
	switch {
	case !slices.Contains(possible, key.Auth) && len(preset.Auths) > 0:
		return tenants.Invalid{Field: "auth", Message: "must be one of " + joined(possible) + " for " + preset.Title}
	case !slices.Contains(possible, key.Auth):
		return tenants.Invalid{Field: "auth", Message: "must be bearer, x-api-key, api-key or x-goog-api-key; empty: as the dialect has it"}
	case key.Provider == tenants.ProviderGemini && key.Both:
		return tenants.Invalid{Field: "dialects", Message: "must be gemini alone; add another key for Google's OpenAI-compatible API, with provider openai and its base_url"}
	case preset.Platform != "" && key.Both:
		return tenants.Invalid{Field: "dialects", Message: "must be anthropic alone, because " + preset.Title + " takes Claude's requests in that format"}
	case preset.Needs != "" && !hasNeeded:
		return tenants.Invalid{Field: "headers", Message: "must hold " + preset.Needs + ", which " + preset.Title + " needs with every request"}
	default:
		return nil
	}
}

// joined lists ways to send a key.
func joined(auths []tenants.Auth) string {
	names := make([]string, len(auths))
	for i, auth := range auths {
		names[i] = string(auth)
	}
	return strings.Join(names, ", ")
}

// regionOf returns the region in a base URL; "" if it has none.
func regionOf(preset tenants.Preset, baseURL string) string {
	switch {
	case !preset.HasRegion():
		return ""
	case preset.OnGoogle():
		return tenants.GoogleLocationOf(baseURL)
	default:
		return tenants.AWSRegionOf(baseURL)
	}
}

// placeAtRegion checks the region of a key and puts it into its base URL.
func placeAtRegion(key *tenants.ProviderKey) error {
	const place = "REGION"
	key.Region = strings.TrimSpace(key.Region)
	preset := key.MadeFrom()
	if !preset.HasRegion() {
		if key.Region != "" {
			return tenants.Invalid{Field: "region", Message: "is for keys of clouds with regions only, such as bedrock and google; leave it out"}
		}
		return nil
	}
	key.Region = cmp.Or(key.Region, regionOf(preset, key.BaseURL))
	switch {
	case preset.OnGoogle() && !tenants.IsGoogleLocation(key.Region):
		return tenants.Invalid{Field: "region", Message: "must be global or a location of Google Cloud, such as us-east5"}
	case !preset.OnGoogle() && !tenants.IsAWSRegion(key.Region):
		return tenants.Invalid{Field: "region", Message: "must be a region of AWS, such as us-east-1"}
	}
	if strings.TrimSpace(key.BaseURL) == "" {
		key.BaseURL = preset.BaseURL
	}
	if preset.Platform == tenants.PlatformGoogle && strings.Contains(key.BaseURL, place) {
		key.BaseURL = strings.Replace(key.BaseURL, "//aiplatform.googleapis.com/", "//"+tenants.GoogleHost(key.Region)+"/", 1)
	}
	key.BaseURL = strings.Replace(key.BaseURL, place, key.Region, 1)
	if there := regionOf(preset, key.BaseURL); there != "" && there != key.Region {
		return tenants.Invalid{Field: "region", Message: "is not the base URL's, which is " + there}
	}
	return nil
}

// checkBaseURL checks the base URL of a key.
func (s *Service) checkBaseURL(baseURL string) error {
	if baseURL == "" {
		return nil
	}
	for place, what := range map[string]string{"//RESOURCE.": "the name of your own resource", "/projects/PROJECT/": "your project", "/workspaces/WORKSPACE/": "the id of your workspace"} {
		if strings.Contains(baseURL, place) {
			return tenants.Invalid{Field: "base_url", Message: "still says " + place + "; put " + what + " there"}
		}
	}
	return upstream.VerifyBaseURL(baseURL, s.config.AllowPrivate)
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
