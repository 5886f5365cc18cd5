package settings

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func TestEnvironmentWinsOverTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "palimpsest.yaml")
	content := "PALIMPSEST_ADDR: 127.0.0.1:1111\nPALIMPSEST_ADMIN_ADDR: 127.0.0.1:2222\nPALIMPSEST_ALLOW_PRIVATE_UPSTREAMS: \"true\"\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := LoadConfig(file, environment(map[string]string{"PALIMPSEST_ADDR": "127.0.0.1:3333", "PALIMPSEST_ADMIN_ADDR": ""}))
	if err != nil {
		t.Fatal(err)
	}
	if config.Serving.Addr != "127.0.0.1:3333" || config.Serving.AdminAddr != "" || !config.Serving.AllowPrivateUpstreams {
		t.Fatalf("config %+v", config)
	}
}

func TestWrongSettingIsNamedWithoutItsSecret(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"PALIMPSEST_ADDR":                    "8080",
		"PALIMPSEST_ADMIN_ADDR":              "localhost:99999",
		"DATABASE_URL":                       "mysql://user:hunter2@host/db",
		"DATABASE_APP_URL":                   "hunter2",
		"DATABASE_WORKER_URL":                "hunter2",
		"DATABASE_READ_URL":                  "postgres://user:hunter2@host/db",
		"REDIS_URL":                          "http://hunter2",
		"PALIMPSEST_BLOB_URL":                "ftp://hunter2",
		"PALIMPSEST_PUBLIC_URL":              "hunter2",
		"PALIMPSEST_PUBLIC_DEMO":             "hunter2",
		"PALIMPSEST_SECRET_KEY":              "hunter2",
		"PALIMPSEST_ALLOW_PRIVATE_UPSTREAMS": "hunter2",
		"PALIMPSEST_PIPE":                    "hunter3",
		"PALIMPSEST_LOG_FORMAT":              "xml",
		"PALIMPSEST_KEEP_REQUESTS_DAYS":      "30",
		"PALIMPSEST_TRUSTED_PROXIES":         "10.0.0.0/8, 10.1.2.3",
		"STRIPE_API_BASE":                    "hunter2",
		"STRIPE_TRIAL_DAYS":                  "hunter2",
		"STRIPE_TAX":                         "hunter2",
		"STRIPE_TEAM_PRICE":                  "price_1,,hunter2",
		"PALIMPSEST_BILLING_GRACE":           "hunter2",
		"PALIMPSEST_SIGNUP":                  "hunter2",
		"PALIMPSEST_SIGNUP_DOMAINS":          "hunter3",
		"PALIMPSEST_SIGNUP_BLOCK_DOMAINS":    "a@example.com",
		"PALIMPSEST_SIGNUP_DISPOSABLE":       "hunter2",
		"PALIMPSEST_SIGNUP_TELLS":            "hunter2",
		"PALIMPSEST_SIGNUPS_PER_PLACE":       "10001",
		"PALIMPSEST_CATALOG":                 "hunter2",
		"PALIMPSEST_CATALOG_KEY":             "hunter2",
		"PALIMPSEST_WORKSPACES_PER_PERSON":   "-1",
		"PALIMPSEST_CONNECTIONS_PER_KEY":     "-1",
		"PALIMPSEST_CONNECTIONS_PER_ACCOUNT": "hunter2",
		"PALIMPSEST_DRAIN_DELAY":             "-5s",
		"PALIMPSEST_WORKSPACE_CONCURRENCY":   "0",
	} {
		_, err := LoadConfig("", environment(map[string]string{name: value}))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v does not name it", name, err)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error shows the secret: %v", name, err)
		}
	}
}

func TestUnknownSettingInTheFileIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "palimpsest.yaml")
	if err := os.WriteFile(file, []byte("PALIMPSEST_ADRR: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadConfig(file, environment(nil)); err == nil || !strings.Contains(err.Error(), "PALIMPSEST_ADRR") {
		t.Fatalf("error %v, want one that names the setting", err)
	}
}

func TestSecretIsGeneratedOnceAndKept(t *testing.T) {
	t.Parallel()
	config := Config{Storage: Storage{DataDir: filepath.Join(t.TempDir(), "data")}}
	first, err := config.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	second, err := config.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 1 || string(first[0]) != string(second[0]) || len(first[0]) != secretSize {
		t.Fatal("the generated secret is not kept")
	}
	info, err := os.Stat(filepath.Join(config.Storage.DataDir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Fatalf("secret file has mode %o, want 600", mode)
	}
}

func TestSeveralSecretsAreRead(t *testing.T) {
	t.Parallel()
	one, two := strings.Repeat("a", secretSize), strings.Repeat("b", secretSize)
	encode := base64.StdEncoding.EncodeToString
	config := Config{Storage: Storage{SecretKey: encode([]byte(one)) + ", " + encode([]byte(two))}}
	secrets, err := config.Secrets()
	if err != nil || len(secrets) != 2 || string(secrets[0]) != one || string(secrets[1]) != two {
		t.Fatalf("secrets %v, error %v", secrets, err)
	}
}

func TestStripeNeedsItsSettingsTogether(t *testing.T) {
	t.Parallel()
	settings := map[string]string{
		"STRIPE_API_KEY": "sk_test_hunter2", "STRIPE_WEBHOOK_SECRET": "whsec_1", "STRIPE_PRO_PRICE": "price_new, price_old",
		"STRIPE_PRO_USAGE_PRICE": "price_usage", "STRIPE_METER": "mtr_1", "STRIPE_TRIAL_DAYS": "14", "STRIPE_TAX": "false",
		"PALIMPSEST_BILLING_GRACE": "48h",
	}
	config, err := LoadConfig("", environment(settings))
	if err != nil {
		t.Fatal(err)
	}
	got := config.Billing
	if !got.IsOn() || !slices.Equal(got.Catalog.Pro.Plan, []string{"price_new", "price_old"}) || got.Catalog.Pro.Usage != "price_usage" ||
		got.TrialDays != 14 || got.Tax || got.Grace != 48*time.Hour || got.MeterEvent == "" {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"STRIPE_WEBHOOK_SECRET", "STRIPE_PRO_PRICE", "STRIPE_METER"} {
		some := maps.Clone(settings)
		delete(some, name)
		if _, err := LoadConfig("", environment(some)); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
