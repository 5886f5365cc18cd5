package credentials_test

import (
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/tenants"
)

// A key of a cloud needs what its preset needs: a region that is one, a header, a secret that fits the way to sign in.
func TestCloudKeysNeedWhatTheirPresetNeeds(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	double := providertest.NewCloud(t, providerdouble.CloudConfig{Project: "northbeam"})
	account := double.ServiceAccount(double.URL)
	workspace := []tenants.Header{{Name: "Anthropic-Workspace-Id", Value: "wrkspc_1"}}
	for name, test := range map[string]struct {
		key    tenants.ProviderKey
		secret string
		base   string // "" if it is refused
		field  string
	}{
		"Google":               {tenants.ProviderKey{Provider: "google", Region: "us-east5"}, account, "https://us-east5-aiplatform.googleapis.com/v1/projects/northbeam/locations/us-east5", ""},
		"Google, global":       {tenants.ProviderKey{Provider: "google", Region: "global"}, account, "https://aiplatform.googleapis.com/v1/projects/northbeam/locations/global", ""},
		"no location":          {tenants.ProviderKey{Provider: "google"}, account, "", "region"},
		"region of AWS":        {tenants.ProviderKey{Provider: "google", Region: "us-east-1"}, account, "", "region"},
		"no account":           {tenants.ProviderKey{Provider: "google", Region: "global"}, "AIzaSyApiKeyOfGoogle", "", "key"},
		"Google with header":   {tenants.ProviderKey{Provider: "google", Region: "global", Auth: tenants.AuthXAPIKey}, account, "", "auth"},
		"Anthropic's offer":    {tenants.ProviderKey{Provider: "claude-google", Region: "global", BaseURL: "https://claude.googleapis.com/v1/projects/PROJECT/locations/REGION/workspaces/w/invoke"}, account, "https://claude.googleapis.com/v1/projects/northbeam/locations/global/workspaces/w/invoke", ""},
		"no workspace":         {tenants.ProviderKey{Provider: "claude-google", Region: "global"}, account, "", "base_url"},
		"AWS":                  {tenants.ProviderKey{Provider: "claude-aws", Region: "us-west-2", Headers: workspace}, "sk-ant-aws-1234", "https://aws-external-anthropic.us-west-2.api.aws", ""},
		"AWS without header":   {tenants.ProviderKey{Provider: "claude-aws", Region: "us-west-2"}, "sk-ant-aws-1234", "", "headers"},
		"AWS without region":   {tenants.ProviderKey{Provider: "claude-aws", Headers: workspace}, "sk-ant-aws-1234", "", "region"},
		"Foundry":              {tenants.ProviderKey{Provider: "foundry", BaseURL: "https://r.services.ai.azure.com/anthropic", Auth: tenants.AuthEntra}, "tenant:client:secret", "https://r.services.ai.azure.com/anthropic", ""},
		"Foundry, no resource": {tenants.ProviderKey{Provider: "foundry"}, "foundry-api-key", "", "base_url"},
		"no application":       {tenants.ProviderKey{Provider: "azure", BaseURL: "https://r.openai.azure.com/openai/v1", Auth: tenants.AuthEntra}, "azure-api-key", "", "key"},
		"token elsewhere":      {tenants.ProviderKey{Provider: "anthropic", Auth: tenants.AuthEntra}, "tenant:client:secret", "", "auth"},
	} {
		test.key.CreatedBy, test.key.Name = b.user, name
		key, err := b.CreateProviderKey(t.Context(), b.workspace, test.key, test.secret)
		if key.BaseURL != test.base || field(err) != test.field {
			t.Errorf("%s: %q, %v", name, key.BaseURL, err)
		}
	}
}

// S16: the address in a service account's file is checked like a base URL.
func TestServiceAccountNamesNoPrivateAddress(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	double := providertest.NewCloud(t, providerdouble.CloudConfig{Project: "northbeam"})
	_, err := b.CreateProviderKey(t.Context(), b.workspace, tenants.ProviderKey{Provider: "google", Region: "global", CreatedBy: b.user}, double.ServiceAccount(double.URL))
	if field(err) != "key" {
		t.Errorf("%v", err)
	}
}

// A cloud without a list of models is tested by a count of tokens.
func TestCloudWithoutListIsTestedByCount(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	double := providertest.NewCloud(t, providerdouble.CloudConfig{Keys: []string{"foundry-api-key"}, Project: "northbeam", Location: "global"})
	google := double.URL + "/v1/projects/PROJECT/locations/global"
	for name, test := range map[string]struct {
		key    tenants.ProviderKey
		secret string
		want   tenants.ProviderKeyTest
	}{
		"Foundry": {tenants.ProviderKey{Provider: "foundry", BaseURL: double.URL + "/anthropic", ProviderKeyRouting: tenants.ProviderKeyRouting{Models: []string{"claude-*", "claude-sonnet-4-5-20250929"}}}, "foundry-api-key", tenants.ProviderKeyTest{OK: true, Status: 200}},
		"other key": {tenants.ProviderKey{Provider: "foundry", BaseURL: double.URL + "/anthropic"}, "another-api-key",
			tenants.ProviderKeyTest{Status: 401, Problem: "The provider refuses this key with 401. Replace it.", Said: "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription."}},
		"Google": {tenants.ProviderKey{Provider: "google", BaseURL: google, Region: "global", ProviderKeyRouting: tenants.ProviderKeyRouting{Models: []string{"claude-sonnet-4-5@20250929"}}}, double.ServiceAccount(double.URL), tenants.ProviderKeyTest{OK: true, Status: 200}},
		"no service": {tenants.ProviderKey{Provider: "google", BaseURL: google, Region: "global"}, double.ServiceAccount(double.URL + "/nowhere"),
			tenants.ProviderKeyTest{Problem: "The cloud's sign-in service gives no access token for this key: 403 Forbidden. Replace it."}},
		"other model": {tenants.ProviderKey{Provider: "google", BaseURL: google, Region: "global", ProviderKeyRouting: tenants.ProviderKeyRouting{Models: []string{"gemini"}}}, double.ServiceAccount(double.URL),
			tenants.ProviderKeyTest{Status: 404, Problem: "The provider accepts the key, but does not serve the model of the test. List the models that it serves; the first one without * is tested.",
				Said: "Publisher Model `publishers/anthropic/models/gemini` was not found or your project does not have access to it."}},
	} {
		test.key.CreatedBy, test.key.Name = b.user, name
		key, err := b.CreateProviderKey(t.Context(), b.workspace, test.key, test.secret)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := b.TestProviderKey(t.Context(), b.workspace, key.ID)
		if got.Took = 0; err != nil || got != test.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, test.want)
		}
	}
}
