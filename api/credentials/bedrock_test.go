package credentials_test

import (
	"slices"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/tenants"
)

// A key of Amazon Bedrock needs a region that is one, since it becomes part of the address, and a secret that fits
// the way it signs in.
func TestBedrockKeyIsPlacedAtItsRegion(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	const access = "AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG"
	wanted := tenants.ProviderKey{Provider: "bedrock", Region: "eu-central-1", Auth: tenants.AuthSigV4, CreatedBy: b.user}
	key, err := b.CreateProviderKey(t.Context(), b.workspace, wanted, access)
	if err != nil {
		t.Fatal(err)
	}
	if key.BaseURL != "https://bedrock-runtime.eu-central-1.amazonaws.com" || key.Region != "eu-central-1" || key.Last4 != "MPLE" || key.Platform() != tenants.PlatformBedrock ||
		!slices.Equal(key.Models, []string{"*anthropic.*", "arn:aws*"}) {
		t.Errorf("created %+v", key)
	}
	bearer := tenants.AuthBearer
	if _, err := b.EditProviderKey(t.Context(), b.workspace, key.ID, tenants.ProviderKeyChange{Auth: &bearer}); field(err) != "auth" {
		t.Errorf("the sign-in changes without the secret: %v", err)
	}
	other := "https://bedrock-runtime.us-west-2.amazonaws.com"
	if key, err = b.ReplaceProviderKey(t.Context(), b.workspace, key.ID, access, &other); err != nil || key.Region != "us-west-2" {
		t.Errorf("replaced %+v, %v", key, err)
	}
	stored, err := b.ProviderKeys(t.Context(), b.workspace)
	if err != nil || len(stored) != 1 || stored[0].Region != "us-west-2" {
		t.Errorf("stored %+v, %v", stored, err)
	}
	for name, test := range map[string]struct {
		change func(*tenants.ProviderKey)
		secret string
		field  string
	}{
		"no region":         {func(k *tenants.ProviderKey) { k.Region = "" }, access, "region"},
		"region with host":  {func(k *tenants.ProviderKey) { k.Region = "us-east-1.example.com" }, access, "region"},
		"region elsewhere":  {func(k *tenants.ProviderKey) { k.BaseURL = other }, access, "region"},
		"private base URL":  {func(k *tenants.ProviderKey) { k.BaseURL = "https://169.254.169.254" }, access, "base_url"},
		"header of another": {func(k *tenants.ProviderKey) { k.Auth = tenants.AuthXAPIKey }, access, "auth"},
		"other dialect":     {func(k *tenants.ProviderKey) { k.Both = true }, access, "dialects"},
		"no access key":     {func(*tenants.ProviderKey) {}, "bedrock-api-key-1234", "key"},
		"no platform":       {func(k *tenants.ProviderKey) { k.Provider, k.Auth = "anthropic", "" }, access, "region"},
		"signature":         {func(k *tenants.ProviderKey) { k.Provider, k.Region = "anthropic", "" }, access, "auth"},
	} {
		bad := wanted
		test.change(&bad)
		if _, err := b.CreateProviderKey(t.Context(), b.workspace, bad, test.secret); field(err) != test.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBedrockKeyIsTestedByItsListOfModels(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	double := providertest.NewBedrock(t, providerdouble.BedrockConfig{Region: "us-east-1", Keys: []string{"bedrock-api-key-1234"}})
	for secret, want := range map[string]tenants.ProviderKeyTest{
		"bedrock-api-key-1234": {OK: true, Models: 1, Status: 200},
		"bedrock-api-key-5678": {Status: 403, Problem: "The provider refuses this key with 403. Replace it.", Said: "Authentication failed: Please make sure your API Key is valid."},
	} {
		key, err := b.CreateProviderKey(t.Context(), b.workspace, tenants.ProviderKey{Provider: "bedrock", BaseURL: double.URL, Region: "us-east-1", CreatedBy: b.user}, secret)
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.TestProviderKey(t.Context(), b.workspace, key.ID)
		if got.Took = 0; err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
}
