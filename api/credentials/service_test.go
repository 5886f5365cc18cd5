package credentials_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/credentials"
	"palimpsest/api/upstream"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const secret = "sk-canary-0123456789-wxyz"

// bundle is a Service on a database of its own with a workspace in it.
type bundle struct {
	*credentials.Service

	db        *tenantsdb.DB
	issuer    *identity.Keys
	vault     *vault.Vault
	user      uuid.UUID
	workspace tenants.WorkspaceID
}

func setup(t *testing.T, allowPrivate bool) *bundle {
	t.Helper()
	db := dbtest.New(t).DB
	secrets := [][]byte{bytes.Repeat([]byte("s"), 32)}
	safe, err := vault.New(secrets)
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := identity.NewKeys(db.APIKeys, secrets, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	user, workspace, err := db.Accounts.SignUp(t.Context(), "ada@example.com", "hash", "northbeam")
	if err != nil {
		t.Fatal(err)
	}
	client := upstream.New(allowPrivate)
	t.Cleanup(client.Close)
	service := credentials.New(credentials.Config{
		Store: credentials.Store{APIKeyStore: db.APIKeys, ProviderKeyStore: db.ProviderKeys}, Issuer: issuer, Vault: safe, Upstream: client,
		Defaults: pipeline.Layer{Source: pipeline.FromDefault}, AllowPrivate: allowPrivate,
	})
	return &bundle{Service: service, db: db, issuer: issuer, vault: safe, user: user.ID, workspace: workspace.ID}
}

// field returns the field that an error names.
func field(err error) string {
	invalid, _ := errors.AsType[tenants.Invalid](err)
	return invalid.Field
}

func TestAPIKeyWorksOnceItIsCreated(t *testing.T) {
	t.Parallel()
	b := setup(t, true)

	key, made, err := b.CreateAPIKey(t.Context(), b.workspace, tenants.APIKey{
		Name: "  laptop ", Pipeline: "ipc: {targetUtilization: 0.5}", CreatedBy: b.user,
	})
	if err != nil {
		t.Fatal(err)
	}
	if key.Name != "laptop" || !slices.Equal(key.Scopes, []tenants.Scope{tenants.ScopeProxy}) || key.Pipeline == "" || key.CreatedBy != b.user {
		t.Errorf("created %+v", key)
	}
	known, err := b.issuer.Authenticate(t.Context(), made)
	if err != nil || known.ID != key.ID || known.Pipeline != key.Pipeline {
		t.Errorf("the secret is that of %+v, %v", known, err)
	}
}

func TestAPIKeyThatCannotBeMadeNamesItsField(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	past := time.Now().Add(-time.Minute)

	for want, wanted := range map[string]tenants.APIKey{
		"name":                           {Name: " "},
		"scopes":                         {Name: "a", Scopes: []tenants.Scope{"all"}},
		"expires_at":                     {Name: "a", APIKeyTimes: tenants.APIKeyTimes{ExpiresAt: &past}},
		"pipeline":                       {Name: "a", Pipeline: ": nonsense"},
		"pipeline.ipc.targetUtilization": {Name: "a", Pipeline: "ipc: {targetUtilization: 2}"},
	} {
		if _, _, err := b.CreateAPIKey(t.Context(), b.workspace, wanted); field(err) != want {
			t.Errorf("%+v: %v, want one of %s", wanted, err, want)
		}
	}
	if keys, err := b.APIKeys(tenants.OwnWork(t.Context()), b.workspace); err != nil || len(keys) != 0 {
		t.Errorf("%d keys were made, %v", len(keys), err)
	}
}

func TestProviderKeyIsSealedForItsWorkspaceAndProvider(t *testing.T) {
	t.Parallel()
	b := setup(t, true)

	if _, err := b.CreateProviderKey(t.Context(), b.workspace, tenants.ProviderKey{
		Provider: tenants.ProviderAnthropic, BaseURL: " https://llm.example.com/ ", CreatedBy: b.user,
	}, " "+secret+"\n"); err != nil {
		t.Fatal(err)
	}
	keys, err := b.ProviderKeys(t.Context(), b.workspace)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	key := keys[0]
	if key.Name != "anthropic" || key.BaseURL != "https://llm.example.com" || key.Last4 != "wxyz" || bytes.Contains(key.Sealed, []byte("canary")) {
		t.Errorf("stored %+v", key)
	}
	if opened, err := b.vault.Open(key); err != nil || opened != secret {
		t.Errorf("opened %q, %v", opened, err)
	}
	key.BaseURL = "https://evil.example.com"
	if _, err := b.vault.Open(key); err == nil {
		t.Error("it opens for another address")
	}
}

func TestProviderKeyThatCannotBeStoredNamesItsField(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	good := tenants.ProviderKey{Provider: tenants.ProviderOpenAI, CreatedBy: b.user}
	with := func(change func(*tenants.ProviderKey)) tenants.ProviderKey {
		wanted := good
		change(&wanted)
		return wanted
	}

	for name, test := range map[string]struct {
		wanted tenants.ProviderKey
		secret string
		field  string
	}{
		"no provider":       {tenants.ProviderKey{}, secret, "provider"},
		"another provider":  {with(func(k *tenants.ProviderKey) { k.Provider = "mistral" }), secret, "provider"},
		"a long name":       {with(func(k *tenants.ProviderKey) { k.Name = strings.Repeat("é", 101) }), secret, "name"},
		"a short secret":    {good, "sk-1", "key"},
		"a secret in two":   {good, "sk-01234 56789", "key"},
		"a second header":   {good, "sk-0123456789\r\nX-Evil: 1", "key"},
		"no URL":            {with(func(k *tenants.ProviderKey) { k.BaseURL = "llm.example.com" }), secret, "base_url"},
		"another protocol":  {with(func(k *tenants.ProviderKey) { k.BaseURL = "file:///etc" }), secret, "base_url"},
		"a URL with a user": {with(func(k *tenants.ProviderKey) { k.BaseURL = "https://u:p@x.example" }), secret, "base_url"},
	} {
		if _, err := b.CreateProviderKey(t.Context(), b.workspace, test.wanted, test.secret); field(err) != test.field {
			t.Errorf("%s: %v, want one of %s", name, err, test.field)
		}
	}
}

// S16
func TestPrivateBaseURLIsRefusedUnlessItIsAllowed(t *testing.T) {
	t.Parallel()
	strict, open := setup(t, false), setup(t, true)

	for _, url := range []string{"http://127.0.0.1:11434", "https://10.0.0.7/v1", "http://localhost:8000", "https://[::1]"} {
		wanted := tenants.ProviderKey{Provider: tenants.ProviderOpenAI, BaseURL: url, CreatedBy: strict.user}
		if _, err := strict.CreateProviderKey(t.Context(), strict.workspace, wanted, secret); field(err) != "base_url" || !strings.Contains(err.Error(), "private") {
			t.Errorf("%s: %v", url, err)
		}
		wanted.CreatedBy = open.user
		if _, err := open.CreateProviderKey(t.Context(), open.workspace, wanted, secret); err != nil {
			t.Errorf("%s where it is allowed: %v", url, err)
		}
	}
	for _, b := range []*bundle{strict, open} { // S51: link-local addresses are never allowed, nor fragments
		for _, url := range []string{"https://169.254.169.254", "http://[fe80::1]", "http://127.0.0.1:9090/metrics#"} {
			wanted := tenants.ProviderKey{Provider: tenants.ProviderOpenAI, BaseURL: url, CreatedBy: b.user}
			if _, err := b.CreateProviderKey(t.Context(), b.workspace, wanted, secret); field(err) != "base_url" {
				t.Errorf("%s: %v", url, err)
			}
		}
	}
	if keys, err := strict.ProviderKeys(t.Context(), strict.workspace); err != nil || len(keys) != 0 {
		t.Errorf("%d keys were stored, %v", len(keys), err)
	}
}

func TestTestOfAProviderKeySaysWhatCameBack(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	for name, test := range map[string]struct {
		status  int
		body    string
		models  int
		problem string
		said    string
	}{
		"models":        {200, `{"data":[{},{}]}`, 2, "", ""},
		"a wrong key":   {401, `{"error":{"message":"no such key ` + secret + `"}}`, 0, "refuses this key with 401", "no such key " + strings.Repeat("*", len(secret))},
		"too often":     {429, `{"error":{"message":"slow down"}}`, 0, "429 Too Many Requests", "slow down"},
		"a web page":    {200, `<html>`, 0, "no list of models", ""},
		"no list":       {200, `{}`, 0, "no list of models", ""},
		"null":          {200, `{"data":null}`, 0, "no list of models", ""},
		"another kind":  {200, `{"data":{"id":"m"}}`, 0, "no list of models", ""},
		"an error":      {200, `{"error":{"message":"not here"}}`, 0, "no list of models", "not here"},
		"no models":     {200, `{"data":[]}`, 0, "", ""},
		"accepted":      {202, `{"data":[{}]}`, 0, "202 Accepted", ""},
		"forbidden":     {403, `{"error":{"message":"not you"}}`, 0, "refuses this key with 403", "not you"},
		"elsewhere":     {302, `{"data":[{}]}`, 0, "302 Found", ""},
		"a long speech": {500, `{"error":{"message":"` + strings.Repeat("x", 1000) + `"}}`, 0, "500", strings.Repeat("x", 299) + "…"},
	} {
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" || r.Header.Get("X-Api-Key") != secret || r.Header.Get("Anthropic-Version") == "" {
				t.Errorf("%s: asked %s with %v", name, r.URL, r.Header)
			}
			w.WriteHeader(test.status)
			_, _ = w.Write([]byte(test.body))
		}))
		t.Cleanup(provider.Close)
		outcome := b.try(t, provider.URL)
		if outcome.OK != (test.problem == "") || outcome.Models != test.models || outcome.Status != test.status ||
			!strings.Contains(outcome.Problem, test.problem) || outcome.Said != test.said {
			t.Errorf("%s: %+v", name, outcome)
		}
	}
	if gone := b.try(t, "http://127.0.0.1:1"); gone.OK || gone.Status != 0 || !strings.Contains(gone.Problem, "could not be reached") {
		t.Errorf("nobody there: %+v", gone)
	}
}

// Of two keys the one that is named is tested, and it alone is marked.
func TestTestIsOfTheKeyThatIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	ids := map[string]uuid.UUID{}
	for _, name := range []string{"works", "fails"} {
		status := map[string]int{"works": http.StatusOK, "fails": http.StatusUnauthorized}[name]
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"data":[{}]}`))
		}))
		t.Cleanup(provider.Close)
		key, err := b.CreateProviderKey(t.Context(), b.workspace, tenants.ProviderKey{Provider: tenants.ProviderAnthropic, Name: name, BaseURL: provider.URL, CreatedBy: b.user}, secret)
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = key.ID
	}
	for _, name := range []string{"fails", "works"} {
		if outcome, err := b.TestProviderKey(t.Context(), b.workspace, ids[name]); err != nil || outcome.OK != (name == "works") {
			t.Errorf("%s: %+v, %v", name, outcome, err)
		}
		stored, err := b.ProviderKeys(t.Context(), b.workspace)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range stored {
			if isTested := key.Name == "fails" || name == "works"; key.Check.At.IsZero() == isTested || isTested && key.Check.OK != (key.Name == "works") {
				t.Errorf("after the test of %s, %s is marked %+v", name, key.Name, key.Check)
			}
		}
	}
}

// try stores a key for a base URL and tests it.
func (b *bundle) try(t *testing.T, url string) tenants.ProviderKeyTest {
	t.Helper()
	key, err := b.CreateProviderKey(t.Context(), b.workspace, tenants.ProviderKey{Provider: tenants.ProviderAnthropic, BaseURL: url, CreatedBy: b.user}, secret)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := b.TestProviderKey(t.Context(), b.workspace, key.ID)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// S3
func TestOnlyKeysOfTheWorkspaceAreTested(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	key, err := b.CreateProviderKey(t.Context(), b.workspace, tenants.ProviderKey{Provider: tenants.ProviderOpenAI, CreatedBy: b.user}, secret)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := b.db.Accounts.SignUp(t.Context(), "bob@example.com", "hash", "other")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.TestProviderKey(t.Context(), other.ID, key.ID); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("another workspace's key: %v", err)
	}
}
